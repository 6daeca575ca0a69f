"""The pieces of streaming softmax: recognising them, and the running maximum and sums.

A maximum ``M=max(M,S)`` followed by ``Z=Z+exp(S-M)`` over the same loop can be computed in one
pass, and so can a weighted sum ``O=O+exp(S-M)/Z*X``, by the recurrence (N running maximum, R
running sum relative to it, G running weighted sum relative to it)

    N_c = max(N_{c-1}, S_c)
    R_c = R_{c-1}*exp(N_{c-1}-N_c) + exp(S_c-N_c)
    G_c = G_{c-1}*exp(N_{c-1}-N_c) + exp(S_c-N_c)*X_c

and ``O=G/R`` after the last step. Every term in R and G was made relative to the maximum of its
time; ``exp(S_j-N_{c-1})*exp(N_{c-1}-N_c) = exp(S_j-N_c)``, so one factor takes them all to the new
one, and no exponent is ever positive. A term counts as 0 while its score, or the old maximum, is
-inf: otherwise a row that starts with -inf would take the difference of two infinities.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.updates import Operator
from steptp_dagster.leir.walk import children, iter_expr, substitute
from steptp_dagster.strategies.matching import instantiate

MINUS_INF = Unary("-", Inf())
ZERO = Int(0)


def exp_of_difference(expr: Expr) -> tuple[Expr, Access] | None:
    """``(S, M)`` for ``exp(S-M)`` with a tensor ``M``, else None."""
    match expr:
        case Call("exp", (Binary("-", score, Access() as maximum),)):
            return score, maximum
    return None


def is_minus_inf(expr: Expr) -> bool:
    """Whether the expression is the literal ``-inf``."""
    return expr == MINUS_INF


#: What each operation starts from.
IDENTITY: Final[dict[Operator, Expr]] = {
    "max": MINUS_INF,
    "min": Inf(),
    "+": ZERO,
    "*": Int(1),
}


def is_identity(op: Operator, expr: Expr) -> bool:
    """Whether the expression is a literal that the operation may start from."""
    identity = IDENTITY[op]
    if isinstance(identity, Int):
        return isinstance(expr, Int | Real) and float(expr.value) == identity.value
    return expr == identity


def normalises(
    value: Expr, score: Expr, maximum: Access, total: Access, shared: Iterable[str]
) -> bool:
    """Whether a part of the value is a softmax, log-softmax or logsumexp of these scores.

    ``score``, ``maximum`` and ``total`` are given in the indices of the maximum; ``shared`` names
    the loops that both places stand under.
    """
    templates = (*_relative(score, maximum, total), *_absolute(maximum, total))
    known = {index: Index(index) for index in shared}
    return any(
        instantiate(template, expr, known) is not None
        for expr in iter_expr(value)
        for template in templates
    )


def absorbs(
    value: Expr, score: Expr, maximum: Access, total: Access, shared: Iterable[str]
) -> bool:
    """Whether the value reads the sum in nothing but softmax and log-softmax of these scores.

    Those are NaN for a row of nothing but -inf, whatever the sum is: they take the difference of
    a score and the maximum. Parameters as in ``normalises``.
    """
    templates = tuple(_relative(score, maximum, total))
    known = {index: Index(index) for index in shared}

    def exposed(expr: Expr) -> bool:
        if any(instantiate(template, expr, known) is not None for template in templates):
            return False
        own = isinstance(expr, Access) and expr.name == total.name
        return own or any(exposed(child) for child in children(expr))

    return not exposed(value)


def _relative(score: Expr, maximum: Access, total: Access) -> Iterator[Expr]:
    """Softmax and log-softmax: a score relative to maximum and sum."""
    shifted = Binary("-", score, maximum)
    log = Call("log", (total,))
    yield Binary("/", Call("exp", (shifted,)), total)
    yield Binary("-", shifted, log)
    yield Binary("-", score, Binary("+", maximum, log))
    yield Binary("-", score, Binary("+", log, maximum))


def _absolute(maximum: Access, total: Access) -> Iterator[Expr]:
    """Logsumexp."""
    log = Call("log", (total,))
    yield Binary("+", maximum, log)
    yield Binary("+", log, maximum)


def faithful_total(maximum: Expr, total: Expr) -> Expr:
    """A streamed sum, but NaN for a row of nothing but -inf, as the sum of two passes is.

    There the running sum is 0, as all its terms count as 0; a plain pass takes the difference of
    two infinities in each. It matters where something else than a softmax reads the sum.
    """
    return _when(_equal(maximum, MINUS_INF), Binary("-", maximum, maximum), total)


def streamed_total(expr: Expr) -> Expr:
    """The streamed sum in ``faithful_total``; other expressions as they are."""
    match expr:
        case Call("if_then_else", (Compare((maximum, _)), Binary("-"), total)) if (
            faithful_total(maximum, total) == expr
        ):
            return total
    return expr


def finite_shift(maximum: Expr) -> Expr:
    """A maximum, or 0 where it is infinite, so that no difference of infinities is taken.

    PyTorch's ``logsumexp`` is relative to it: a row of nothing but -inf has the sum 0 then.
    """
    return _when(_equal(Call("abs", (maximum,)), Inf()), ZERO, maximum)


def shift_of(expr: Expr) -> Expr:
    """The maximum in ``finite_shift``; other expressions as they are."""
    match expr:
        case Call("if_then_else", (_, _, Access() as maximum)) if finite_shift(maximum) == expr:
            return maximum
    return expr


def shifted_total(maximum: Expr, total: Expr) -> Expr:
    """A streamed sum as the sum relative to ``finite_shift`` is.

    Rows of nothing but -inf have the sum 0 in both; only where a score is infinite itself, which
    the running sum turns into NaN, is the other one infinite.
    """
    return _when(_equal(maximum, Inf()), maximum, total)


def unshifted_total(expr: Expr) -> Expr:
    """The streamed sum in ``shifted_total``; other expressions as they are."""
    match expr:
        case Call("if_then_else", (Compare((maximum, _)), _, total)) if (
            shifted_total(maximum, total) == expr
        ):
            return total
    return expr


def _when(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return Call("if_then_else", (condition, yes, no))


def _equal(a: Expr, b: Expr) -> Expr:
    return Compare((a, b), ("==",))


@dataclass(frozen=True, slots=True)
class Weighting:
    """What weights are multiplied by: ``operand``, left of them if ``first``.

    Where ``hidden`` holds, a condition on the row, all weights are 0 instead, as a softmax for
    rows that are masked as a whole has them.
    """

    operand: Expr
    first: bool
    hidden: Expr | None

    def product(self, weight: Expr) -> Expr:
        """The weight times its operand, in the order in which the program has them."""
        if self.hidden is not None:
            weight = _when(self.hidden, ZERO, weight)
        left, right = (self.operand, weight) if self.first else (weight, self.operand)
        return Binary("*", left, right)

    def kept(self, weighted: Expr, rescaled: Expr) -> Expr:
        """The old weighted sum beside a new product: rescaled, or as it is where it is hidden.

        A hidden row sums up zeros times operands whatever its scores are, so that these must not
        come in by the factor.
        """
        return rescaled if self.hidden is None else _when(self.hidden, weighted, rescaled)

    def normalised(self, weighted: Expr, total: Expr) -> Expr:
        """The weighted sum by the sum of the weights; by 1 where they are hidden."""
        if self.hidden is not None:
            total = _when(self.hidden, Int(1), total)
        return Binary("/", weighted, total)

    def substituted(self, by: Mapping[str, Expr]) -> "Weighting":
        """The same with indices replaced."""
        hidden = None if self.hidden is None else substitute(self.hidden, by)
        return Weighting(substitute(self.operand, by), self.first, hidden)


def rescaled(total: Expr, old: Expr, new: Expr) -> Expr:
    """The old running sum relative to the new maximum; 0 while the old one is -inf."""
    factor = Call("exp", (Binary("-", old, new),))
    return _when(_equal(old, MINUS_INF), ZERO, Binary("*", total, factor))


def weighted_parts(value: Expr) -> tuple[Expr, Access, Weighting] | None:
    """Score, running maximum at this step, and what weights are multiplied by, or None.

    Reads them off the right side of a running weighted sum; the caller rebuilds the equation and
    compares, so that nothing but the very recurrence matches.
    """
    if not isinstance(value, Binary) or not isinstance(value.right, Binary):
        return None
    left, right = value.right.left, value.right.right
    for weight, operand, first in ((left, right, False), (right, left, True)):
        hidden, inner = hidden_weight(weight)
        match inner:
            case Call("if_then_else", (_, _, Call("exp", (Binary("-", score, Access() as n),)))):
                return score, n, Weighting(operand, first, hidden)
    return None


def hidden_weight(weight: Expr) -> tuple[Expr | None, Expr]:
    """The condition on which a weight is 0, if there is one, and what it is otherwise.

    The condition around an exponential itself is no such: that is part of ``term``.
    """
    match weight:
        case Call("if_then_else", (condition, zero, inner)) if zero == ZERO:
            if not (isinstance(inner, Call) and inner.function == "exp"):
                return condition, inner
    return None, weight


def shrink(old: Expr, new: Expr) -> Expr:
    """The factor that takes a running sum from the old maximum to the new one; 0 from -inf."""
    return _when(_equal(old, MINUS_INF), ZERO, Call("exp", (Binary("-", old, new),)))


def term(score: Expr, new: Expr) -> Expr:
    """``exp(S-N)``, and 0 where the score is -inf."""
    return _when(_equal(score, MINUS_INF), ZERO, Call("exp", (Binary("-", score, new),)))


def infinity_tests(value: Expr) -> tuple[str, ...]:
    """What an expression compares with -inf, as text, by first occurrence."""
    found = (
        expr_text(node.operands[0])
        for node in iter_expr(value)
        if isinstance(node, Compare) and node.operands[1:] == (MINUS_INF,)
    )
    return tuple(dict.fromkeys(found))


def history_equations(
    score: Expr, maximum: Access, total: Access, loop: str, start: int
) -> tuple[Equation, Equation]:
    """The recurrence with one element per step; both arrays have the loop's index last."""
    here = Index(loop)
    before = Binary("-", here, Int(1))
    first = Compare((before, Int(start)), ("<",))
    n, n_before = indexed(maximum, here), indexed(maximum, before)
    r, r_before = indexed(total, here), indexed(total, before)
    running_max = Call("max", (_when(first, MINUS_INF, n_before), score))
    kept = _when(first, ZERO, rescaled(r_before, n_before, n))
    return Equation(n, running_max), Equation(r, Binary("+", kept, term(score, n)))


