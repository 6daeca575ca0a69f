"""Which expressions are at most a maximum: ``S_{a,c} <= M_{a}``, ``N_{a,c} <= N_{a,c+1}``.

An equation ``M=max(M,S)``, or one that assigns a maximum or a copy, makes its target at least as
large as its operands. That still holds where the same operand is read later, if neither changed
between. A *running* maximum ``N_{c}=max(N_{c-1},S_{c})`` also never falls along ``c``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import Accesses, Statement, Use, common_loops
from steptp_dagster.leir.affine import Form, add
from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Expr, Index, Int
from steptp_dagster.leir.conversion import Converter
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.typing import expr_dtype
from steptp_dagster.leir.updates import Update
from steptp_dagster.leir.walk import Path, accesses_in, indices_in, substitute
from steptp_dagster.strategies.dataflow import flows, writes_of
from steptp_dagster.strategies.matching import distinguishes, instantiate
from steptp_dagster.strategies.streaming import exp_of_difference, is_minus_inf

#: Copies and maxima of maxima that are followed, at most.
_LINKS = 4


@dataclass(frozen=True, slots=True)
class Maker:
    """An equation that makes its target at least as large as its operands.

    ``step``: the index along which it is a running maximum, in the last subscript, or None.
    """

    statement: Statement
    operands: tuple[Expr, ...]
    step: str | None

    @property
    def target(self) -> Access:
        """What is written."""
        return self.statement.equation.target


class RowMaxima:
    """Answers for one program."""

    def __init__(self, accesses: Accesses, updates: Mapping[Path, Update]) -> None:
        """Nothing is worked out before it is asked for."""
        self._accesses = accesses
        self._updates = updates
        self._makers: dict[str, tuple[Maker, ...]] = {}

    def _makers_of(self, name: str) -> tuple[Maker, ...]:
        """The equations that take maxima into a tensor, in text order."""
        found = self._makers.get(name)
        if found is None:
            made = map(self._maker, writes_of(self._accesses, name))
            found = self._makers[name] = tuple([one for one in made if one is not None])
        return found

    def _maker(self, write: Use) -> Maker | None:
        statement = write.statement
        equation = statement.equation
        if equation.guard is not None or not DTYPES[equation.target.dtype].is_float:
            return None
        operands = tuple(self._operands(statement))
        return Maker(statement, operands, _step(statement)) if operands else None

    def below(self, lower: Expr, upper: Expr, reader: Statement, links: int = _LINKS) -> bool:
        """Whether ``lower`` is at most ``upper`` where ``reader`` computes them.

        Both may be NaN, or infinities of one sign.
        """
        if not isinstance(upper, Access):
            return False
        for made in self._makers_of(upper.name):
            if self._runs_up(made, lower, upper, reader):
                return True
            if any(self._taken(made, o, lower, upper, reader, links) for o in made.operands):
                return True
        copied = self._copied(lower, reader) if links else None
        if copied is None:
            return False
        return copied == upper or self.below(copied, upper, reader, links - 1)

    def _copied(self, expr: Expr, reader: Statement) -> Expr | None:
        """What an element is a copy of, where that has not changed; else None."""
        if not isinstance(expr, Access):
            return None
        for made in self._makers_of(expr.name):
            value = made.statement.equation.value
            if isinstance(value, Access) and value.dtype == expr.dtype:
                known = instantiate(made.target, expr, _shared(made.statement, reader))
                if (
                    known is not None
                    and indices_in(value) <= set(known)
                    and _within(made.statement, known, indices_in(value), reader)
                    and self._stays(made, (value,), reader)
                ):
                    return substitute(value, known)
        return None

    def shifts(self, made: Statement) -> bool:
        """Whether a maximum that an equation takes is subtracted from its own scores somewhere.

        Then it has to stay the maximum of those very scores, to the last digit.
        """
        name = made.equation.target.name
        if not self._makers_of(name):
            return False
        for i, nest in enumerate(self._accesses.signed.program.nests):
            for flow in flows(nest):
                for node in flow.subtracted.get(name, ()):
                    reader = self._accesses.statement_at[i, *flow.path]
                    if self.below(node.left, node.right, reader):
                        return True
        return False

    def sums_to_one(self, statement: Statement) -> bool:
        """Whether an update adds ``exp(S-M)`` over a whole row of which M is the maximum.

        One score of the row is the maximum itself, and its term is ``exp(0)``.
        """
        update = self._updates[statement.path]
        pair = None if update.operand is None else exp_of_difference(update.operand)
        if pair is None or update.op != "+" or update.subtract or statement.equation.guard:
            return False
        score, maximum = pair
        for made in self._makers_of(maximum.name):
            first = self._updates[made.statement.path]
            if first.kind != "update" or first.operand is None:
                continue
            if first.init != "identity" and not self._starts_below_all(made):
                continue
            if not self._taken(made, first.operand, score, maximum, statement, 0):
                continue
            known = instantiate(made.target, maximum, _shared(made.statement, statement))
            known = None if known is None else instantiate(first.operand, score, known)
            if known is not None and _whole_row(made.statement, first, statement, update, known):
                return True
        return False

    def _starts_below_all(self, made: Maker) -> bool:
        """Whether every other equation sets the maximum to ``-inf``."""
        writes = writes_of(self._accesses, made.target.name)
        others = [w.statement for w in writes if w.statement is not made.statement]
        return all(is_minus_inf(other.equation.value) for other in others)

    def _operands(self, statement: Statement) -> Iterator[Expr]:
        equation = statement.equation
        update = self._updates[statement.path]
        if update.kind == "update":
            if update.op == "max" and update.operand is not None:
                yield from _maxima(update.operand)
            return
        for operand in _maxima(equation.value):
            if operand is equation.value and not isinstance(operand, Access):
                return
            if all(a.name != equation.target.name for a in accesses_in(operand)):
                yield operand

    def _runs_up(self, made: Maker, lower: Expr, upper: Access, reader: Statement) -> bool:
        """Whether both are steps of one running maximum, the second not before the first."""
        if made.step is None or not isinstance(lower, Access) or lower.name != upper.name:
            return False
        if lower.subscripts[:-1] != upper.subscripts[:-1] or not self._stays(made, (), reader):
            return False
        return _ordered(lower.subscripts[-1], upper.subscripts[-1], reader)

    def _taken(
        self,
        made: Maker,
        operand: Expr,
        lower: Expr,
        upper: Access,
        reader: Statement,
        links: int,
    ) -> bool:
        """Whether ``upper`` is at least the operand as it stood, and that at least ``lower``."""
        target, wanted = made.target, upper
        shared = _shared(made.statement, reader)
        if made.step is not None:  # an earlier step will do
            target = replace(target, subscripts=target.subscripts[:-1])
            wanted = replace(upper, subscripts=upper.subscripts[:-1])
            shared.pop(made.step, None)
        known = instantiate(target, wanted, shared)
        if known is None or not _kept(operand, made.target, reader.equation.target.dtype):
            return False
        found = instantiate(operand, lower, known)
        if found is not None:
            return (
                self._reached(made, found, upper, reader)
                and _within(made.statement, found, indices_in(operand), reader)
                and self._stays(made, (operand,), reader)
            )
        if not links or not isinstance(operand, Access) or not indices_in(operand) <= set(known):
            return False
        between = substitute(operand, known)
        return (
            made.step is None
            and _within(made.statement, known, indices_in(operand), reader)
            and self._stays(made, (operand,), reader)
            and self.below(lower, between, reader, links - 1)
        )

    def _reached(
        self, made: Maker, known: Mapping[str, Expr], upper: Access, reader: Statement
    ) -> bool:
        """Whether a running maximum had taken the operand at the step that is read."""
        if made.step is None:
            return True
        at = known.get(made.step)
        return at is not None and _ordered(at, upper.subscripts[-1], reader)

    def _stays(self, made: Maker, operands: tuple[Expr, ...], reader: Statement) -> bool:
        """Whether the maximum is complete, and no operand changed since it was taken."""
        maker = made.statement
        shared = common_loops(maker.chain, reader.chain)
        if reader.order <= maker.order:
            return False
        read = [access for operand in operands for access in accesses_in(operand)]
        if any(access.scope != "g" for access in (made.target, *read)) and any(
            ref.loop.kind == "B" for ref in maker.chain[shared:]
        ):
            return False  # another thread's or block's values
        inside = {ref.name for ref in maker.chain[:shared]}
        if inside & set(self._updates[maker.path].repeating_loops):
            return False
        if not self._once(self._target_of(maker), shared):
            return False
        for use in writes_of(self._accesses, made.target.name):
            other = use.statement
            if other is not maker and (
                other.order > maker.order or not self._apart(use, maker, shared)
            ):
                return False
        for name in dict.fromkeys(access.name for access in read):
            for use in writes_of(self._accesses, name):
                if use.statement.order > maker.order or not self._apart(use, maker, shared):
                    return False
        return True

    def _target_of(self, made: Statement) -> Use:
        return self._accesses.part(made.path[0]).by_statement[made.path][0]

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


def _shared(made: Statement, reader: Statement) -> dict[str, Expr]:
    count = common_loops(made.chain, reader.chain)
    return {ref.name: Index(ref.name) for ref in made.chain[:count]}


def _whole_row(
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


def _step(statement: Statement) -> str | None:
    """The index along which ``N_{c}=max(if_then_else(c-1<start,-inf,N_{c-1}),S)`` runs."""
    equation = statement.equation
    match equation.value:
        case Call("max", (Call("if_then_else", (_, low, Access() as before)), _)):
            pass
        case _:
            return None
    target = equation.target
    if before.name != target.name or not target.subscripts or not is_minus_inf(low):
        return None
    last = target.subscripts[-1]
    if not isinstance(last, Index):
        return None
    previous = Binary("-", last, Int(1))
    loops = {ref.name: ref.loop for ref in statement.chain}
    loop = loops.get(last.name)
    first = equation.value.arguments[0]
    if (
        loop is None
        or before.subscripts != (*target.subscripts[:-1], previous)
        or not isinstance(first, Call)
        or not _is_start(first.arguments[0], previous, loop.start)
        or last.name in {n for s in target.subscripts[:-1] for n in indices_in(s)}
    ):
        return None
    return last.name


def _is_start(condition: Expr, previous: Expr, start: int) -> bool:
    return condition == Compare((previous, Int(start)), ("<",))


def _ordered(first: Expr, second: Expr, reader: Statement) -> bool:
    """Whether one subscript is never above another where ``reader`` reads."""
    one, two = _form(first, reader), _form(second, reader)
    if one is None or two is None:
        return False
    return reader.bounds.interval(add(two, one, -1))[0] >= 0


def _within(
    made: Statement, known: Mapping[str, Expr], used: frozenset[str], reader: Statement
) -> bool:
    """Whether the maximum was really taken over the score that is read."""
    for ref in made.chain:
        expr = known.get(ref.name)
        if expr is None:
            if ref.name in used:
                return False
            continue
        form = _form(expr, reader)
        if form is None:
            return False
        low, high = reader.bounds.interval(form)
        if low < ref.loop.start or high >= ref.loop.start + ref.loop.extent:
            return False
    return True


def _form(subscript: Expr, reader: Statement) -> Form | None:
    """A subscript over the indices around ``reader``; None where it reads a tensor."""
    if any(True for _ in accesses_in(subscript)):
        return None
    return Converter(reader.bounds, _unknown).form(subscript)


def _unknown(access: Access, converter: Converter) -> Form:
    """No index that is converted depends on a tensor."""
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
        if not DTYPES[operand.dtype].is_float:
            return False
        return operand.dtype == target.dtype or target.dtype in ("f32", "f64")
    return computed.bits <= DTYPES[target.dtype].bits
