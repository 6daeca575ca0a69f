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
from steptp_dagster.leir.ast import Access, Expr, Index, Int
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Update
from steptp_dagster.leir.walk import Path, accesses_in, indices_in, substitute
from steptp_dagster.strategies.matching import Renaming, distinguishes, same_domain, unify
from steptp_dagster.strategies.misses import Miss, Reject
from steptp_dagster.strategies.streaming import (
    exp_of_difference,
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


def find(program: SignedProgram) -> tuple[Rows | Miss, ...]:
    """All pairs in text order of the maximum, then of the sum."""
    return tuple(Finder(program).pairs())


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


class Finder:
    """Looks for pairs of passes in one program; ``prefix_rows`` extends it.

    ``normalised``: whether something must normalise by maximum and sum.
    """

    def __init__(self, program: SignedProgram, *, normalised: bool = True) -> None:
        """Analyse the program."""
        self.program = program
        self.normalised = normalised
        analysis = Analysis.of(program)
        self.accesses, self.updates = analysis.accesses, analysis.updates

    def pairs(self) -> Iterator[Rows | Miss]:
        """Every maximum with every later sum relative to it."""
        for first in self.accesses.statements:
            if not self._is_update(first, "max"):
                continue
            for second in self.accesses.statements:
                if second.order > first.order and self._sums_exponentials(first, second):
                    try:
                        yield self._check(first, second)
                    except Reject as miss:
                        yield Miss(first.path, miss.reason, miss.message)

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
                raise Reject("not-floating", f"{target.name} is {target.dtype}")
        reduction, extra = self._reduction(first, "maximum")
        other, other_extra = self._reduction(second, "sum")
        for ref in (reduction, other):
            if ref.loop.kind not in ("L", "U"):
                raise Reject(
                    "reduction-loop-not-serial",
                    f"loop {ref.name} is of kind {ref.loop.kind}; a recurrence needs L or U",
                )
        if reduction in second.chain:
            raise Reject("read-too-early", "the sum runs inside the loop of the maximum")
        if not set(extra) <= set(second.chain) or not set(other_extra) <= set(first.chain):
            raise Reject("rows-overlap", "maximum or sum of a row is overwritten by the next row")
        score, renaming = self._scores(first, second)
        self._domains(first, second, renaming)
        if renaming.get(other.name) != reduction.name:
            raise Reject("loops-differ", "maximum and sum reduce over different loops")
        guard = row_guard(first, second, reduction, renaming)
        total = in_other_indices(raw_total, renaming, second)
        inits = (
            *self._start(first, reduction, extra, is_minus_inf, "maximum"),
            *self._start(second, other, other_extra, is_zero, "sum"),
        )
        if raw_total.scope != "g" and first.path[0] != second.path[0]:
            raise Reject("sum-private-elsewhere", f"{raw_total.name} lives in another nest only")
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

    def _reduction(self, statement: Statement, what: str) -> tuple[LoopRef, tuple[LoopRef, ...]]:
        """The loop over a row, and outer loops in which the accumulator is used anew."""
        target = self.accesses.by_statement[statement.path][0]
        unused = unused_loops(statement, target)
        if not unused:
            raise Reject("several-reduction-loops", f"the {what} reduces over no loop")
        if len(unused) > 1 and self._update(statement).init == "identity":
            names = ", ".join(ref.name for ref in unused)
            raise Reject("several-reduction-loops", f"the {what} reduces over {names}")
        rows = [ref.name for ref in statement.chain if ref not in unused]
        if not distinguishes(target.forms, rows, extents_of(statement)):
            raise Reject("rows-overlap", f"two rows may share an element of {target.tensor}")
        return unused[-1], unused[:-1]

    def _scores(self, first: Statement, second: Statement) -> tuple[Expr, Renaming]:
        """The scores, and the renaming under which the sum's are the same."""
        score, operand = self._update(first).operand, self._update(second).operand
        pair = None if operand is None else exp_of_difference(operand)
        if score is None or pair is None:
            raise Reject("scores-differ", "maximum or sum has no operand")
        target = self.accesses.by_statement[first.path][0]
        unused = unused_loops(first, target)
        if unused[-1].name not in indices_in(score):
            raise Reject("scores-differ", f"the scores do not depend on loop {unused[-1].name}")
        found = unify(score, pair[0], shared_loops(first, second))
        found = None if found is None else unify(first.equation.target, pair[1], found)
        if found is None:
            raise Reject("scores-differ", "the sum's scores are not those of the maximum")
        own = {first.equation.target.name, second.equation.target.name}
        if own & {access.name for access in accesses_in(score)}:
            raise Reject("scores-differ", "the scores read the maximum or the sum itself")
        return score, found

    def _domains(self, first: Statement, second: Statement, renaming: Renaming) -> None:
        ours = [ref.loop for ref in first.chain]
        theirs = [ref.loop for ref in second.chain]
        if not same_domain(ours, theirs, renaming):
            raise Reject("loops-differ", "maximum and sum run over different loops")

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
            raise Reject("written-elsewhere", f"{target.name} has other writers than the {what}")
        init = others[0]
        if not is_start(init.equation.value):
            raise Reject("start-not-identity", f"the {what} does not start from its identity")
        shared = common_loops(init.chain, statement.chain)
        if any(ref not in statement.chain[:shared] for ref in extra) or reduction in init.chain:
            raise Reject("start-not-identity", f"the {what} is not started once per row")
        renaming = unify(target, init.equation.target, shared_loops(statement, init))
        rows = [ref.loop for ref in statement.chain if ref is not reduction]
        same = renaming is not None and same_domain(rows, [r.loop for r in init.chain], renaming)
        if renaming is None or not same or not _same_guard(statement, init, renaming):
            raise Reject("start-not-identity", f"the {what} is started over other rows")
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
                    raise Reject("scores-change", f"{name} is written between the two passes")

    def _made_just_before(self, write: Use, first: Statement) -> bool:
        """Whether each score is made once, in the very iteration that the maximum reads it."""
        maker = write.statement
        if maker.path[:-1] != first.path[:-1] or maker.order > first.order:
            return False
        reads = [u for u in self.accesses.by_statement[first.path] if u.tensor == write.tensor]
        names = [ref.name for ref in first.chain]
        return all(u.forms == write.forms for u in reads) and distinguishes(
            write.forms, names, extents_of(first)
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
                    raise Reject(
                        "read-too-early", f"{use.tensor} is read before its last value stands"
                    )

    def _normalisations(
        self, first: Statement, second: Statement, score: Expr, maximum: Access, total: Access
    ) -> tuple[tuple[Path, ...], tuple[str, ...]]:
        uses: list[Path] = []
        kinds: list[str] = []
        for statement in self.accesses.statements:
            if statement.order > second.order:
                shared = shared_loops(first, statement)
                value = statement.equation.value
                found = normalisation(value, score, maximum, total, shared)
                if found is not None:
                    uses.append(statement.path)
                    kinds.append(found.name)
        if not uses:
            raise Reject(
                "no-normalisation",
                f"nothing normalises by {maximum.name} and {total.name} afterwards",
            )
        return tuple(uses), tuple(kinds)


def row_guard(
    first: Statement, second: Statement, reduction: LoopRef, renaming: Renaming
) -> Expr | None:
    """The guard of both passes, which must pick whole rows, the same in both."""
    guard = first.equation.guard
    if not _same_guard(first, second, renaming):
        raise Reject("guarded-update", "maximum and sum run under different guards")
    if guard is not None and reduction.name in indices_in(guard):
        raise Reject("guarded-update", "the guard leaves out parts of rows")
    if guard is not None and any(True for _ in accesses_in(guard)):
        raise Reject("guarded-update", "the guard reads a tensor")
    return guard


def _same_guard(pattern: Statement, other: Statement, renaming: Renaming) -> bool:
    ours, theirs = pattern.equation.guard, other.equation.guard
    if ours is None or theirs is None:
        return ours is theirs
    return unify(ours, theirs, renaming) is not None


def shared_loops(a: Statement, b: Statement) -> Renaming:
    """The identity on the loops that both statements stand under."""
    count = common_loops(a.chain, b.chain)
    return {ref.name: ref.name for ref in a.chain[:count]}


def extents_of(statement: Statement) -> dict[str, int]:
    """The extents of the loops around an equation, by index."""
    return {ref.name: ref.loop.extent for ref in statement.chain}


def in_other_indices(access: Access, renaming: Renaming, statement: Statement) -> Access:
    """The access in the other indices; loops without a partner have extent 1, so one value."""
    by: dict[str, Expr] = {ref.name: Int(ref.loop.start) for ref in statement.chain}
    by.update({old: Index(new) for old, new in renaming.items()})
    return replace(access, subscripts=tuple(substitute(s, by) for s in access.subscripts))
