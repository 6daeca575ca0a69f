"""Which expression a read of a tensor stands for, and whether it still has that value there.

``definition`` answers for one producer and one read; a problem is a named reason with words.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Int, Loop, Program
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import (
    Located,
    Path,
    equations,
    equations_in,
    indices_in,
    loops_around,
    substitute,
)
from steptp_dagster.strategies.inlining import inverse, replaced
from steptp_dagster.strategies.rewrite import nest_at, reads_of


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a read cannot be replaced: a precondition's name and words."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where a producer and a reader part: the loops they share and their branches below."""

    shared: tuple[Loop, ...]
    path: Path
    producer_branch: int
    reader_branch: int

    @property
    def reads_later(self) -> bool:
        """Whether the reader comes after the producer in every iteration of the shared loops."""
        return self.producer_branch < self.reader_branch


def located(program: Program, path: Path) -> Located:
    """The equation at ``path`` with its loops. Raises LookupError where there is none."""
    if path and path[0] < len(program.nests):
        for found in equations_in(program.nests[path[0]], path[:1]):
            if found.path == path:
                return found
    raise LookupError(f"no equation at {path}")


def meeting(program: Program, producer: Path, reader: Path) -> Meeting:
    """Where the paths of two different equations part."""
    depth = next(i for i, (a, b) in enumerate(zip(producer, reader, strict=False)) if a != b)
    above = producer[:depth]
    shared = loops_around(program, above) + nest_at(program, above).loops if above else ()
    return Meeting(shared, above, producer[depth], reader[depth])


def definition(
    program: Program, producer: Located, reader: Located, read: Access
) -> dict[str, Expr] | Problem:
    """The producer's indices in terms of the reader's, such that the read finds that instance.

    Indices that the definition does not need may be left out.
    """
    target = producer.equation.target
    solved = inverse(target.subscripts, read.subscripts, producer.loops, reader.loops)
    if solved is None:
        return Problem(
            "target-not-invertible", f"the subscript of {target.name} is no sum that can be solved"
        )
    problem = _bind_private(target, producer, reader, solved)
    if problem is not None:
        return problem
    where = meeting(program, producer.path, reader.path)
    return _bind_rest(producer, where, solved)


def _bind_private(
    target: Access, producer: Located, reader: Located, solved: dict[str, Expr]
) -> Problem | None:
    """A local tensor is one's own thread's, a shared one one's own block's."""
    if target.scope == "g":
        return None
    own = {loop.axis: loop.index for loop in reader.loops if loop.axis is not None}
    for loop in producer.loops:
        if loop.axis is None or (target.scope == "s" and loop.axis[0] == "t"):
            continue
        if loop.axis not in own:
            return Problem(
                "target-misses-loop", f"a read of {target.name} does not stand under {loop.axis}"
            )
        solved[loop.index] = Index(own[loop.axis])
    return None


def _bind_rest(
    producer: Located, where: Meeting, solved: dict[str, Expr]
) -> dict[str, Expr] | Problem:
    equation = producer.equation
    shared = {loop.index for loop in where.shared}
    needed = indices_in(equation.value)
    if equation.guard is not None:
        needed |= indices_in(equation.guard)
    rolling = False
    for loop in producer.loops:
        if loop.index in solved:
            continue
        if loop.extent == 1:
            solved[loop.index] = Int(loop.start)
        elif loop.index in shared:
            solved[loop.index] = Index(loop.index)
            rolling = True
        elif loop.index in needed:
            return Problem(
                "target-misses-loop",
                f"{equation.target.name} is overwritten in loop {loop.index}, whose index its"
                " definition uses",
            )
        elif equation.guard is not None:
            rolling = True
    if rolling and equation.guard is not None:
        return Problem(
            "guarded-producer",
            f"{equation.target.name} is overwritten, and not in every iteration",
        )
    if rolling and not (where.reads_later and same_iteration(where, solved)):
        return Problem(
            "target-misses-loop",
            f"a read finds {equation.target.name} as an earlier iteration left it",
        )
    return solved


def same_iteration(where: Meeting, solved: Mapping[str, Expr]) -> bool:
    """Whether the read finds what was written in its own iteration of the shared loops."""
    return all(
        loop.extent == 1 or solved.get(loop.index) == Index(loop.index) for loop in where.shared
    )


def operand_problem(
    program: SignedProgram, producer: Located, reader: Located, solved: Mapping[str, Expr]
) -> Problem | None:
    """Whether an operand of the definition may hold another value at the reader."""
    where = meeting(program.program, producer.path, reader.path)
    together = where.reads_later and same_iteration(where, solved)
    for operand in dict.fromkeys(reads_of(producer.equation)):
        writers = [
            one for one in equations(program.program) if one.equation.target.name == operand.name
        ]
        if operand.scope != "g" and not _same_owner(producer, reader, where, solved, operand):
            return Problem(
                "operand-private",
                f"{operand.name} is private to a thread or block that the reader is not in",
            )
        if not writers or _written_once(program, writers):
            continue
        if together and not _written_between(where, writers):
            continue
        return Problem(
            "operand-redefined",
            f"{operand.name} may be written between the definition and a read of"
            f" {producer.equation.target.name}",
        )
    return None


def _same_owner(
    producer: Located,
    reader: Located,
    where: Meeting,
    solved: Mapping[str, Expr],
    operand: Access,
) -> bool:
    if not where.path or not same_iteration(where, solved):
        return False
    own = {loop.axis: loop.index for loop in reader.loops if loop.axis is not None}
    for loop in producer.loops:
        if loop.axis is None or (operand.scope == "s" and loop.axis[0] == "t"):
            continue
        if loop.axis not in own or solved.get(loop.index) != Index(own[loop.axis]):
            return False
    return True


def _written_once(program: SignedProgram, writers: list[Located]) -> bool:
    """One assignment whose target tells its iterations apart: no element is written twice."""
    if len(writers) != 1:
        return False
    writer = writers[0]
    if classify(program)[writer.path].kind != "assignment":
        return False
    target = writer.equation.target
    solved = inverse(target.subscripts, target.subscripts, writer.loops, writer.loops)
    if solved is None or target.scope != "g":
        return False
    return all(loop.extent == 1 or loop.index in solved for loop in writer.loops)


def _written_between(where: Meeting, writers: list[Located]) -> bool:
    """Whether a writer stands in a branch from the producer's to the reader's, both included."""
    depth = len(where.path)
    return any(
        writer.path[:depth] == where.path
        and where.producer_branch <= writer.path[depth] <= where.reader_branch
        for writer in writers
    )


def inlined(program: Program, producer: Located, reader: Located) -> Equation | Problem:
    """The reader with the definition in the place of every read of the produced tensor."""
    problems: list[Problem] = []
    equation = producer.equation

    def by(read: Access) -> Expr:
        solved = definition(program, producer, reader, read)
        if isinstance(solved, Problem):
            problems.append(solved)
            return read
        return substitute(equation.value, solved)

    new = replaced(reader.equation, equation.target.name, by)
    return problems[0] if problems else new


def reads_at(reader: Located, name: str) -> tuple[Access, ...]:
    """Distinct read accesses of an equation to a tensor, by first occurrence."""
    return tuple(dict.fromkeys(a for a in reads_of(reader.equation) if a.name == name))
