"""Facts that the streaming strategies share: loops, guards, starts, writers and readers."""

from math import prod

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.nest_memory import known_nest
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Path,
    equations,
    loops_around,
)
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import changed_nests, pair, quoted
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.rewrite import equation_at
from steptp_dagster.strategies.streaming import infinity_tests


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
    """The equations that start updates explicitly, and how those start that have none."""
    found = Analysis.of(program).updates
    own = {path: found[path].init or "" for path in updates}
    return (
        *(quoted("before", program, path) for path in inits),
        *(
            before_fact("update_init", path, value=init)
            for path, init in own.items()
            if init == "identity" or not inits
        ),
    )


def writers_fact(program: SignedProgram, name: str) -> Fact:
    """The equations that write a tensor."""
    return before_fact("writers_of", name, value=_paths(program, name, write=True))


def readers_fact(program: SignedProgram, name: str) -> Fact:
    """The equations that read a tensor."""
    return before_fact("readers_of", name, value=_paths(program, name, write=False))


def dtype_fact(program: SignedProgram, name: str) -> Fact:
    """The dtype of a tensor that the program writes."""
    return before_fact("dtype_of", name, value=_dtype(program, name))


def new_tensor_facts(after: SignedProgram, names: tuple[str, ...]) -> tuple[Fact, ...]:
    """The tensors that the step adds, each with dtype, scope and what it takes.

    A private tensor's size is that of one instance: per block or thread.
    """
    shapes = infer_shapes(after)
    facts = [pair("new_tensors", value=names)]
    for name in names:
        dtype, scope = _annotation(after, name)
        size = prod(shapes[name]) * DTYPES[dtype].bytes
        facts += [
            after_fact("dtype_of", name, value=dtype),
            after_fact("scope_of", name, value=scope),
            after_fact("bytes_of", name, value=size),
        ]
    return tuple(facts)


def newcomers(before: SignedProgram, after: SignedProgram) -> tuple[str, ...]:
    """Tensors that only the program after the step has, by first occurrence."""
    return _only_first(after, before)


def removed_tensors(before: SignedProgram, after: SignedProgram) -> tuple[str, ...]:
    """Tensors that only the program before the step has, by first occurrence."""
    return _only_first(before, after)


def _only_first(first: SignedProgram, second: SignedProgram) -> tuple[str, ...]:
    left = {name for nest in second.program.nests for name in known_nest(nest).outline.names}
    names = (name for nest in first.program.nests for name in known_nest(nest).outline.order)
    return tuple(name for name in dict.fromkeys(names) if name not in left)


def _dtype(program: SignedProgram, name: str) -> str:
    return _annotation(program, name)[0]


def _annotation(program: SignedProgram, name: str) -> tuple[str, str]:
    """Dtype and scope of a tensor that a program touches, as they are at its first access."""
    for nest in program.program.nests:
        for touched in known_nest(nest).outline.touched:
            if touched.name == name and touched.annotation is not None:
                return touched.annotation[:2]
    access = Analysis.of(program).accesses.by_tensor[name][0].access
    return access.dtype, access.scope


def removed_facts(before: SignedProgram, after: SignedProgram) -> tuple[Fact, ...]:
    """The tensors that the step removes, with what they took."""
    names = removed_tensors(before, after)
    shapes = infer_shapes(before)
    sizes = {n: prod(shapes[n]) * DTYPES[_dtype(before, n)].bytes for n in names}
    return (
        pair("removed_tensors", value=names),
        *(before_fact("bytes_of", name, value=size) for name, size in sizes.items()),
    )


def exchanged_facts(before: SignedProgram, after: SignedProgram) -> tuple[Fact, ...]:
    """The tensors that the step removes and adds, names first, then what is known of each."""
    gone, come = removed_facts(before, after), new_tensor_facts(after, newcomers(before, after))
    names = tuple(fact for fact in (gone[0], come[0]) if fact.value)
    return (*(names or (come[0],)), *come[1:], *gone[1:])


def streamed(before: SignedProgram, after: SignedProgram) -> tuple[str, ...]:
    """Tensors that the nests which a step made carry from step to step, by first occurrence."""
    come = {path[0] for path in changed_nests(before, after)[1]}
    updates = Analysis.of(after).updates
    names = (
        one.equation.target.name
        for one in equations(after.program)
        if one.path[0] in come
        and (updates[one.path].kind == "recurrence" or one.equation.target.scope == "l")
    )
    return tuple(dict.fromkeys(names))


def recurrence_facts(after: SignedProgram, names: tuple[str, ...]) -> tuple[Fact, ...]:
    """The equations of the result that carry the tensors from step to step.

    Each with what it tests for -inf before it takes a difference.
    """
    updates = Analysis.of(after).updates
    facts: list[Fact] = []
    for one in equations(after.program):
        if one.equation.target.name not in names:
            continue
        tests = infinity_tests(one.equation.value)
        if updates[one.path].kind == "recurrence":
            facts.append(after_fact("update_kind", one.path, value="recurrence"))
        if tests:
            facts.append(after_fact("infinity_tests", one.path, value=tests))
    return tuple(facts)


def local_bytes(program: SignedProgram, names: tuple[str, ...]) -> int:
    """What those of the tensors that are local take in a thread."""
    shapes, uses = infer_shapes(program), Analysis.of(program).accesses.by_tensor
    first = {name: uses[name][0].access for name in names}
    return sum(
        prod(shapes[name]) * DTYPES[access.dtype].bytes
        for name, access in first.items()
        if access.scope == "l"
    )


def _paths(program: SignedProgram, name: str, *, write: bool) -> tuple[Path, ...]:
    uses = Analysis.of(program).accesses.by_tensor.get(name, [])
    return tuple(dict.fromkeys(use.statement.path for use in uses if use.write == write))
