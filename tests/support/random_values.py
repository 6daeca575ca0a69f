"""Random expressions whose subscripts stay in bounds and whose values stay finite.

Every expression comes with an interval that holds its value, so that logarithms, roots and
divisions are made only where they are safe.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Expr, Int, Real, Unary
from steptp_dagster.leir.dtypes import DTYPES

#: Values are kept below this in magnitude, integers below the second bound.
FLOAT_BOUND = 1e4
INTEGER_BOUND = 120


@dataclass(frozen=True)
class Tensor:
    """A tensor that may be read: every element of ``shape`` was written.

    ``low`` and ``high`` hold its values. ``table``: a checker can know that too, because the
    signature states it or one affine equation defines it.
    """

    name: str
    dtype: str
    scope: str
    shape: tuple[int, ...]
    low: float
    high: float
    table: bool = False

    def at(self, *subscripts: Expr) -> Access:
        """An access to the tensor."""
        return Access(self.name, self.dtype, self.scope, subscripts)


@dataclass(frozen=True)
class Coordinate:
    """An index expression with values 0 .. extent-1 wherever it is used."""

    expr: Expr
    extent: int


@dataclass(frozen=True)
class Ranged:
    """An expression and an interval that holds its value."""

    expr: Expr
    low: float
    high: float

    @property
    def size(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))


def plus(left: Expr, right: int) -> Expr:
    """``left + right``, or ``left - -right``."""
    if right == 0:
        return left
    return Binary("+" if right > 0 else "-", left, Int(abs(right)))


def times(left: Expr, right: int) -> Expr:
    """``left * right``."""
    return left if right == 1 else Binary("*", left, Int(right))


class Values:
    """Makes expressions over some tensors and coordinates."""

    def __init__(
        self, rng: random.Random, tensors: Sequence[Tensor], coordinates: Sequence[Coordinate]
    ) -> None:
        self.rng = rng
        self.tensors = list(tensors)
        self.coordinates = list(coordinates)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    # -- subscripts

    def subscript(self, extent: int, nested: bool = True) -> Expr:
        """An expression with values in 0 .. extent-1."""
        rng = self.rng
        if nested and self.chance(0.3):
            tables = [t for t in self.tensors if t.table and t.low >= 0 and t.high < extent]
            if tables:
                table = rng.choice(tables)
                return table.at(*(self.subscript(n, nested=False) for n in table.shape))
        candidates: list[Expr] = []
        for c in self.coordinates:
            if c.extent == extent:
                candidates += [c.expr] * 4
            if c.extent <= extent:
                candidates += [c.expr, Binary("-", Int(extent - 1), c.expr)]
            if c.extent < extent:
                candidates.append(plus(c.expr, rng.randint(1, extent - c.extent)))
            factor = rng.randint(2, 3)
            if (c.extent - 1) // factor < extent:
                candidates.append(Binary("//", c.expr, Int(factor)))
            candidates.append(Binary("%", plus(c.expr, rng.randint(0, 2)), Int(extent)))
        for c in self.coordinates:
            for d in self.coordinates:
                if c is not d and c.extent * d.extent <= extent:
                    candidates.append(Binary("+", times(c.expr, d.extent), d.expr))
        if not candidates or self.chance(0.08):
            return Int(rng.randrange(extent))
        return rng.choice(candidates)

    def read(self, tensor: Tensor) -> Access:
        """An access in bounds."""
        return tensor.at(*(self.subscript(extent) for extent in tensor.shape))

    def padded_read(self, tensor: Tensor) -> Ranged | None:
        """``if_then_else(0<=c+k<n,A_{..c+k..},0)``, with the index out of bounds elsewhere."""
        if not tensor.shape or not self.coordinates:
            return None
        where = self.rng.randrange(len(tensor.shape))
        extent = tensor.shape[where]
        coordinate = self.rng.choice(self.coordinates)
        shifted = plus(coordinate.expr, self.rng.choice((-2, -1, 1, 2)))
        subscripts = [self.subscript(n) for n in tensor.shape]
        subscripts[where] = shifted
        access = tensor.at(*subscripts)
        zero = Int(0)
        form = self.rng.randrange(3)
        inside = Compare((zero, shifted, Int(extent)), ("<=", "<"))
        value: Expr = Call("if_then_else", (inside, access, zero))
        if form == 1:
            outside = Binary(
                "|", Compare((shifted, zero), ("<",)), Compare((shifted, Int(extent)), (">=",))
            )
            value = Call("if_then_else", (outside, zero, access))
        elif form == 2:
            below = Compare((shifted, zero), ("<",))
            above = Compare((shifted, Int(extent)), ("<",))
            inner = Call("if_then_else", (above, access, zero))
            value = Call("if_then_else", (below, zero, inner))
        return Ranged(value, min(0.0, tensor.low), max(0.0, tensor.high))

    # -- conditions

    def condition(self, depth: int = 1) -> Expr:
        """A condition over indices or data."""
        rng = self.rng
        if depth and self.chance(0.3):
            return Binary(rng.choice("&|"), self.condition(0), self.condition(0))
        masks = [t for t in self.tensors if t.dtype == "bool"]
        if masks and self.chance(0.4):
            return self.read(rng.choice(masks))
        if self.coordinates and self.chance(0.7):
            c = rng.choice(self.coordinates)
            bound = Int(rng.randrange(c.extent + 1))
            if self.chance(0.3):
                return Compare((Int(0), c.expr, bound), ("<=", "<"))
            return Compare((c.expr, bound), (rng.choice(("<", "<=", ">", ">=", "==", "!=")),))
        left, right = self.real(1), self.real(0)
        return Compare((left.expr, right.expr), (rng.choice(("<", ">=")),))

    # -- values

    def real(self, depth: int) -> Ranged:
        """A value for a float tensor."""
        if depth == 0 or self.chance(0.2):
            return self._leaf()
        made = self._operation(depth)
        if made is None or made.size > FLOAT_BOUND:
            return self._leaf()
        return made

    def whole(self, depth: int) -> Ranged:
        """A value for an integer tensor, of integer type throughout."""
        rng = self.rng
        if depth == 0 or self.chance(0.3):
            readable = [t for t in self.tensors if DTYPES[t.dtype].is_integer]
            if readable and self.chance(0.6):
                tensor = rng.choice(readable)
                return Ranged(self.read(tensor), tensor.low, tensor.high)
            if self.coordinates and self.chance(0.7):
                c = rng.choice(self.coordinates)
                return Ranged(c.expr, 0, c.extent - 1)
            number = rng.randint(0, 5)
            return Ranged(Int(number), number, number)
        left = self.whole(depth - 1)
        op = rng.choice(("+", "-", "*", "//", "%", "max", "min", "if"))
        if op in ("//", "%"):
            divisor = rng.randint(2, 5)
            expr = Binary(op, left.expr, Int(divisor))
            if op == "%":
                return Ranged(expr, 0, divisor - 1)
            return Ranged(expr, left.low // divisor, left.high // divisor)
        right = self.whole(depth - 1)
        if op == "if":
            return self._branches(left, right)
        if op in ("max", "min"):
            return _extreme(op, left, right)
        made = _arithmetic(op, left, right)
        return left if made.size > INTEGER_BOUND else made

    def _leaf(self) -> Ranged:
        rng = self.rng
        readable = [t for t in self.tensors if t.dtype != "bool"]
        if readable and self.chance(0.8):
            tensor = rng.choice(readable)
            if self.chance(0.2):
                padded = self.padded_read(tensor)
                if padded is not None:
                    return padded
            return Ranged(self.read(tensor), tensor.low, tensor.high)
        if self.coordinates and self.chance(0.3):
            c = rng.choice(self.coordinates)
            return Ranged(c.expr, 0, c.extent - 1)
        if self.chance(0.4):
            number = rng.randint(1, 4)
            return Ranged(Int(number), number, number)
        text = rng.choice(("0.5", "1.5", "0.1", "2.25"))
        return Ranged(Real(text), float(text), float(text))

    def _operation(self, depth: int) -> Ranged | None:
        rng = self.rng
        kind = rng.choice(
            ("binary", "binary", "binary", "function", "function", "if", "unary", "power")
        )
        left = self.real(depth - 1)
        if kind == "unary":
            return Ranged(Unary("-", left.expr), -left.high, -left.low)
        if kind == "power":
            bound = left.size**2
            return Ranged(Binary("**", left.expr, Int(2)), 0.0, bound)
        if kind == "function":
            return self._function(left)
        right = self.real(depth - 1)
        if kind == "if":
            return self._branches(left, right)
        op = rng.choice(("+", "-", "*", "/", "max", "min"))
        if op in ("max", "min"):
            return _extreme(op, left, right)
        if op == "/":
            if right.low < 0.25 and right.high > -0.25:
                right = _above(right, 1)
            ends = [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
            return Ranged(Binary("/", left.expr, right.expr), min(ends), max(ends))
        return _arithmetic(op, left, right)

    def _function(self, value: Ranged) -> Ranged | None:
        name = self.rng.choice(
            (
                "exp",
                "exp",
                "log",
                "sqrt",
                "abs",
                "erf",
                "tanh",
                "sin",
                "cos",
                "floor",
                "ceil",
                "round",
            )
        )
        if (name == "log" and value.low < 0.05) or (name == "sqrt" and value.low < 0.01):
            value = _above(value, 1)
        expr = Call(name, (value.expr,))
        match name:
            case "exp":
                if value.high > 5:
                    return None
                return Ranged(expr, 0.9 * math.exp(max(value.low, -80)), 1.1 * math.exp(value.high))
            case "log":
                return Ranged(expr, math.log(value.low) - 0.1, math.log(value.high) + 0.1)
            case "sqrt":
                return Ranged(expr, 0.9 * math.sqrt(value.low), 1.1 * math.sqrt(value.high))
            case "abs":
                positive = value.low > 0 or value.high < 0
                low = min(abs(value.low), abs(value.high)) if positive else 0.0
                return Ranged(expr, low, value.size)
            case "floor" | "ceil" | "round":
                return Ranged(expr, math.floor(value.low), math.ceil(value.high))
        return Ranged(expr, -1.0, 1.0)

    def _branches(self, left: Ranged, right: Ranged) -> Ranged:
        expr = Call("if_then_else", (self.condition(), left.expr, right.expr))
        return Ranged(expr, min(left.low, right.low), max(left.high, right.high))


def _above(value: Ranged, least: int) -> Ranged:
    """``abs(value)+least``."""
    expr = Binary("+", Call("abs", (value.expr,)), Int(least))
    return Ranged(expr, least, value.size + least)


def _extreme(op: str, left: Ranged, right: Ranged) -> Ranged:
    pick = max if op == "max" else min
    expr = Call(op, (left.expr, right.expr))
    return Ranged(expr, pick(left.low, right.low), pick(left.high, right.high))


def _arithmetic(op: str, left: Ranged, right: Ranged) -> Ranged:
    expr = Binary(op, left.expr, right.expr)
    match op:
        case "+":
            return Ranged(expr, left.low + right.low, left.high + right.high)
        case "-":
            return Ranged(expr, left.low - right.high, left.high - right.low)
    ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return Ranged(expr, min(ends), max(ends))
