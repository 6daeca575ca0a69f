"""Finding rows whose maximum and sum of exponentials are computed in separate passes.

``find`` looks at every pair of equations ``M=max(M,S)`` and ``Z=Z+exp(S-M)``, wherever they
stand, matches them by the roles of their indices, and gives either the pair with everything that
a rewriting needs, or the first reason why the two passes cannot become one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import LoopRef, Statement, Use, common_loops
from steptp_dagster.leir.affine import names_in
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Call, Expr, Index, Int, Loop
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Update
from steptp_dagster.leir.walk import Located, Path, accesses_in, indices_in, substitute
from steptp_dagster.strategies.definitions import Problem, definition, operand_problem
from steptp_dagster.strategies.matching import Renaming, distinguishes, same_domain, unify
from steptp_dagster.strategies.streaming import (
    exp_of_difference,
    history_equations,
    indexed,
    is_minus_inf,
    is_zero,
    normalisation,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A maximum and a sum over the same scores, and where they are used to normalise.

    ``maximum`` and ``total`` are the targets, ``score`` the operand and ``guard`` the condition on
    which a row is there, all in the indices of the maximum's loops; ``renaming`` maps the sum's
    indices to those. ``reduction`` is the loop over a row, ``inits`` the equations that start the
    two explicitly. ``uses`` are the normalising equations, ``kinds`` what each is. ``prefix``:
    the maximum is a running one already, ``maximum`` without its last subscript, the step.
    """

    max_path: Path
    sum_path: Path
    maximum: Access
    total: Access
    score: Expr
    guard: Expr | None
    reduction: LoopRef
    renaming: tuple[tuple[str, str], ...]
    inits: tuple[Path, ...]
    uses: tuple[Path, ...]
    kinds: tuple[str, ...]
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Maximum:
    """A maximum over rows; fields as in ``Rows``, all in its own indices."""

    max_path: Path
    maximum: Access
    score: Expr
    guard: Expr | None
    reduction: LoopRef
    inits: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Miss:
    """A pair that is no candidate: where, the named reason, and words for people."""

    path: Path
    sum_path: Path
    reason: str
    message: str


