"""exponential_split: the exponential of a difference is split at a value in between."""

from collections.abc import Iterator

from steptp_dagster.leir.ast import Access, Binary, Expr
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Located, Path
from steptp_dagster.strategies.algebra.exponentials import exponent_of
from steptp_dagster.strategies.algebra.places import places
from steptp_dagster.strategies.algebra.rules import Match, Place, Rule
from steptp_dagster.strategies.algebra.splits import (
    EXPONENTIAL_BETWEEN,
    EXPONENTIAL_OF_SMALL,
    SplitStrategy,
    between,
    sides,
    sinks,
    small,
    split_exponential,
)


class ExponentialSplit(SplitStrategy):
    """Split the exponential of a difference at a value that lies between its two sides.

    This is the algebra of a streaming softmax: with the running maximum N between a score and the
    maximum of its row, ``exp(S-M)`` is ``exp(S-N)*exp(N-M)``, and neither factor exceeds 1. That
    the value lies between is proved (a running maximum is no smaller than any score that it has
    seen and no larger than a later one); values that are all small will do as well. Where data
    may be minus infinity, a factor whose difference would be one of two infinities is 0.

        === example
        --- before
        # input S f32[2,4]
        # output E f32[2,4]
        B^{2}_{tx=0}L^{4}_{a=0}[N^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,N^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{4}_{a=0}[E^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,3});];
        --- site statement 2.1: choice=N^{f32,g}_{tx,a}, rule=exponential-between
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[N^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,N^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{4}_{a=0}[E^{f32,g}_{tx,a}=if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,a}))*if_then_else(N^{f32,g}_{tx,a}==-inf,0,exp(N^{f32,g}_{tx,a}-N^{f32,g}_{tx,3}));];
        --- numerics reassociated
    """

    name = "exponential_split"
    summary = "Splits the exponential of a difference at a value between its sides."
    preconditions = (
        "types-differ",
        "not-between",
        "exponents-of-unknown-size",
        "value-may-overflow",
        "result-decides",
    )
    rules = (EXPONENTIAL_BETWEEN, EXPONENTIAL_OF_SMALL)
    operators = frozenset(("exp", "-"))

    def places(self, one: Located) -> Iterator[Place]:
        """Every exponential of a difference."""
        return places(one.equation, _of_difference)

    def suits(self, program: SignedProgram, path: Path, expr: Expr, value: Access) -> bool:
        """A value in between, or a small one beside small ones."""
        a, b = sides(exponent_of(expr))
        if value in (a, b):
            return False
        return between(program, path, a, value, b) or small(program, path, (a, value, b))

    def match(
        self, program: SignedProgram, path: Path, expr: Expr, value: Access
    ) -> tuple[Rule, Match] | None:
        """By the order of the three values, unless all of them are small."""
        a, b = sides(exponent_of(expr))
        if value in (a, b):
            return None
        mild = small(program, path, (a, value, b))
        rule = EXPONENTIAL_OF_SMALL if mild else EXPONENTIAL_BETWEEN
        sinking = sinks(program, path, a)
        return rule, split_exponential(expr, value, mild=mild, sinking=sinking)


def _of_difference(expr: Expr) -> bool:
    exponent = exponent_of(expr)
    return isinstance(exponent, Binary) and exponent.op == "-"
