"""What cache_read_write says about a step: reuse, room, threads, and who touches the tensor."""

from math import prod

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.printer import expr_text, loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, at, equations, expressions, loops_around
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.cache_points import Point, Region, region
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.rewrite import new_tensor_names


def explain_read(
    before: SignedProgram, after: SignedProgram, point: Point, site: Site
) -> Explanation:
    """The explanation of a copy that is read in place of the tensor."""
    tensor = site.text("tensor")
    found = region(before, point, tensor)
    if isinstance(found, str):
        raise ValueError(f"no such site in this program: {found}")
    reads = tuple(dict.fromkeys(expr_text(use.access) for use in found.uses))
    cache = new_tensor_names(before, 1)[0]
    copy = _writers(after, cache)[0]
    shown = (
        *_common(before, after, point, tensor, cache, copy),
        evidence(
            "no-reuse",
            before_fact("element_reads", point.path, tensor, value=_reads(found)),
            after_fact("element_reads", copy, tensor, value=_trips(after, copy)),
        ),
        _room(after, cache),
        evidence("written-in-nest", _written(before, tensor)),
        evidence("no-common-region", before_fact("read_texts", point.path, tensor, value=reads)),
    )
    return Explanation(
        state=(
            before_fact("read_texts", point.path, tensor, value=reads),
            before_fact("shape_of", tensor, value=Analysis.of(before).shapes[tensor]),
        ),
        preconditions=shown,
        decision=_decision(after, cache, copy),
        transition=transition(before, after),
        soundness_rule="copy-holds-same-values",
        soundness=(
            after_fact("dtype_of", cache, value=found.uses[0].access.dtype),
            before_fact("dtype_of", tensor, value=found.uses[0].access.dtype),
            pair("same_signature", value=before.signature == after.signature),
        ),
        effect=effects(before, after),
    )


def explain_write(
    before: SignedProgram, after: SignedProgram, point: Point, path: Path
) -> Explanation:
    """The explanation of an accumulator that is stored once."""
    analysis = Analysis.of(before)
    statement, update = analysis.accesses.statement_at[path], analysis.updates[path]
    target = statement.equation.target
    cache = new_tensor_names(before, 1)[0]
    writers = _writers(after, cache)
    store = _writers_reading(after, cache, target.name)
    guard = statement.equation.guard
    shown = (
        *_common(before, after, point, target.name, cache, writers[0]),
        evidence(
            "no-reuse",
            before_fact("element_writes", path, target.name, value=_trips(before, path)),
            after_fact("element_writes", store, target.name, value=_trips(after, store)),
        ),
        _room(after, cache),
        evidence(
            "not-alone",
            before_fact("update_kind", path, value=update.kind),
            before_fact("update_op", path, value=update.op or ""),
        ),
        evidence(
            "reduction-outside",
            before_fact("reduction_loops", path, value=update.reduction_loops),
            after_fact("loops_around", writers[0], value=_loops(after, writers[0])),
        ),
        evidence(
            "rows-overlap",
            before_fact("write_texts", path, target.name, value=(expr_text(target),)),
        ),
        evidence(
            "guarded-by-reduction",
            before_fact("guard_text", path, value="" if guard is None else expr_text(guard)),
        ),
        evidence(
            "no-identity",
            before_fact("update_init", path, value=update.init or ""),
            after_fact("value_text", writers[0], value=_value(after, writers[0])),
        ),
    )
    return Explanation(
        state=(
            before_fact("update_op", path, value=update.op or ""),
            before_fact("reduction_loops", path, value=update.reduction_loops),
            before_fact("trip_count", path, value=_trips(before, path)),
        ),
        preconditions=shown,
        decision=_decision(after, cache, writers[0]),
        transition=transition(before, after),
        soundness_rule="private-accumulator",
        soundness=(
            before_fact("dtype_of", target.name, value=target.dtype),
            after_fact("dtype_of", cache, value=target.dtype),
            pair("same_signature", value=before.signature == after.signature),
        ),
        effect=effects(before, after),
    )


def _common(
    before: SignedProgram,
    after: SignedProgram,
    point: Point,
    tensor: str,
    cache: str,
    first: Path,
) -> tuple[Evidence, ...]:
    around = before_fact("loops_around", point.path, value=_loops(before, point.path))
    return (
        evidence("not-global", before_fact("scope_of", tensor, value="g")),
        evidence(
            "inside-parallel-loop",
            after_fact("header_text", first, value=loops_text(loops_around(after.program, first))),
        ),
        evidence(
            "threads-misplaced",
            around,
            after_fact("loops_around", first, value=_loops(after, first)),
            after_fact("scope_of", cache, value=_access(after, cache).scope),
        ),
    )


def _room(after: SignedProgram, cache: str) -> Evidence:
    shape = Analysis.of(after).shapes[cache]
    size = prod(shape) * DTYPES[_access(after, cache).dtype].bytes
    return evidence("cache-too-large", after_fact("bytes_of", cache, value=size))


def _decision(after: SignedProgram, cache: str, first: Path) -> tuple[Fact, ...]:
    return (
        pair("new_tensors", value=(cache,)),
        after_fact("scope_of", cache, value=_access(after, cache).scope),
        after_fact("shape_of", cache, value=Analysis.of(after).shapes[cache]),
    )


def _reads(found: Region) -> int:
    """Reads of all visits, conditions not counted."""
    return sum(prod(ref.loop.extent for ref in use.chain) for use in found.uses)


def _written(program: SignedProgram, tensor: str) -> Fact:
    uses = Analysis.of(program).accesses.writes.get(tensor, [])
    return before_fact("writers_of", tensor, value=tuple(use.statement.path for use in uses))


def _writers(program: SignedProgram, tensor: str) -> tuple[Path, ...]:
    return tuple(
        located.path
        for located in equations(program.program)
        if located.equation.target.name == tensor
    )


def _writers_reading(program: SignedProgram, cache: str, tensor: str) -> Path:
    """The path of the equation that stores the accumulator to the tensor."""
    for located in equations(program.program):
        value = located.equation.value
        if (
            located.equation.target.name == tensor
            and isinstance(value, Access)
            and value.name == cache
        ):
            return located.path
    raise ValueError(f"nothing stores {cache} to {tensor}")


def _access(program: SignedProgram, tensor: str) -> Access:
    for located in equations(program.program):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                if access.name == tensor:
                    return access
    raise ValueError(f"no tensor {tensor}")


def _loops(program: SignedProgram, path: Path) -> tuple[str, ...]:
    own = getattr(at(program.program, path), "loops", ())
    return tuple(loop.index for loop in (*loops_around(program.program, path), *own))


def _trips(program: SignedProgram, path: Path) -> int:
    return prod(loop.extent for loop in loops_around(program.program, path))


def _value(program: SignedProgram, path: Path) -> str:
    return expr_text(Analysis.of(program).accesses.statement_at[path].equation.value)
