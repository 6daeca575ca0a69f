"""Following the weights of a weighted sum: to a softmax, or to exponentials of differences.

Sums and maxima may be relative to a ``finite_shift``. They differ from plain ones for rows of
nothing but -inf and for rows with an infinite score; there some weight, and with it the weighted
sum of the row, is no number either way.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Binary, Call, Expr
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.dataflow import flow_at
from steptp_dagster.strategies.pieces import expanded
from steptp_dagster.strategies.streaming import Weighting, exp_of_difference, hidden_weight


@dataclass(frozen=True, slots=True)
class Weights:
    """Followed weights: the softmax in the reader's indices and the tensors on the way."""

    hidden: Expr | None
    score: Expr
    maximum: Access
    total: Access
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """What is summed up."""

    weights: Weights
    weighting: Weighting


def product_of(
    program: SignedProgram,
    statement: Statement,
    follow: Callable[[SignedProgram, Statement, Expr], Weights | None],
) -> Product | None:
    """What a plain sum adds up, if one factor is followed to weights; it may be stored."""
    path = statement.path
    if not flow_at(program.program.nests[path[0]], path[1:]).may_update_by("+"):
        return None
    update = Analysis.of(program).updates[path]
    if update.op != "+" or update.subtract or update.operand is None:
        return None
    chain: list[str] = []
    operand = expanded(program, statement, update.operand, chain)
    if not isinstance(operand, Binary) or operand.op != "*":
        return None
    for factor, other, first in (
        (operand.left, operand.right, False),
        (operand.right, operand.left, True),
    ):
        weights = follow(program, statement, factor)
        if weights is not None:
            weights = replace(weights, chain=(*chain, *weights.chain))
            return Product(weights, Weighting(other, first, weights.hidden))
    return None


def softmax_at(program: SignedProgram, reader: Statement, weights: Expr) -> Weights | None:
    """Weights followed to a softmax, which may be hidden for whole rows."""
    chain: list[str] = []
    hidden, softmax = hidden_weight(expanded(program, reader, weights, chain))
    softmax = expanded(program, reader, softmax, chain)
    if not isinstance(softmax, Binary) or softmax.op != "/":
        found = _by_logarithm(program, reader, softmax)
        if found is None:
            return None
        way = tuple(dict.fromkeys((*chain, *found.chain)))
        return replace(found, hidden=hidden, chain=way)
    relative = exponential_at(program, reader, softmax.left)
    total = expanded(program, reader, softmax.right, chain, shifts=True)
    if relative is None or not isinstance(total, Access):
        return None
    names = (*chain, *relative.chain, total.name)
    return replace(relative, hidden=hidden, total=total, chain=tuple(dict.fromkeys(names)))


def _by_logarithm(program: SignedProgram, reader: Statement, weights: Expr) -> Weights | None:
    """Weights followed to ``exp(S-(M+log(Z)))``, relative to the logarithm of the sum."""
    chain: list[str] = []
    pair = _difference(program, reader, weights, chain)
    if pair is None:
        return None
    both = expanded(program, reader, pair[1], chain)
    if not isinstance(both, Binary) or both.op != "+":
        return None
    for left, right in ((both.left, both.right), (both.right, both.left)):
        match right:
            case Call("log", (inside,)):
                way = list(chain)  # of this order alone
                maximum = expanded(program, reader, left, way, shifts=True)
                total = expanded(program, reader, inside, way, shifts=True)
                if isinstance(maximum, Access) and isinstance(total, Access):
                    names = dict.fromkeys((*way, maximum.name, total.name))
                    return Weights(None, pair[0], maximum, total, tuple(names))
    return None


def exponential_at(program: SignedProgram, reader: Statement, weights: Expr) -> Weights | None:
    """Weights followed to ``exp(S-M)``; their sum is not known yet."""
    chain: list[str] = []
    top = expanded(program, reader, weights, chain)
    pair = _difference(program, reader, top, chain)
    if pair is None:
        return None
    maximum = expanded(program, reader, pair[1], chain, shifts=True)
    if not isinstance(maximum, Access):
        return None
    return Weights(None, pair[0], maximum, maximum, (*dict.fromkeys(chain), maximum.name))


def _difference(
    program: SignedProgram, reader: Statement, weights: Expr, chain: list[str]
) -> tuple[Expr, Access] | None:
    """``(S, M)`` of ``exp(S-M)``, where the difference may be stored."""
    if isinstance(weights, Call) and weights.function == "exp":
        inside = expanded(program, reader, weights.arguments[0], chain)
        weights = replace(weights, arguments=(inside,))
    return exp_of_difference(weights)
