"""Which expressions are at most the maximum of a row: ``S_{a,c} <= M_{a}``.

An equation ``M=max(M,S)``, or one that assigns a maximum, makes its target at least as large as
its operands. That still holds where the same operand is read later, if neither changed between.
"""

from collections.abc import Iterator, Mapping

from steptp_dagster.leir.accesses import Accesses, Statement, Use, common_loops
from steptp_dagster.leir.affine import Form
from steptp_dagster.leir.ast import Access, Call, Expr, Index
from steptp_dagster.leir.conversion import Converter
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.typing import expr_dtype
from steptp_dagster.leir.updates import Update
from steptp_dagster.leir.walk import Path, accesses_in, indices_in
from steptp_dagster.strategies.matching import distinguishes, instantiate
from steptp_dagster.strategies.streaming import exp_of_difference, is_minus_inf


class RowMaxima:
    """Answers for one program."""

    def __init__(self, accesses: Accesses, updates: Mapping[Path, Update]) -> None:
        """Find the equations that take maxima."""
        self._accesses = accesses
        self._updates = updates
        self._makers: dict[str, list[tuple[Statement, tuple[Expr, ...]]]] = {}
        for statement in accesses.statements:
            target = statement.equation.target
            if DTYPES[target.dtype].is_float and statement.equation.guard is None:
                operands = tuple(self._operands(statement))
                if operands:
                    self._makers.setdefault(target.name, []).append((statement, operands))

    def below(self, score: Expr, maximum: Expr, reader: Statement) -> bool:
        """Whether ``score`` is at most ``maximum`` where ``reader`` computes them."""
        if not isinstance(maximum, Access):
            return False
        return any(
            self._taken(made, operand, score, maximum, reader)
            for made, operands in self._makers.get(maximum.name, ())
            for operand in operands
        )

    def sums_to_one(self, statement: Statement) -> bool:
        """Whether an update adds ``exp(S-M)`` over a whole row of which M is the maximum.

        One score of the row is the maximum itself, and its term is ``exp(0)``.
        """
        update = self._updates[statement.path]
        pair = None if update.operand is None else exp_of_difference(update.operand)
        if pair is None or update.op != "+" or update.subtract or statement.equation.guard:
            return False
        score, maximum = pair
        for made, _ in self._makers.get(maximum.name, ()):
            first = self._updates[made.path]
            if first.kind != "update" or first.operand is None:
                continue
            if first.init != "identity" and not self._starts_below_all(made):
                continue
            if not self._taken(made, first.operand, score, maximum, statement):
                continue
            known = instantiate(made.equation.target, maximum, self._shared(made, statement))
            known = None if known is None else instantiate(first.operand, score, known)
            if known is not None and self._whole_row(made, first, statement, update, known):
                return True
        return False

    def _starts_below_all(self, made: Statement) -> bool:
        """Whether every other equation sets the maximum to ``-inf``."""
        writes = self._accesses.writes[made.equation.target.name]
        others = [w.statement for w in writes if w.statement is not made]
        return all(is_minus_inf(other.equation.value) for other in others)

    def _whole_row(
        self,
        made: Statement,
        first: Update,
        summing: Statement,
        second: Update,
        known: Mapping[str, Expr],
    ) -> bool:
        """Whether the sum's loops run over every score that the maximum was taken of."""
        ours = {ref.name: ref.loop for ref in made.chain}
        theirs = {ref.name: ref.loop for ref in summing.chain}
        used = set()
        for name in first.reduction_loops:
            other = known.get(name)
            if not isinstance(other, Index) or other.name not in second.reduction_loops:
                return False
            one, two = ours[name], theirs[other.name]
            if (one.start, one.extent) != (two.start, two.extent):
                return False
            used.add(other.name)
        return len(used) == len(first.reduction_loops) and bool(used)

    def _operands(self, statement: Statement) -> Iterator[Expr]:
        equation = statement.equation
        update = self._updates[statement.path]
        if update.kind == "update":
            if update.op == "max" and update.operand is not None:
                yield from _maxima(update.operand)
        elif isinstance(equation.value, Call) and equation.value.function == "max":
            for operand in _maxima(equation.value):
                if all(a.name != equation.target.name for a in accesses_in(operand)):
                    yield operand

    def _taken(
        self, made: Statement, operand: Expr, score: Expr, maximum: Access, reader: Statement
    ) -> bool:
        known = instantiate(made.equation.target, maximum, self._shared(made, reader))
        known = None if known is None else instantiate(operand, score, known)
        if known is None or not self._within(made, known, indices_in(operand), reader):
            return False
        if not _kept(operand, made.equation.target, reader.equation.target.dtype):
            return False
        return self._stays(made, operand, maximum, reader)

    def _shared(self, made: Statement, reader: Statement) -> dict[str, Expr]:
        count = common_loops(made.chain, reader.chain)
        return {ref.name: Index(ref.name) for ref in made.chain[:count]}

    def _within(
        self, made: Statement, known: Mapping[str, Expr], used: frozenset[str], reader: Statement
    ) -> bool:
        """Whether the maximum was really taken over the score that is read."""
        convert = Converter(reader.bounds, _unknown).form
        for ref in made.chain:
            expr = known.get(ref.name)
            if expr is None:
                if ref.name in used:
                    return False
                continue
            form = convert(expr)
            if form is None:
                return False
            low, high = reader.bounds.interval(form)
            if low < ref.loop.start or high >= ref.loop.start + ref.loop.extent:
                return False
        return True

    def _stays(self, made: Statement, operand: Expr, maximum: Access, reader: Statement) -> bool:
        """Whether the maximum is complete, and no score changed since it was taken."""
        shared = common_loops(made.chain, reader.chain)
        if reader.order <= made.order:
            return False
        if any(access.scope != "g" for access in (maximum, *accesses_in(operand))) and any(
            ref.loop.kind == "B" for ref in made.chain[shared:]
        ):
            return False  # another thread's or block's values
        inside = {ref.name for ref in made.chain[:shared]}
        if inside & set(self._updates[made.path].repeating_loops):
            return False
        if not self._once(self._accesses.by_statement[made.path][0], shared):
            return False
        for use in self._accesses.writes.get(maximum.name, ()):
            other = use.statement
            if other is not made and (
                other.order > made.order or not self._apart(use, made, shared)
            ):
                return False
        for name in dict.fromkeys(access.name for access in accesses_in(operand)):
            for use in self._accesses.writes.get(name, ()):
                if use.statement.order > made.order or not self._apart(use, made, shared):
                    return False
        return True

    def _apart(self, write: Use, made: Statement, shared: int) -> bool:
        """Whether a write before ``made`` is over when that runs, or never overwrites itself."""
        together = common_loops(write.chain, made.chain)
        return together <= shared or self._once(write, shared)

    def _once(self, write: Use, shared: int) -> bool:
        """Whether a write reaches each element in one iteration of its loops outside updates."""
        repeating = self._updates[write.statement.path].repeating_loops
        inner = [ref for ref in write.chain[shared:] if ref.name not in repeating]
        extents = {ref.name: ref.loop.extent for ref in write.chain}
        return distinguishes(write.forms, [ref.name for ref in inner], extents)


def _unknown(access: Access, converter: Converter) -> Form:
    """No index that a maximum is read at depends on a tensor."""
    raise TypeError(f"{access.name} stands in an index expression")


def _maxima(expr: Expr) -> Iterator[Expr]:
    """The operands of nested maxima."""
    if isinstance(expr, Call) and expr.function == "max":
        for argument in expr.arguments:
            yield from _maxima(argument)
    else:
        yield expr


def _kept(operand: Expr, target: Access, reading: str) -> bool:
    """Whether storing the operand rounds nothing away, so that the maximum stays one."""
    computed = expr_dtype(operand, target.dtype)
    if expr_dtype(operand, reading) != computed:
        return False
    if isinstance(operand, Access):
        return (
            DTYPES[operand.dtype].bits <= DTYPES[target.dtype].bits
            and DTYPES[operand.dtype].is_float
            and (operand.dtype == target.dtype or target.dtype in ("f32", "f64"))
        )
    return computed.bits <= DTYPES[target.dtype].bits