class _Reject(Exception):
    """Carries the reason out of the checks of one pair."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def find(program: SignedProgram) -> tuple[Rows | Miss, ...]:
    """All pairs in text order of the maximum, then of the sum."""
    return tuple(_Finder(program).pairs())


def find_sums(program: SignedProgram) -> tuple[Rows | Miss, ...]:
    """All pairs, whether something normalises by them or not, also with running maxima."""
    finder = _Finder(program, normalised=False)
    return (*finder.pairs(), *finder.prefixed())


def find_maxima(program: SignedProgram) -> tuple[Maximum | Miss, ...]:
    """All maxima over rows, in text order."""
    return tuple(_Finder(program, normalised=False).maxima())


def unused_loops(statement: Statement, target: Use) -> tuple[LoopRef, ...]:
    """Enclosing loops on which the written element does not depend, outermost first.

    Loops of extent 1 count only where there is no other; then it is the innermost one that the
    equation's value uses, or else the innermost one.
    """
    used = frozenset(name for form in target.forms for name in names_in(form))
    unused = tuple(ref for ref in statement.chain if ref.name not in used)
    wide = tuple(ref for ref in unused if ref.loop.extent > 1)
    read = indices_in(statement.equation.value)
    return wide or tuple(ref for ref in unused if ref.name in read)[-1:] or unused[-1:]


class _Finder:
    def __init__(self, program: SignedProgram, *, normalised: bool = True) -> None:
        self.program = program
        self.normalised = normalised
        analysis = Analysis.of(program)
        self.accesses, self.updates = analysis.accesses, analysis.updates

    def pairs(self) -> Iterator[Rows | Miss]:
        for first in self.accesses.statements:
            if not self._is_update(first, "max"):
                continue
            for second in self.accesses.statements:
                if second.order > first.order and self._sums_exponentials(first, second):
                    try:
                        yield self._check(first, second)
                    except _Reject as miss:
                        yield Miss(first.path, second.path, miss.reason, miss.message)

    def _update(self, statement: Statement) -> Update:
        return self.updates[statement.path]

    def _is_update(self, statement: Statement, op: str) -> bool:
        update = self._update(statement)
        return update.kind == "update" and update.op == op and not update.subtract

    def _sums_exponentials(self, first: Statement, second: Statement) -> bool:
        """Whether ``second`` sums exponentials relative to the maximum of ``first``."""
        if not self._is_update(second, "+"):
            return False
        operand = self._update(second).operand
        found = None if operand is None else exp_of_difference(operand)
        return found is not None and found[1].name == first.equation.target.name

    def _check(self, first: Statement, second: Statement) -> Rows:
        maximum, raw_total = first.equation.target, second.equation.target
        for target in (maximum, raw_total):
            if not DTYPES[target.dtype].is_float:
                raise _Reject("not-floating", f"{target.name} is {target.dtype}")
        reduction, extra = self._reduction(first, "maximum")
        other, other_extra = self._reduction(second, "sum")
        for ref in (reduction, other):
            if ref.loop.kind not in ("L", "U"):
                raise _Reject(
                    "reduction-loop-not-serial",
                    f"loop {ref.name} is of kind {ref.loop.kind}; a recurrence needs L or U",
                )
        if reduction in second.chain:
            raise _Reject("read-too-early", "the sum runs inside the loop of the maximum")
        if not set(extra) <= set(second.chain) or not set(other_extra) <= set(first.chain):
            raise _Reject("rows-overlap", "maximum or sum of a row is overwritten by the next row")
        score, renaming = self._scores(first, second)
        self._domains(first, second, renaming)
        if renaming.get(other.name) != reduction.name:
            raise _Reject("loops-differ", "maximum and sum reduce over different loops")
        guard = _row_guard(first, second, reduction, renaming)
        total = _renamed(raw_total, renaming, second)
        inits = (
            *self._start(first, reduction, extra, is_minus_inf, "maximum"),
            *self._start(second, other, other_extra, is_zero, "sum"),
        )
        if raw_total.scope != "g" and first.path[0] != second.path[0]:
            raise _Reject("sum-private-elsewhere", f"{raw_total.name} lives in another nest only")
        self._scores_stay(first, second, score)
        self._uses_are_late(first, second, reduction, other)
        uses: tuple[Path, ...] = ()
        kinds: tuple[str, ...] = ()
        if self.normalised:
            uses, kinds = self._normalisations(first, second, score, maximum, total)
        return Rows(
            first.path,
            second.path,
            maximum,
            total,
            score,
            guard,
            reduction,
            tuple(sorted(renaming.items())),
            tuple(sorted(inits)),
            uses,
            kinds,
        )

    def maxima(self) -> Iterator[Maximum | Miss]:
        for statement in self.accesses.statements:
            if self._is_update(statement, "max"):
                try:
                    yield self._maximum(statement)
                except _Reject as miss:
                    yield Miss(statement.path, statement.path, miss.reason, miss.message)

    def _maximum(self, statement: Statement) -> Maximum:
        target, score = statement.equation.target, self._update(statement).operand
        if not DTYPES[target.dtype].is_float:
            raise _Reject("not-floating", f"{target.name} is {target.dtype}")
        reduction, extra = self._reduction(statement, "maximum")
        if reduction.loop.kind not in ("L", "U"):
            raise _Reject(
                "reduction-loop-not-serial",
                f"loop {reduction.name} is of kind {reduction.loop.kind}, not L or U",
            )
        if score is None or reduction.name not in indices_in(score):
            raise _Reject("scores-differ", f"the scores do not depend on loop {reduction.name}")
        if reduction.loop.extent == 1:
            raise _Reject("row-of-one", f"loop {reduction.name} runs once")
        guard = _row_guard(
            statement, statement, reduction, {r.name: r.name for r in statement.chain}
        )
        inits = self._start(statement, reduction, extra, is_minus_inf, "maximum")
        for use in self.accesses.by_tensor[target.name]:
            reader = use.statement
            late = reader.order > statement.order and reduction not in reader.chain
            if not use.write and reader is not statement and not late:
                raise _Reject(
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
                    except _Reject as miss:
                        yield Miss(first.path, second.path, miss.reason, miss.message)
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
        if not distinguishes(base, rows, _extents(first)) or not set(extra) <= set(first.chain):
            raise _Reject("rows-overlap", "maximum or sum of a row is overwritten by the next row")
        if other.loop.kind not in ("L", "U"):
            raise _Reject("reduction-loop-not-serial", f"loop {other.name} is {other.loop.kind}")
        if reduction in second.chain:
            raise _Reject("read-too-early", "the sum runs inside the loop of the maximum")
        renaming = unify(score, pair[0], _shared(first, second))
        renaming = None if renaming is None else unify(last, shifted, renaming)
        if renaming is None:
            raise _Reject("scores-differ", "the sum's scores are not those of the maximum")
        self._domains(first, second, renaming)
        if renaming.get(other.name) != reduction.name:
            raise _Reject("loops-differ", "maximum and sum reduce over different loops")
        guard = _row_guard(first, second, reduction, renaming)
        total = second.equation.target
        if total.name in {access.name for access in accesses_in(score)}:
            raise _Reject("scores-differ", "the scores read the sum itself")
        if total.scope != "g" and first.path[0] != second.path[0]:
            raise _Reject("sum-private-elsewhere", f"{total.name} lives in another nest only")
        inits = self._start(second, other, extra, is_zero, "sum")
        self._scores_stay(first, second, score)
        for use in self.accesses.by_tensor[total.name]:
            reader = use.statement
            late = reader.order > second.order and other not in reader.chain
            if not use.write and reader is not second and not late:
                raise _Reject(
                    "read-too-early", f"{total.name} is read before its last value stands"
                )
        return Rows(
            first.path,
            second.path,
            maximum,
            _renamed(total, renaming, second),
            score,
            guard,
            reduction,
            tuple(sorted(renaming.items())),
            inits,
            (),
            (),
            prefix=True,
        )

    def _reduction(self, statement: Statement, what: str) -> tuple[LoopRef, tuple[LoopRef, ...]]:
        """The loop over a row, and outer loops in which the accumulator is used anew."""
        target = self.accesses.by_statement[statement.path][0]
        unused = unused_loops(statement, target)
        if not unused:
            raise _Reject("several-reduction-loops", f"the {what} reduces over no loop")
        if len(unused) > 1 and self._update(statement).init == "identity":
            names = ", ".join(ref.name for ref in unused)
            raise _Reject("several-reduction-loops", f"the {what} reduces over {names}")
        rows = [ref.name for ref in statement.chain if ref not in unused]
        if not distinguishes(target.forms, rows, _extents(statement)):
            raise _Reject("rows-overlap", f"two rows may share an element of {target.tensor}")
        return unused[-1], unused[:-1]

    def _scores(self, first: Statement, second: Statement) -> tuple[Expr, Renaming]:
        """The scores, and the renaming under which the sum's are the same."""
        score, operand = self._update(first).operand, self._update(second).operand
        pair = None if operand is None else exp_of_difference(operand)
        if score is None or pair is None:
            raise _Reject("scores-differ", "maximum or sum has no operand")
        target = self.accesses.by_statement[first.path][0]
        unused = unused_loops(first, target)
        if unused[-1].name not in indices_in(score):
            raise _Reject("scores-differ", f"the scores do not depend on loop {unused[-1].name}")
        found = unify(score, pair[0], _shared(first, second))
        found = None if found is None else unify(first.equation.target, pair[1], found)
        if found is None:
            raise _Reject("scores-differ", "the sum's scores are not those of the maximum")
        own = {first.equation.target.name, second.equation.target.name}
        if own & {access.name for access in accesses_in(score)}:
            raise _Reject("scores-differ", "the scores read the maximum or the sum itself")
        return score, found

    def _domains(self, first: Statement, second: Statement, renaming: Renaming) -> None:
        ours = [ref.loop for ref in first.chain]
        theirs = [ref.loop for ref in second.chain]
        if not same_domain(ours, theirs, renaming):
            raise _Reject("loops-differ", "maximum and sum run over different loops")

    def _start(
        self,
        statement: Statement,
        reduction: LoopRef,
        extra: tuple[LoopRef, ...],
        is_start: Callable[[Expr], bool],
        what: str,
    ) -> tuple[Path, ...]:
        """The explicit start of an accumulator, if it has one; nothing else may write it."""
        target = statement.equation.target
        writers = [use.statement for use in self.accesses.writes[target.name]]
        others = [w for w in writers if w is not statement]
        implicit = self._update(statement).init == "identity"
        if implicit and not others:
            return ()
        if implicit or len(others) != 1 or others[0].order > statement.order:
            raise _Reject("written-elsewhere", f"{target.name} has other writers than the {what}")
        init = others[0]
        if not is_start(init.equation.value):
            raise _Reject("start-not-identity", f"the {what} does not start from its identity")
        shared = common_loops(init.chain, statement.chain)
        if any(ref not in statement.chain[:shared] for ref in extra) or reduction in init.chain:
            raise _Reject("start-not-identity", f"the {what} is not started once per row")
        renaming = unify(target, init.equation.target, _shared(statement, init))
        rows = [ref.loop for ref in statement.chain if ref is not reduction]
        same = renaming is not None and same_domain(rows, [r.loop for r in init.chain], renaming)
        if renaming is None or not same or not _same_guard(statement, init, renaming):
            raise _Reject("start-not-identity", f"the {what} is started over other rows")
        return (init.path,)

    def _scores_stay(self, first: Statement, second: Statement, score: Expr) -> None:
        """Nothing writes the scores' tensors from the maximum to the sum."""
        shared = 0
        while first.path[shared] == second.path[shared]:
            shared += 1
        low, high = first.path[shared], second.path[shared]
        for name in dict.fromkeys(access.name for access in accesses_in(score)):
            for use in self.accesses.writes.get(name, []):
                path = use.statement.path
                between = (
                    path[:shared] == first.path[:shared]
                    and len(path) > shared
                    and low <= path[shared] <= high
                )
                if between and not self._made_just_before(use, first):
                    raise _Reject("scores-change", f"{name} is written between the two passes")

    def _made_just_before(self, write: Use, first: Statement) -> bool:
        """Whether each score is made once, in the very iteration that the maximum reads it."""
        maker = write.statement
        if maker.path[:-1] != first.path[:-1] or maker.order > first.order:
            return False
        reads = [u for u in self.accesses.by_statement[first.path] if u.tensor == write.tensor]
        names = [ref.name for ref in first.chain]
        return all(u.forms == write.forms for u in reads) and distinguishes(
            write.forms, names, _extents(first)
        )

    def _uses_are_late(
        self, first: Statement, second: Statement, reduction: LoopRef, other: LoopRef
    ) -> None:
        """All other readers come after the last step of the loop that makes the value."""
        for made, loop in ((first, reduction), (second, other)):
            for use in self.accesses.by_tensor[made.equation.target.name]:
                reader = use.statement
                if use.write or reader is made or (reader is second and made is first):
                    continue
                if reader.order < made.order or loop in reader.chain:
                    raise _Reject(
                        "read-too-early", f"{use.tensor} is read before its last value stands"
                    )

    def _normalisations(
        self, first: Statement, second: Statement, score: Expr, maximum: Access, total: Access
    ) -> tuple[tuple[Path, ...], tuple[str, ...]]:
        uses: list[Path] = []
        kinds: list[str] = []
        for statement in self.accesses.statements:
            if statement.order > second.order:
                shared = _shared(first, statement)
                value = statement.equation.value
                found = normalisation(value, score, maximum, total, shared)
                if found is not None:
                    uses.append(statement.path)
                    kinds.append(found.name)
        if not uses:
            raise _Reject(
                "no-normalisation",
                f"nothing normalises by {maximum.name} and {total.name} afterwards",
            )
        return tuple(uses), tuple(kinds)


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


