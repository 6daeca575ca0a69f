"""Finding rows whose maximum and sum of exponentials are computed, in one pass or in two.

``Finder`` looks at every maximum, plain (``M=max(M,S)``) or running (``N_{c}=max(N_{c-1},S)``),
with every sum ``Z=Z+exp(S-M)`` relative to it, wherever they stand, and at running maxima with
running sums beside them. It matches them by the roles of their indices, and gives either the pair
with everything that a rewriting needs, or the first reason why the passes cannot become one.
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
from steptp_dagster.strategies.pieces import Pieces, pieces, unfolded
from steptp_dagster.strategies.running import (
    Copy,
    copies_of,
    last_step,
    running_maximum,
    running_sum,
)
from steptp_dagster.strategies.streaming import (
    absorbs,
    exp_of_difference,
    is_minus_inf,
    is_zero,
    normalises,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A maximum and a sum over the same scores, and where they are used to normalise.

    ``maximum`` and ``total`` are the targets, ``score`` the operand and ``guard`` the condition on
    which a row is there, all in the indices of the maximum's loops; ``renaming`` maps the sum's
    indices to those. ``reduction`` is the loop over a row, ``inits`` the equations that start the
    two explicitly. ``uses`` are the normalising equations. ``via`` are the equations through
    which the sum was followed to ``exp(S-M)``.

    ``prefix``: the maximum is a running one already, ``maximum`` without its last subscript, the
    step; ``streamed``: so is the sum, ``total`` likewise. ``copies`` are those of last steps.
    ``absorbing`` are the equations that read the sum in nothing but softmax and log-softmax, and
    ``exposed`` says whether something else sees it, an output included.
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
    uses: tuple[Path, ...] = ()
    via: tuple[Path, ...] = ()
    prefix: bool = False
    streamed: bool = False
    copies: tuple[Copy, ...] = ()
    absorbing: tuple[Path, ...] = ()
    exposed: bool = False


@dataclass(frozen=True, slots=True)
class Maximum:
    """A maximum over rows; fields as in ``Rows``, all in its own indices.

    ``shown`` is what others read of it: the maximum itself, or the last step of a running one.
    ``rows`` are loops in which its elements are used anew.
    """

    max_path: Path
    maximum: Access
    score: Expr
    guard: Expr | None
    reduction: LoopRef
    inits: tuple[Path, ...]
    shown: Access
    again: tuple[LoopRef, ...] = ()
    prefix: bool = False


def find(program: SignedProgram) -> tuple[Rows | Miss, ...]:
    """All pairs that something normalises by: two passes, then one and a half, then one."""
    finder = Finder(program, normalised=True)
    return (*finder.pairs(), *finder.prefixed(), *finder.streamed())


def find_sums(program: SignedProgram) -> tuple[Rows | Miss, ...]:
    """All pairs with a plain sum, whether something normalises by them or not."""
    finder = Finder(program, normalised=False)
    return (*finder.pairs(), *finder.prefixed())


def find_normalisers(program: SignedProgram) -> tuple[Rows, ...]:
    """All pairs in every form, without the near misses."""
    finder = Finder(program, normalised=False)
    found = (*finder.pairs(), *finder.prefixed(), *finder.streamed())
    return tuple(rows for rows in found if isinstance(rows, Rows))


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
    """Looks for maxima and sums in one program.

    ``normalised``: whether something must normalise by maximum and sum.
    """

    def __init__(self, program: SignedProgram, *, normalised: bool) -> None:
        """Analyse the program."""
        self.program = program
        self.normalised = normalised
        analysis = Analysis.of(program)
        self.accesses, self.updates = analysis.accesses, analysis.updates

    def pairs(self) -> Iterator[Rows | Miss]:
        """Every plain maximum with every later sum relative to it."""
        for first in self.accesses.statements:
            if self.is_update(first, "max"):
                known = pieces(self.program, (first.equation.target.name,))
                for second in self.accesses.statements:
                    if self._sums_exponentials(first, second, first.equation.target.name, known):
                        yield self._judged(first, second, known)

    def prefixed(self) -> Iterator[Rows | Miss]:
        """Every running maximum with every later plain sum relative to its last step."""
        for first in self.accesses.statements:
            running = running_maximum(first)
            if running is None:
                continue
            last = last_step(running.array, running.reduction.loop)
            known = pieces(self.program, (last.name,))
            for second in self.accesses.statements:
                if self._sums_exponentials(first, second, last.name, known):
                    yield self._judged(first, second, known)

    def streamed(self) -> Iterator[Rows]:
        """Every running maximum with a running sum beside it, which something normalises by."""
        for first in self.accesses.statements:
            running = running_maximum(first)
            if running is None or not self._written_once(first):
                continue
            for second in self.accesses.statements:
                total = running_sum(second, first)
                if total is None or not self._written_once(second):
                    continue
                try:
                    self.scores_stay(first, second, running.score)
                    self._rows_apart(first, running.reduction)
                    self._rows_apart(second, running.reduction)
                    yield self._streamed_rows(first, second, total)
                except Reject:
                    continue

    def is_update(self, statement: Statement, op: str) -> bool:
        """Whether the equation is a pure update by this operation."""
        update = self.updates[statement.path]
        return update.kind == "update" and update.op == op and not update.subtract

    def update(self, statement: Statement) -> Update:
        """What the equation does to its target."""
        return self.updates[statement.path]

    def _sums_exponentials(
        self, first: Statement, second: Statement, name: str, known: Pieces
    ) -> bool:
        """Whether ``second`` sums exponentials relative to the maximum ``name`` of ``first``."""
        if second.order <= first.order or not self.is_update(second, "+"):
            return False
        pair = self._exponential(second, known, [])
        return pair is not None and pair[1].name == name

    def _exponential(
        self, second: Statement, known: Pieces, seen: list[str]
    ) -> tuple[Expr, Access] | None:
        """What a sum sums up, as the score and the maximum of ``exp(S-M)``."""
        operand = self.update(second).operand
        if operand is None:
            return None
        return exp_of_difference(unfolded(self.program, second, operand, known, seen))

    def _judged(self, first: Statement, second: Statement, known: Pieces) -> Rows | Miss:
        try:
            return self._check(first, second, known)
        except Reject as miss:
            return Miss(first.path, miss.reason, miss.message)

    def _check(self, first: Statement, second: Statement, known: Pieces) -> Rows:
        top = self._top(first)
        raw_total, reduction = second.equation.target, top.reduction
        self.require_float(raw_total)
        other, again = self.reduction(second, "sum")
        for ref in (reduction, other):
            require_serial(ref)
        if reduction in second.chain:
            raise Reject("read-too-early", "the sum runs inside the loop of the maximum")
        if not set(top.again) <= set(second.chain) or not set(again) <= set(first.chain):
            raise Reject("rows-overlap", "maximum or sum of a row is overwritten by the next row")
        seen: list[str] = []
        renaming = self._scores(top, first, second, self._exponential(second, known, seen))
        if not same_domain(
            [ref.loop for ref in first.chain], [ref.loop for ref in second.chain], renaming
        ):
            raise Reject("loops-differ", "maximum and sum run over different loops")
        if renaming.get(other.name) != reduction.name:
            raise Reject("loops-differ", "maximum and sum reduce over different loops")
        guard = row_guard(first, second, reduction, renaming)
        total = in_other_indices(raw_total, renaming, second)
        inits = (
            *self._start_of_maximum(top, first),
            *self.start(second, other, again, is_zero, "sum"),
        )
        if raw_total.scope != "g" and first.path[0] != second.path[0]:
            raise Reject("sum-private-elsewhere", f"{raw_total.name} lives in another nest only")
        self.scores_stay(first, second, top.score)
        if not top.prefix:
            self.uses_are_late(first, reduction, {second.path})
        self.uses_are_late(second, other, set())
        rows = Rows(
            first.path,
            second.path,
            top.maximum,
            total,
            top.score,
            guard,
            reduction,
            tuple(sorted(renaming.items())),
            tuple(sorted(inits)),
            via=tuple(known[name].path for name in dict.fromkeys(seen)),
            prefix=top.prefix,
            copies=copies_of(self.program, (top.maximum,), reduction.loop) if top.prefix else (),
        )
        return self._completed(rows, second, top.shown, total)

    def _streamed_rows(self, first: Statement, second: Statement, total: Access) -> Rows:
        running = running_maximum(first)
        if running is None:
            raise Reject("scores-differ", "the maximum is no running one")
        loop = running.reduction.loop
        rows = Rows(
            first.path,
            second.path,
            running.array,
            total,
            running.score,
            first.equation.guard,
            running.reduction,
            tuple((ref.name, ref.name) for ref in first.chain),
            (),
            prefix=True,
            streamed=True,
            copies=copies_of(self.program, (running.array, total), loop),
        )
        return self._completed(rows, second, last_step(running.array, loop), last_step(total, loop))

    def _completed(self, rows: Rows, second: Statement, shown: Access, total: Access) -> Rows:
        """The rows with the equations that read maximum and sum, and how they do.

        Rejects them if something must normalise by them and nothing does.
        """
        known = pieces(self.program, (shown.name, total.name))
        first = self.accesses.statement_at[rows.max_path]
        sums = {total.name, *(copy.tensor for copy in rows.copies if copy.of == total.name)}
        own = {rows.sum_path, *rows.inits, *(copy.path for copy in rows.copies)}
        readers = {
            use.statement.path for name in sums for use in self.accesses.by_tensor[name]
        } - own
        uses: list[Path] = []
        absorbing: list[Path] = []
        for statement in self.accesses.statements:
            late = statement.order > second.order
            if not (statement.path in readers or (late and self.normalised)):
                continue
            value = unfolded(self.program, statement, statement.equation.value, known, [])
            template = (rows.score, shown, total, shared_loops(first, statement))
            if late and normalises(value, *template):
                uses.append(statement.path)
            guard = statement.equation.guard
            decides = guard is not None and any(a.name in sums for a in accesses_in(guard))
            if statement.path in readers and not decides and absorbs(value, *template):
                absorbing.append(statement.path)
        if self.normalised and not uses:
            message = f"nothing normalises by {shown.name} and {total.name} afterwards"
            raise Reject("no-normalisation", message)
        outputs = {v.name for v in self.program.signature.outputs}
        return replace(
            rows,
            uses=tuple(uses),
            absorbing=tuple(absorbing),
            exposed=bool(sums & outputs or readers - set(absorbing)),
        )

    def _top(self, first: Statement) -> Maximum:
        """The maximum, plain or running, with the checks that are about it alone."""
        running = running_maximum(first)
        if running is None:
            return self.maximum(first)
        self.require_float(first.equation.target)
        self._rows_apart(first, running.reduction)
        if not self._written_once(first):
            name = first.equation.target.name
            raise Reject("written-elsewhere", f"{name} has other writers than the maximum")
        last = last_step(running.array, running.reduction.loop)
        return Maximum(
            first.path,
            running.array,
            running.score,
            first.equation.guard,
            running.reduction,
            (),
            last,
            prefix=True,
        )

    def maximum(self, statement: Statement) -> Maximum:
        """A plain maximum, without its start and its readers."""
        target, score = statement.equation.target, self.update(statement).operand
        self.require_float(target)
        reduction, again = self.reduction(statement, "maximum")
        if score is None or reduction.name not in indices_in(score):
            raise Reject("scores-differ", f"the scores do not depend on loop {reduction.name}")
        return Maximum(
            statement.path, target, score, statement.equation.guard, reduction, (), target, again
        )

    def _start_of_maximum(self, top: Maximum, first: Statement) -> tuple[Path, ...]:
        if top.prefix:
            return ()
        return self.start(first, top.reduction, top.again, is_minus_inf, "maximum")

    def require_float(self, target: Access) -> None:
        """Reject targets that are no floats."""
        if not DTYPES[target.dtype].is_float:
            raise Reject("not-floating", f"{target.name} is {target.dtype}")

    def reduction(self, statement: Statement, what: str) -> tuple[LoopRef, tuple[LoopRef, ...]]:
        """The loop over a row, and outer loops in which the accumulator is used anew."""
        target = self.accesses.by_statement[statement.path][0]
        unused = unused_loops(statement, target)
        if not unused:
            raise Reject("several-reduction-loops", f"the {what} reduces over no loop")
        if len(unused) > 1 and self.update(statement).init == "identity":
            names = ", ".join(ref.name for ref in unused)
            raise Reject("several-reduction-loops", f"the {what} reduces over {names}")
        rows = [ref.name for ref in statement.chain if ref not in unused]
        if not distinguishes(target.forms, rows, extents_of(statement)):
            raise Reject("rows-overlap", f"two rows may share an element of {target.tensor}")
        return unused[-1], unused[:-1]

    def _rows_apart(self, statement: Statement, reduction: LoopRef) -> None:
        """Reject running values that the next row overwrites."""
        target = self.accesses.by_statement[statement.path][0]
        rows = [ref.name for ref in statement.chain if ref is not reduction]
        if not distinguishes(target.forms[:-1], rows, extents_of(statement)):
            raise Reject("rows-overlap", "maximum or sum of a row is overwritten by the next row")

    def _written_once(self, statement: Statement) -> bool:
        return len(self.accesses.writes[statement.equation.target.name]) == 1

    def _scores(
        self,
        top: Maximum,
        first: Statement,
        second: Statement,
        pair: tuple[Expr, Access] | None,
    ) -> Renaming:
        """The renaming under which the sum's scores and maximum are those of the maximum."""
        found = None
        if pair is not None:
            found = unify(top.score, pair[0], shared_loops(first, second))
            found = None if found is None else unify(top.shown, pair[1], found)
        if found is None:
            raise Reject("scores-differ", "the sum's scores are not those of the maximum")
        own = {first.equation.target.name, second.equation.target.name}
        if own & {access.name for access in accesses_in(top.score)}:
            raise Reject("scores-differ", "the scores read the maximum or the sum itself")
        return found

    def start(
        self,
        statement: Statement,
        reduction: LoopRef,
        again: tuple[LoopRef, ...],
        is_start: Callable[[Expr], bool],
        what: str,
    ) -> tuple[Path, ...]:
        """The explicit start of an accumulator, if it has one; nothing else may write it."""
        target = statement.equation.target
        writers = [use.statement for use in self.accesses.writes[target.name]]
        others = [w for w in writers if w is not statement]
        implicit = self.update(statement).init == "identity"
        if implicit and not others:
            return ()
        if implicit or len(others) != 1 or others[0].order > statement.order:
            raise Reject("written-elsewhere", f"{target.name} has other writers than the {what}")
        init = others[0]
        if not is_start(init.equation.value):
            raise Reject("start-not-identity", f"the {what} does not start from its identity")
        shared = common_loops(init.chain, statement.chain)
        if any(ref not in statement.chain[:shared] for ref in again) or reduction in init.chain:
            raise Reject("start-not-identity", f"the {what} is not started once per row")
        renaming = unify(target, init.equation.target, shared_loops(statement, init))
        rows = [ref.loop for ref in statement.chain if ref is not reduction]
        same = renaming is not None and same_domain(rows, [r.loop for r in init.chain], renaming)
        if renaming is None or not same or not _same_guard(statement, init, renaming):
            raise Reject("start-not-identity", f"the {what} is started over other rows")
        return (init.path,)

    def scores_stay(self, first: Statement, second: Statement, score: Expr) -> None:
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

    def uses_are_late(self, made: Statement, loop: LoopRef, own: set[Path]) -> None:
        """All readers but ``own`` come after the last step of the loop that makes the value."""
        for use in self.accesses.by_tensor[made.equation.target.name]:
            reader = use.statement
            if use.write or reader is made or reader.path in own:
                continue
            if reader.order < made.order or loop in reader.chain:
                raise Reject("read-too-early", f"{use.tensor} is read before its last value stands")


def require_serial(ref: LoopRef) -> None:
    """Reject loops whose iterations do not run one after another."""
    if ref.loop.kind not in ("L", "U"):
        message = f"loop {ref.name} is of kind {ref.loop.kind}; a recurrence needs L or U"
        raise Reject("reduction-loop-not-serial", message)


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
