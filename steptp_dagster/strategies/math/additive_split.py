"""additive_split: a value that exists already is added and subtracted again."""

from collections.abc import Iterator

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Located, Path
from steptp_dagster.strategies.algebra.data import values_of
from steptp_dagster.strategies.algebra.rules import Match, Place, Rule
from steptp_dagster.strategies.algebra.splits import (
    DIFFERENCE_BETWEEN,
    PLUS_NOTHING,
    SplitStrategy,
    between,
    differences,
    is_difference,
    operands,
    reads,
    sides,
    sinks,
    split_difference,
    split_term,
)


class AdditiveSplit(SplitStrategy):
    """Add and subtract a value of the program.

    Either ``x`` becomes ``x+y-y``, where ``y`` is a number that is never larger than ``x``, so
    that no digit of ``x`` is lost. Or a difference takes a step in between: ``a-b`` becomes
    ``(a-y)+(y-b)``, where ``y`` is known to lie between ``a`` and ``b``, as a running maximum lies
    between a score and the maximum of its row; both steps have one sign, and nothing cancels.

        === example
        --- before
        # input A f32[2,3] in -9.0..9.0
        # input C f32[3] in 0.0..1.0
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}**2+1;];
        B^{3}_{tx=0}[D^{f32,g}_{tx}=C^{f32,g}_{tx}*2;];
        --- site statement 1.1: choice=C^{f32,g}_{a}, rule=plus-nothing
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}**2+1+C^{f32,g}_{a}-C^{f32,g}_{a};];
        B^{3}_{tx=0}[D^{f32,g}_{tx}=C^{f32,g}_{tx}*2;];
        --- numerics reassociated
    """

    name = "additive_split"
    summary = "Adds a value that exists already and subtracts it again."
    preconditions = (
        "types-differ",
        "term-may-be-infinite",
        "term-may-be-larger",
        "not-between",
        "value-may-overflow",
        "result-decides",
    )
    rules = (PLUS_NOTHING, DIFFERENCE_BETWEEN)

    def places(self, one: Located) -> Iterator[Place]:
        """The value as a whole or the operand of an update; then every difference."""
        whole = tuple(operands(one))
        yield from whole
        yield from (p for p in differences(one) if p.at not in {place.at for place in whole})

    def suits(self, program: SignedProgram, path: Path, expr: Expr, value: Access) -> bool:
        """A value in between, or a number that is no larger."""
        if self._steps_between(program, path, expr, value):
            return True
        if reads(expr, value.name):
            return False
        facts = values_of(program)
        least = facts.of(expr, path).lower
        if least < 0.0:
            return False
        own = facts.of(value, path)
        return own.finite and own.nonnegative and least >= own.upper

    def match(
        self, program: SignedProgram, path: Path, expr: Expr, value: Access
    ) -> tuple[Rule, Match] | None:
        """A difference takes a value in between, anything else takes it as a term."""
        steps = self._steps_between(program, path, expr, value)
        if not steps and reads(expr, value.name):
            return None
        # what neither suits is offered as a step, to be refused
        if steps or (is_difference(expr) and not self.suits(program, path, expr, value)):
            sinking = sinks(program, path, sides(expr)[0])
            return DIFFERENCE_BETWEEN, split_difference(expr, value, sinking=sinking)
        return PLUS_NOTHING, split_term(expr, value)

    def _steps_between(self, program: SignedProgram, path: Path, expr: Expr, value: Access) -> bool:
        if not is_difference(expr):
            return False
        a, b = sides(expr)
        return value not in (a, b) and between(program, path, a, value, b)
