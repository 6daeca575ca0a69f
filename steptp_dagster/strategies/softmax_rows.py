"""Finding rows whose maximum and sum of exponentials are computed, in one pass or in two.

``Finder`` looks at every maximum, plain (``M=max(M,S)``) or running (``N_{c}=max(N_{c-1},S)``),
with every sum ``Z=Z+exp(S-M)`` relative to it, wherever they stand, and at running maxima with
running sums beside them. It matches them by the roles of their indices, and gives either the pair
with everything that a rewriting needs, or the first reason why the passes cannot become one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import LoopRef, Statement, Use
from steptp_dagster.leir.ast import Access, Expr, Index, Int
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, substitute
from steptp_dagster.strategies.matching import Renaming, distinguishes, same_domain, unify
from steptp_dagster.strategies.misses import Miss, Reject
from steptp_dagster.strategies.passes import (
    Pass,
    Passes,
    extents_of,
    require_serial,
    row_guard,
    shared_loops,
)
from steptp_dagster.strategies.pieces import Pieces, is_shift, pieces, unfolded
from steptp_dagster.strategies.running import (
    Copy,
    copies_of,
    last_step,
    running_maximum,
    running_sum,
)
from steptp_dagster.strategies.streaming import absorbs, exp_of_difference, normalises


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

    ``shifted``: the sum is relative to a ``finite_shift`` of the maximum, or copied out as if it
    were. Then every reader counts as exposed, since they see the sum of a row of nothing but -inf.
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
    shifted: bool = False


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


class Finder(Passes):
    """Looks for maxima and sums in one program.

    ``normalised``: whether something must normalise by maximum and sum.
    """

    def __init__(self, program: SignedProgram, *, normalised: bool) -> None:
        """Analyse the program."""
        super().__init__(program)
        self.normalised = normalised

    def pairs(self) -> Iterator[Rows | Miss]:
        """Every plain maximum with every later sum relative to it."""
        for first in self.accesses.statements:
            if self.is_update(first, "max"):
                known = pieces(self.program, (first.equation.target.name,), shifts=True)
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
            known = pieces(self.program, (last.name,), shifts=True)
            for second in self.accesses.statements:
                if self._sums_exponentials(first, second, last.name, known):
                    yield self._judged(first, second, known)

    def streamed(self) -> Iterator[Rows]:
        """Every running maximum with a running sum beside it, which something normalises by."""
        for first in self.accesses.statements:
            running = running_maximum(first)
            if running is None or not self.written_once(first):
                continue
            for second in self.accesses.statements:
                total = running_sum(second, first)
                if total is None or not self.written_once(second):
                    continue
                try:
                    self.scores_stay(first, second, running.score)
                    self.rows_apart(first, running.reduction)
                    self.rows_apart(second, running.reduction)
                    yield self._streamed_rows(first, second, total)
                except Reject:
                    continue

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
        other, again = self.reduction(second, "+")
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
        total_pass = Pass(
            second.path, raw_total, top.operand, guard, other, raw_total, again=again, op="+"
        )
        inits = (
            *(() if top.prefix else self.start(top, first)),
            *self.start(total_pass, second),
        )
        if raw_total.scope != "g" and first.path[0] != second.path[0]:
            raise Reject("sum-private-elsewhere", f"{raw_total.name} lives in another nest only")
        self.scores_stay(first, second, top.operand)
        if not top.prefix:
            self.uses_are_late(first, reduction, {second.path})
        self.uses_are_late(second, other, set())
        rows = Rows(
            first.path,
            second.path,
            top.target,
            total,
            top.operand,
            guard,
            reduction,
            tuple(sorted(renaming.items())),
            tuple(sorted(inits)),
            via=tuple(known[name].path for name in dict.fromkeys(seen)),
            prefix=top.prefix,
            copies=copies_of(self.program, (top.target,), reduction.loop) if top.prefix else (),
            shifted=any(is_shift(known[name].equation) for name in seen),
        )
        return self._completed(rows, second, top.shown, total)

    def _streamed_rows(self, first: Statement, second: Statement, total: Access) -> Rows:
        running = running_maximum(first)
        if running is None:
            raise Reject("scores-differ", "the maximum is no running one")
        loop = running.reduction.loop
        copies = copies_of(self.program, (running.array, total), loop)
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
            copies=copies,
            shifted=any(copy.shifted for copy in copies),
        )
        return self._completed(rows, second, last_step(running.array, loop), last_step(total, loop))

    def _completed(self, rows: Rows, second: Statement, shown: Access, total: Access) -> Rows:
        """The rows with the equations that read maximum and sum, and how they do.

        Rejects them if something must normalise by them and nothing does.
        """
        known = pieces(self.program, (shown.name, total.name), shifts=rows.shifted)
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
            if rows.shifted or statement.path not in readers or decides:
                continue
            if absorbs(value, *template):
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

    def _top(self, first: Statement) -> Pass:
        """The maximum, plain or running, with the checks that are about it alone."""
        running = running_maximum(first)
        if running is None:
            return self.plain(first, "max")
        self.require_float(first.equation.target)
        self.rows_apart(first, running.reduction)
        if not self.written_once(first):
            name = first.equation.target.name
            raise Reject("written-elsewhere", f"{name} has other writers than the maximum")
        last = last_step(running.array, running.reduction.loop)
        guard = first.equation.guard
        return Pass(
            first.path, running.array, running.score, guard, running.reduction, last, prefix=True
        )

    def _scores(
        self,
        top: Pass,
        first: Statement,
        second: Statement,
        pair: tuple[Expr, Access] | None,
    ) -> Renaming:
        """The renaming under which the sum's scores and maximum are those of the maximum."""
        found = None
        if pair is not None:
            found = unify(top.operand, pair[0], shared_loops(first, second))
            found = None if found is None else unify(top.shown, pair[1], found)
        if found is None:
            raise Reject("scores-differ", "the sum's scores are not those of the maximum")
        own = {first.equation.target.name, second.equation.target.name}
        if own & {access.name for access in accesses_in(top.operand)}:
            raise Reject("scores-differ", "the scores read the maximum or the sum itself")
        return found

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


def in_other_indices(access: Access, renaming: Renaming, statement: Statement) -> Access:
    """The access in the other indices; loops without a partner have extent 1, so one value."""
    by: dict[str, Expr] = {ref.name: Int(ref.loop.start) for ref in statement.chain}
    by.update({old: Index(new) for old, new in renaming.items()})
    return replace(access, subscripts=tuple(substitute(s, by) for s in access.subscripts))
