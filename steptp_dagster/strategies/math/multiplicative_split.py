"""multiplicative_split: a value is divided and multiplied by one that exists already."""

from collections.abc import Iterator

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Located, Path
from steptp_dagster.strategies.algebra.conditions import CLAIMS
from steptp_dagster.strategies.algebra.data import values_of
from steptp_dagster.strategies.algebra.rules import Match, Place, Rule
from steptp_dagster.strategies.algebra.splits import (
    TIMES_ONE,
    SplitStrategy,
    operands,
    reads,
    split_factor,
)


class MultiplicativeSplit(SplitStrategy):
    """Divide and multiply by a value of the program: ``x`` becomes ``x/y*y``.

    ``y`` is an element of a tensor that stands already and that the equation can read at its own
    indices. It must be a number of moderate size for all data: neither zero nor infinite, as the
    sum of a softmax row (at least 1) is, or data of a declared range.

        === example
        --- before
        # input A f32[2,3]
        # input C f32[3] in 0.5..4.0
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}+1;];
        B^{3}_{tx=0}[D^{f32,g}_{tx}=C^{f32,g}_{tx}*2;];
        --- site statement 1.1: choice=C^{f32,g}_{a}, rule=times-one
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=(A^{f32,g}_{tx,a}+1)/C^{f32,g}_{a}*C^{f32,g}_{a};];
        B^{3}_{tx=0}[D^{f32,g}_{tx}=C^{f32,g}_{tx}*2;];
        --- numerics reassociated
    """

    name = "multiplicative_split"
    summary = "Divides a value by one that exists already and multiplies by it again."
    preconditions = (
        "types-differ",
        "factor-of-unknown-size",
        "value-may-overflow",
        "result-decides",
    )
    rules = (TIMES_ONE,)

    def places(self, one: Located) -> Iterator[Place]:
        """The value as a whole, or the operand of an update."""
        return operands(one)

    def suits(self, program: SignedProgram, path: Path, expr: Expr, value: Access) -> bool:
        """A moderate value that the part does not read."""
        if reads(expr, value.name):
            return False
        return CLAIMS["moderate"](values_of(program).of(value, path))

    def match(
        self, program: SignedProgram, path: Path, expr: Expr, value: Access
    ) -> tuple[Rule, Match] | None:
        """The law with one value."""
        return None if reads(expr, value.name) else (TIMES_ONE, split_factor(expr, value))
