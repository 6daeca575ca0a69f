"""Maxima and sums over rows on their own, and running maxima: what prefix steps start from.

``find_maxima`` and ``find_sums`` accept a row as ``softmax_rows`` does; a running maximum is
recognised by its recurrence, and followed through copies of its last step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import LoopRef, Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Call, Expr, Index, Int, Loop
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Located, Path, accesses_in, indices_in, substitute
from steptp_dagster.strategies.definitions import Problem, definition, operand_problem
from steptp_dagster.strategies.matching import distinguishes, unify
from steptp_dagster.strategies.misses import Miss, Reject
from steptp_dagster.strategies.softmax_rows import (
    Finder,
    Rows,
    extents_of,
    in_other_indices,
    row_guard,
    shared_loops,
)
from steptp_dagster.strategies.streaming import (
    exp_of_difference,
    history_equations,
    indexed,
    is_minus_inf,
    is_zero,
)


@dataclass(frozen=True, slots=True)
class Maximum:
    """A maximum over rows; fields as in ``Rows``, all in its own indices."""

    max_path: Path
    maximum: Access
    score: Expr
    guard: Expr | None
    reduction: LoopRef
    inits: tuple[Path, ...]


def find_sums(program: SignedProgram) -> tuple[Rows | Miss, ...]:
    """All pairs, whether something normalises by them or not, also with running maxima."""
    finder = _PrefixFinder(program, normalised=False)
    return (*finder.pairs(), *finder.prefixed())


def find_maxima(program: SignedProgram) -> tuple[Maximum | Miss, ...]:
    """All maxima over rows, in text order."""
    return tuple(_PrefixFinder(program, normalised=False).maxima())


class _PrefixFinder(Finder):
    def maxima(self) -> Iterator[Maximum | Miss]:
        for statement in self.accesses.statements:
            if self._is_update(statement, "max"):
                try:
                    yield self._maximum(statement)
                except Reject as miss:
                    yield Miss(statement.path, miss.reason, miss.message)

    def _maximum(self, statement: Statement) -> Maximum:
        target, score = statement.equation.target, self._update(statement).operand
        if not DTYPES[target.dtype].is_float:
            raise Reject("not-floating", f"{target.name} is {target.dtype}")
        reduction, extra = self._reduction(statement, "maximum")
        if reduction.loop.kind not in ("L", "U"):
            raise Reject(
                "reduction-loop-not-serial",
                f"loop {reduction.name} is of kind {reduction.loop.kind}, not L or U",
            )
        if score is None or reduction.name not in indices_in(score):
            raise Reject("scores-differ", f"the scores do not depend on loop {reduction.name}")
        if reduction.loop.extent == 1:
            raise Reject("row-of-one", f"loop {reduction.name} runs once")
        guard = row_guard(
            statement, statement, reduction, {r.name: r.name for r in statement.chain}
        )
        inits = self._start(statement, reduction, extra, is_minus_inf, "maximum")
        for use in self.accesses.by_tensor[target.name]:
            reader = use.statement
            late = reader.order > statement.order and reduction not in reader.chain
            if not use.write and reader is not statement and not late:
                raise Reject(
                    "read-too-early", f"{target.name} is read before its last value stands"
                )
        return Maximum(statement.path, target, score, guard, reduction, inits)

    def prefixed(self) -> Iterator[Rows | Miss]:
        """Sums of exponentials relative to the last step of a running maximum."""
        for first in self.accesses.statements:
            running = running_maximum(first)
            for second in self.accesses.statements if running is not None else ():
                if second.order > first.order and self._is_update(second, "+"):
                    try:
                        found = self._prefixed(first, second)
                    except Reject as miss:
                        yield Miss(first.path, miss.reason, miss.message)
                        continue
                    if found is not None:
                        yield found

    def _prefixed(self, first: Statement, second: Statement) -> Rows | None:
        running, operand = running_maximum(first), self._update(second).operand
        pair = None if operand is None else exp_of_difference(operand)
        if running is None or pair is None:
            return None
        maximum, score, reduction = running
        last = last_step(maximum, reduction.loop)
        shifted = resolved(self.program, second, pair[1])
        if shifted.name != last.name:
            return None
        target = self.accesses.by_statement[first.path][0]
        base = target.forms[:-1]
        rows = [ref.name for ref in first.chain if ref is not reduction]
        other, extra = self._reduction(second, "sum")
        if not distinguishes(base, rows, extents_of(first)) or not set(extra) <= set(first.chain):
            raise Reject("rows-overlap", "maximum or sum of a row is overwritten by the next row")
        if other.loop.kind not in ("L", "U"):
            raise Reject("reduction-loop-not-serial", f"loop {other.name} is {other.loop.kind}")
        if reduction in second.chain:
            raise Reject("read-too-early", "the sum runs inside the loop of the maximum")
        renaming = unify(score, pair[0], shared_loops(first, second))
        renaming = None if renaming is None else unify(last, shifted, renaming)
        if renaming is None:
            raise Reject("scores-differ", "the sum's scores are not those of the maximum")
        self._domains(first, second, renaming)
        if renaming.get(other.name) != reduction.name:
            raise Reject("loops-differ", "maximum and sum reduce over different loops")
        guard = row_guard(first, second, reduction, renaming)
        total = second.equation.target
        if total.name in {access.name for access in accesses_in(score)}:
            raise Reject("scores-differ", "the scores read the sum itself")
        if total.scope != "g" and first.path[0] != second.path[0]:
            raise Reject("sum-private-elsewhere", f"{total.name} lives in another nest only")
        inits = self._start(second, other, extra, is_zero, "sum")
        self._scores_stay(first, second, score)
        for use in self.accesses.by_tensor[total.name]:
            reader = use.statement
            late = reader.order > second.order and other not in reader.chain
            if not use.write and reader is not second and not late:
                raise Reject("read-too-early", f"{total.name} is read before its last value stands")
        return Rows(
            first.path,
            second.path,
            maximum,
            in_other_indices(total, renaming, second),
            score,
            guard,
            reduction,
            tuple(sorted(renaming.items())),
            inits,
            (),
            (),
            prefix=True,
        )


def running_maximum(statement: Statement) -> tuple[Access, Expr, LoopRef] | None:
    """Array without its last subscript, scores and loop, if the equation is a running maximum."""
    equation = statement.equation
    subscripts = equation.target.subscripts
    step = subscripts[-1] if subscripts else None
    if not isinstance(step, Index) or not isinstance(equation.value, Call):
        return None
    loop = next((ref for ref in statement.chain if ref.name == step.name), None)
    if loop is None or len(equation.value.arguments) != len(("running", "score")):
        return None
    base = replace(equation.target, subscripts=subscripts[:-1])
    score = equation.value.arguments[1]
    expected, _ = history_equations(score, base, base, step.name, loop.loop.start)
    if (expected.target, expected.value) != (equation.target, equation.value):
        return None
    return base, score, loop


def last_step(array: Access, loop: Loop) -> Access:
    """The access to the last element of running values."""
    return indexed(array, Int(loop.start + loop.extent - 1))


def resolved(program: SignedProgram, reader: Statement, access: Access) -> Access:
    """What the access is a copy of, as long as it is one, in the reader's indices."""
    while True:
        writers = Analysis.of(program).accesses.writes.get(access.name, [])
        if len(writers) != 1 or not isinstance(writers[0].statement.equation.value, Access):
            return access
        source = substituted(program, writers[0].statement, reader, access)
        if not isinstance(source, Access):
            return access
        access = source


def substituted(
    program: SignedProgram, made: Statement, reader: Statement, access: Access
) -> Expr | None:
    """The definition by the assignment ``made`` of what the reader reads, or None."""
    if Analysis.of(program).updates[made.path].kind != "assignment":
        return None
    if made.equation.guard is not None or made is reader:
        return None
    producer, consumer = _located(made), _located(reader)
    solved = definition(program.program, producer, consumer, access)
    if isinstance(solved, Problem):
        return None
    if operand_problem(program, producer, consumer, solved) is not None:
        return None
    return substitute(made.equation.value, solved)


def _located(statement: Statement) -> Located:
    return Located(statement.path, tuple(ref.loop for ref in statement.chain), statement.equation)