def weighted_equation(
    score: Expr, maximum: Access, weighted: Access, weighting: Weighting, loop: str, start: int
) -> Equation:
    """The recurrence of the weighted sum with one element per step, beside the running maximum.

    The old sum is multiplied even by a factor of 0: a weight of 0 times an infinite operand is no
    number, in a plain sum as well.
    """
    here = Index(loop)
    before = Binary("-", here, Int(1))
    first = Compare((before, Int(start)), ("<",))
    n, n_before = indexed(maximum, here), indexed(maximum, before)
    g, g_before = indexed(weighted, here), indexed(weighted, before)
    scaled = Binary("*", g_before, shrink(n_before, n))
    kept = _when(first, ZERO, weighting.kept(g_before, scaled))
    return Equation(g, Binary("+", kept, weighting.product(term(score, n))))


def rolling_equations(
    score: Expr, maximum: Access, new: Access, total: Access
) -> tuple[Equation, Equation, Equation]:
    """The recurrence on state that each step overwrites; ``new`` is the next maximum."""
    return (
        Equation(new, Call("max", (maximum, score))),
        Equation(total, Binary("+", rescaled(total, maximum, new), term(score, new))),
        Equation(maximum, new),
    )


def indexed(tensor: Access, last: Expr) -> Access:
    """The access with one more subscript at the end."""
    return Access(tensor.name, tensor.dtype, tensor.scope, (*tensor.subscripts, last))
