"""Value facts of a program: sign, zero, bounds and finiteness of expressions and tensors.

``facts_of(program).of(expr, at=path)`` says what is known about an expression as the equation at
``path`` computes it. Facts go through tensors: what is known of a tensor is what holds for
everything that the program writes to it, sums and products of known length included. What each
claim means is said in ``value_facts``; two assumptions stand behind all of them:

* Inputs hold any number of their type, but never NaN. With ``inputs="masked"`` (the default) a
  float input without a declared range may also hold ``-inf``, which attention programs use as a
  mask; parameters, constants and ranges are finite. ``inputs="finite"`` excludes ``-inf``.
* The program is valid, so that no element is read that was not written.

Bounds come from interval arithmetic, rounded outwards and widened by the rounding of each type.
Beyond that there are a few rules about pairs: a square is not negative; ``a/(a+b)`` is at most 1;
a score minus the maximum of its row is at most 0 (``value_rows``), so its exponential is at most
1, and the sum of such exponentials over the row at least 1.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from math import prod
from typing import Final, Literal

from steptp_dagster.leir.accesses import Statement, Use, common_loops
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Binary, Expr, Inf, Int
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.regions import Region, covers, region
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.leir.typing import Typed, typed_equation, typed_expr
from steptp_dagster.leir.updates import Update
from steptp_dagster.leir.walk import Path, accesses_in, children
from steptp_dagster.strategies import value_operations as operations
from steptp_dagster.strategies.dataflow import Group, Groups, writes_of
from steptp_dagster.strategies.intervals import INF
from steptp_dagster.strategies.value_expressions import ExpressionFacts
from steptp_dagster.strategies.value_facts import ValueFact
from steptp_dagster.strategies.value_operations import UNKNOWN, joined, stated, stored
from steptp_dagster.strategies.value_rows import RowMaxima
from steptp_dagster.strategies.value_sums import accumulated, started

Inputs = Literal["masked", "finite"]
_KEPT: Final = 32
#: Rounds of the fixed point before bounds that still grow are given up.
_PATIENCE: Final = 3
#: Bounds at which a growing bound may come to rest.
_RESTS: Final = (0.0, 1.0)
_kept: OrderedDict[tuple[int, Inputs], "ValueFacts"] = OrderedDict()


def facts_of(signed: SignedProgram, *, inputs: Inputs = "masked") -> "ValueFacts":
    """The value facts of a valid program; those of the last few programs are kept."""
    key = (id(signed), inputs)
    found = _kept.get(key)
    if found is None or found.signed is not signed:
        found = _kept[key] = ValueFacts(signed, inputs)
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found


class ValueFacts(ExpressionFacts):
    """What is known about the values of one program."""

    def __init__(self, signed: SignedProgram, inputs: Inputs) -> None:
        """Nothing is worked out before it is asked for."""
        self.signed = signed
        self._masked = inputs == "masked"
        analysis = Analysis.of(signed)
        self._accesses, self._updates = analysis.accesses, analysis.updates
        self._rows = RowMaxima(self._accesses, self._updates)
        #: The values of equations, and the operands of updates.
        self._typed: dict[tuple[Path, bool], Typed] = {}
        self._written: dict[Path, ValueFact] = {}
        #: What holds once all iterations of a pure update are over, by the update's path.
        self._complete: dict[Path, ValueFact] = {}
        self._tensors: dict[str, ValueFact] = {}
        self._answers: dict[tuple[Path, Expr], ValueFact] = {}
        self._orders: dict[tuple[Expr, Expr, Path], bool] = {}
        self._touched: dict[tuple[Path, frozenset[str]], Region | None] = {}
        self._generic: dict[str, bool] = {}
        self._groups = Groups(self._accesses)

    # -- questions ---------------------------------------------------------------------------

    def of(self, expr: Expr, at: Path) -> ValueFact:
        """What is known of an expression in the place of the equation at ``at``.

        Raises KeyError where no equation stands at ``at``.
        """
        known = self._answers.get((at, expr))
        if known is not None:
            return known
        statement = self._accesses.statement_at[at]
        self._settle(expr)
        if isinstance(expr, Access):
            return self._answers.setdefault((at, expr), self._read(expr, statement) or UNKNOWN)
        found: ValueFact | None = None
        for context in self._contexts(expr, statement):
            fact = self._fact(typed_expr(expr, context), statement, {}) or UNKNOWN
            found = fact if found is None else joined(found, fact)
        return self._answers.setdefault((at, expr), found or UNKNOWN)

    def _contexts(self, expr: Expr, statement: Statement) -> tuple[str, ...]:
        """Target types that may decide in which type a part of an equation is computed.

        Numbers and indices take the type of what stands beside them, which a part does not show.
        """
        target = statement.equation.target.dtype
        leaves = [e for e in _leaves(expr) if not isinstance(e, Int | Inf)]
        if leaves and all(isinstance(e, Access) and DTYPES[e.dtype].is_float for e in leaves):
            return (target,)
        if any(isinstance(e, Access) and DTYPES[e.dtype].is_float for e in leaves):
            return tuple(dict.fromkeys((target, "f64")))
        return tuple(dict.fromkeys((target, "f32", "f64")))

    def is_shift(self, expr: Expr, at: Path) -> bool:
        """Whether an expression is a score minus the maximum of its row."""
        if not isinstance(expr, Binary) or expr.op != "-":
            return False
        return self._rows.below(expr.left, expr.right, self._accesses.statement_at[at])

    def makes_shift(self, at: Path) -> bool:
        """Whether an equation takes a maximum that is subtracted from its own scores somewhere."""
        return self._rows.shifts(self._accesses.statement_at[at])

    def not_above(self, lower: Expr, upper: Expr, at: Path) -> bool:
        """Whether one value is never above another one in the place of the equation at ``at``.

        Infinities of one sign count as equal; where one is NaN, nothing is said.
        """
        key = lower, upper, at
        known = self._orders.get(key)
        if known is None:
            known = self._orders[key] = (
                self._rows.below(lower, upper, self._accesses.statement_at[at])
                or self.of(lower, at).upper <= self.of(upper, at).lower
            )
        return known

    def tensor(self, name: str) -> ValueFact:
        """What holds for every element of a tensor that a program may read, at any time."""
        self._solve((name,))
        return self._held(name) or UNKNOWN

    def _held(self, name: str) -> ValueFact | None:
        """What is known of a tensor by now."""
        found = self._tensors.get(name)
        if found is None:
            variable = self.signed.signature.by_name.get(name)
            if variable is not None and variable.role != "output":
                found = self._tensors[name] = self._given(variable)
        return found

    def _given(self, variable: Variable) -> ValueFact:
        """What the signature says of a tensor that the program reads but does not write."""
        return source(variable, masked=self._masked)

    # -- tensors -----------------------------------------------------------------------------

    def _settle(self, expr: Expr) -> None:
        """Work out the facts of all tensors that an expression reads."""
        self._solve([access.name for access in accesses_in(expr)])

    def _solve(self, names: Iterable[str]) -> None:
        """Work out the facts of tensors, after those of all that they depend on.

        What is known of a tensor does not depend on what was asked before.
        """
        for group in self._groups.leading_to(names):
            self._solve_group(group)

    def _is_generic(self, name: str) -> bool:
        """Whether several equations read the tensor that they write; those are joined plainly."""
        found = self._generic.get(name)
        if found is None:
            weight = {"assignment": 0, "update": 1}
            kinds = [
                self._updates[use.statement.path].kind for use in writes_of(self._accesses, name)
            ]
            found = self._generic[name] = sum(weight.get(kind, 2) for kind in kinds) > 1
        return found

    def _solve_group(self, group: Group) -> None:
        """Go over the equations until nothing changes; bounds that keep growing are widened."""
        # what one pure update writes does not depend on what it read before
        first = self._updates[group.statements[0].path]
        settled = not group.cyclic or (len(group.statements) == 1 and first.kind == "update")
        for step in range(64):
            changed = False
            for statement in group.statements:
                found = self._store(statement)
                if found is None:
                    continue
                old = self._written.get(statement.path)
                new = found if old is None else joined(old, found)
                if new == old:
                    continue
                if old is not None and step > _PATIENCE:
                    new = _widened(old, new) if step <= 4 * _PATIENCE else UNKNOWN
                self._written[statement.path] = new
                name = statement.equation.target.name
                known = self._held(name)
                self._tensors[name] = new if known is None else joined(known, new)
                changed = True
            if settled or not changed:
                return
        raise AssertionError("value facts do not settle")

    def _store(self, statement: Statement) -> ValueFact | None:
        """What one equation writes, as far as its operands are known."""
        equation = statement.equation
        dtype = DTYPES[equation.target.dtype]
        update = self._updates[statement.path]
        name = equation.target.name
        if update.kind != "update" or self._is_generic(name):
            if update.init == "identity" and self._held(name) is None:
                self._tensors[name] = started(update, dtype)
            value = self._value(equation.value, statement)
            return None if value is None else stored(value, dtype)
        if update.operand is None:
            return None
        operand = self._value(update.operand, statement)
        if operand is None:
            return None
        start = self._start(statement, update)
        if start is None and update.init != "identity":
            return None
        extents = {ref.name: ref.loop.extent for ref in statement.chain}
        times = prod(extents[n] for n in update.repeating_loops)
        surely = 1
        if equation.guard is None and update.repeating_loops == update.reduction_loops:
            surely = times
        if update.subtract:
            operand = operations.negated(operand, dtype.evaluation)
        operand = operations.converted(operand, dtype.evaluation)
        always, at_last = accumulated(update, operand, start, (surely, times), dtype)
        if self._rows.sums_to_one(statement) and at_last.nonnegative:
            at_last = at_last._replace(
                lower=max(at_last.lower, 1.0),
                plus=True,
                exact_nonzero=True,
                why="one term of a softmax row is exp(0)=1",
            )
        self._complete[statement.path] = at_last
        return always

    def _start(self, statement: Statement, update: Update) -> ValueFact | None:
        """What other equations write to the target; None for an implicit start."""
        if update.init == "identity":
            return None
        found: ValueFact | None = None
        for use in writes_of(self._accesses, statement.equation.target.name):
            if use.statement is not statement and use.statement.path in self._written:
                other = self._written[use.statement.path]
                found = other if found is None else joined(found, other)
        return found

    def _value(self, expr: Expr, statement: Statement) -> ValueFact | None:
        key = (statement.path, expr is statement.equation.value)
        typed = self._typed.get(key)
        if typed is None:
            typed = self._typed[key] = self._typed_part(expr, statement)
        return self._fact(typed, statement, {})

    def _typed_part(self, expr: Expr, statement: Statement) -> Typed:
        """The value of an equation, or a part of it, with types.

        A part that reads a tensor has the types that it has on its own.
        """
        whole = typed_equation(statement.equation).value
        if expr is statement.equation.value or expr == whole.expr:
            return whole
        if any(True for _ in accesses_in(expr)):
            for node in whole.walk():
                if node.expr == expr:
                    return node
        return typed_expr(expr, statement.equation.target.dtype)

    def _read(self, access: Access, statement: Statement) -> ValueFact | None:
        found = self._held(access.name)
        own = self._updates[statement.path]
        if access.name == statement.equation.target.name and own.init == "identity":
            start = started(own, DTYPES[access.dtype])  # which nobody but the update reads
            return start if found is None else joined(found, start)
        if found is None or self._is_generic(access.name):
            return found
        writes = writes_of(self._accesses, access.name)
        updates = [w for w in writes if w.statement.path in self._complete]
        if len(updates) != 1:
            return found
        use = self._use(access, statement)
        if use is not None and self._is_over(updates[0], writes, use):
            return self._complete[updates[0].statement.path]
        return found

    def _use(self, access: Access, statement: Statement) -> Use | None:
        """The read in an equation, or one that might stand there."""
        part = self._accesses.part(statement.path[0])
        for use in part.by_statement[statement.path]:
            if not use.write and use.access == access:
                return use
        if access.scope != "g" or any(True for s in access.subscripts for _ in accesses_in(s)):
            return None
        convert = self._accesses.converter(statement.path).form
        forms = tuple(f for f in map(convert, access.subscripts) if f is not None)
        if len(forms) < len(access.subscripts):
            return None
        return Use(statement, access, False, "value", statement.guard, forms, 0)

    def _is_over(self, update: Use, writes: list[Use], reader: Use) -> bool:
        """Whether all iterations that update what is read are over, and nothing comes between."""
        made = update.statement
        shared = common_loops(made.chain, reader.chain)
        names = {ref.name for ref in reader.chain[:shared]}
        if reader.statement.order <= made.order or names & set(
            self._updates[made.path].repeating_loops
        ):
            return False
        for other in writes:
            if other is update:
                continue
            together = common_loops(other.chain, made.chain)
            if other.statement.order > made.order or together > shared:
                return False
        if update.opaque or update.on_data or len(update.forms) != len(reader.forms):
            return False
        key = made.path, frozenset(names)
        if key not in self._touched:
            self._touched[key] = region(update, key[1])
        touched = self._touched[key]
        return touched is not None and covers(touched, reader)


def source(variable: Variable, *, masked: bool) -> ValueFact:
    """What the signature says about a tensor that the program does not write."""
    dtype = DTYPES[variable.dtype]
    if variable.values is not None:
        values = [float(v) for v in variable.values]
        ends = (min(values), max(values))
        fact = stated(ends, dtype, "the values of a constant", whole=all(map(_whole, values)))
        return fact._replace(plus=fact.lower > 0.0)
    if variable.low is not None and variable.high is not None:
        ends = (float(variable.low), float(variable.high))
        return stated(ends, dtype, "its declared range")
    return operations.of_type(variable.dtype, masked=masked and variable.role == "input")


def _leaves(expr: Expr) -> Iterator[Expr]:
    """Numbers, indices and tensors, subscripts aside."""
    below = () if isinstance(expr, Access) else children(expr)
    if not below:
        yield expr
    for child in below:
        yield from _leaves(child)


def _whole(value: float) -> bool:
    return abs(value) < INF and value == int(value)


def _widened(old: ValueFact, new: ValueFact) -> ValueFact:
    """Bounds that grew go to the next place of rest, so that the fixed point is reached."""
    lower, upper = new.lower, new.upper
    if lower < old.lower:
        lower = max((r for r in (-1.0, *_RESTS) if r <= lower), default=-INF)
    if upper > old.upper:
        upper = min((r for r in (-1.0, *_RESTS) if r >= upper), default=INF)
    return new._replace(lower=lower, upper=upper, plus=new.plus and lower >= 0.0)