def _row_guard(
    first: Statement, second: Statement, reduction: LoopRef, renaming: Renaming
) -> Expr | None:
    """The guard of both passes, which must pick whole rows, the same in both."""
    guard = first.equation.guard
    if not _same_guard(first, second, renaming):
        raise _Reject("guarded-update", "maximum and sum run under different guards")
    if guard is not None and reduction.name in indices_in(guard):
        raise _Reject("guarded-update", "the guard leaves out parts of rows")
    if guard is not None and any(True for _ in accesses_in(guard)):
        raise _Reject("guarded-update", "the guard reads a tensor")
    return guard


def _same_guard(pattern: Statement, other: Statement, renaming: Renaming) -> bool:
    ours, theirs = pattern.equation.guard, other.equation.guard
    if ours is None or theirs is None:
        return ours is theirs
    return unify(ours, theirs, renaming) is not None


def _shared(a: Statement, b: Statement) -> Renaming:
    """The identity on the loops that both statements stand under."""
    count = common_loops(a.chain, b.chain)
    return {ref.name: ref.name for ref in a.chain[:count]}


def _extents(statement: Statement) -> dict[str, int]:
    return {ref.name: ref.loop.extent for ref in statement.chain}


def _renamed(access: Access, renaming: Renaming, statement: Statement) -> Access:
    """The access in the other indices; loops without a partner have extent 1, so one value."""
    by: dict[str, Expr] = {ref.name: Int(ref.loop.start) for ref in statement.chain}
    by.update({old: Index(new) for old, new in renaming.items()})
    return replace(access, subscripts=tuple(substitute(s, by) for s in access.subscripts))
