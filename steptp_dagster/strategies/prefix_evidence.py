"""Facts that the streaming strategies share: loops, guards, starts, writers and readers."""

from math import prod

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, equations, loops_around
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import pair, quoted
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.rewrite import equation_at


def number(path: Path) -> str:
    """The number of a statement as sites name it: positions from 1, joined by dots."""
    return ".".join(str(i + 1) for i in path)


def guard_fact(program: SignedProgram, path: Path) -> Fact:
    """The guard of an equation."""
    guard = equation_at(program.program, path).guard
    return before_fact("guard_text", path, value="" if guard is None else expr_text(guard))


def target_fact(program: SignedProgram, path: Path) -> Fact:
    """Every element that an equation writes, as text."""
    target = equation_at(program.program, path).target
    return before_fact("write_texts", path, target.name, value=(expr_text(target),))


def value_fact(program: SignedProgram, path: Path) -> Fact:
    """The right side of an equation."""
    return before_fact(
        "value_text", path, value=expr_text(equation_at(program.program, path).value)
    )


def trips_fact(program: SignedProgram, path: Path) -> Fact:
    """How often an equation runs."""
    count = prod(loop.extent for loop in loops_around(program.program, path))
    return before_fact("trip_count", path, value=count)


def reduction_fact(program: SignedProgram, path: Path) -> Fact:
    """The reduction loops of an equation."""
    loops = Analysis.of(program).updates[path].reduction_loops
    return before_fact("reduction_loops", path, value=loops)


def kind_fact(program: SignedProgram, path: Path, index: str) -> Fact:
    """The kind of a loop around an equation."""
    loop = next(x for x in loops_around(program.program, path) if x.index == index)
    return before_fact("loop_kind", path, index, value=loop.kind)


def extent_fact(program: SignedProgram, path: Path, index: str) -> Fact:
    """The extent of a loop around an equation."""
    loop = next(x for x in loops_around(program.program, path) if x.index == index)
    return before_fact("loop_extent", path, index, value=loop.extent)


def start_facts(
    program: SignedProgram, updates: tuple[Path, ...], inits: tuple[Path, ...]
) -> tuple[Fact, ...]:
    """How the updates start, and the equations that start them explicitly."""
    found = Analysis.of(program).updates
    return (
        *(before_fact("update_init", path, value=found[path].init or "") for path in updates),
        *(quoted("before", program, path) for path in inits),
    )


def writers_fact(program: SignedProgram, name: str) -> Fact:
    """The equations that write a tensor."""
    return before_fact("writers_of", name, value=_paths(program, name, write=True))


def readers_fact(program: SignedProgram, name: str) -> Fact:
    """The equations that read a tensor."""
    return before_fact("readers_of", name, value=_paths(program, name, write=False))


def dtype_fact(program: SignedProgram, name: str) -> Fact:
    """The dtype of a tensor that the program writes."""
    access = Analysis.of(program).accesses.by_tensor[name][0].access
    return before_fact("dtype_of", name, value=access.dtype)


def new_tensor_facts(after: SignedProgram, names: tuple[str, ...]) -> tuple[Fact, ...]:
    """The tensors that the step adds, with dtype and scope."""
    targets = {one.equation.target.name: one.equation.target for one in equations(after.program)}
    return (
        pair("new_tensors", value=names),
        *(after_fact("dtype_of", name, value=targets[name].dtype) for name in names),
        *(after_fact("scope_of", name, value=targets[name].scope) for name in names),
    )


def recurrence_facts(after: SignedProgram, names: tuple[str, ...]) -> tuple[Fact, ...]:
    """The equations of the result that carry the new tensors from step to step."""
    updates = Analysis.of(after).updates
    return tuple(
        after_fact("update_kind", one.path, value="recurrence")
        for one in equations(after.program)
        if one.equation.target.name in names and updates[one.path].kind == "recurrence"
    )


def _paths(program: SignedProgram, name: str, *, write: bool) -> tuple[Path, ...]:
    uses = Analysis.of(program).accesses.by_tensor.get(name, [])
    return tuple(dict.fromkeys(use.statement.path for use in uses if use.write == write))
