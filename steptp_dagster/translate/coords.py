"""Exact index arithmetic: the coordinates with which views are composed into subscripts.

A ``Coord`` is an integer linear combination of *atoms* plus a constant. An atom is a loop index
(or another integer expression) with its number of values, or the floor quotient or remainder of a
``Coord`` by a constant. Constructors simplify by the ranges of the atoms, so that splitting a
dimension and merging it again gives back the plain index:

>>> a, c = Coord.axis(Index("a"), 3), Coord.axis(Index("c"), 4)
>>> flat = a * 4 + c
>>> flat // 4 == a, flat % 4 == c
(True, True)
>>> i = Coord.axis(Index("i"), 12)
>>> (i // 4) * 4 + i % 4 == i
True

Nothing here is about tensors; ``values.py`` uses it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Union

from steptp_dagster.leir.ast import Binary, Expr, Index, Int, Unary


@dataclass(frozen=True, slots=True)
class Axis:
    """An integer expression with the values 0 .. extent - 1."""

    expr: Expr
    extent: int


@dataclass(frozen=True, slots=True)
class Quotient:
    """``base // divisor`` (floor), where nothing simpler is known."""

    base: "Coord"
    divisor: int


@dataclass(frozen=True, slots=True)
class Remainder:
    """``base % divisor`` (in 0 .. divisor - 1), where nothing simpler is known."""

    base: "Coord"
    divisor: int


Atom = Union[Axis, Quotient, Remainder]  # noqa: UP007 - forward reference in a cycle of types


@dataclass(frozen=True, slots=True)
class Coord:
    """``sum(coefficient * atom) + constant``; no coefficient is 0, no atom occurs twice."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    @staticmethod
    def axis(expr: Expr, extent: int) -> "Coord":
        """The value of an expression known to lie in 0 .. extent - 1 (0 itself for extent 1)."""
        return Coord() if extent == 1 else Coord(((Axis(expr, extent), 1),))

    @property
    def low(self) -> int:
        """A lower bound of the value, exact for independent atoms."""
        return self.constant + sum(
            k * (_range(a)[0] if k > 0 else _range(a)[1]) for a, k in self.terms
        )

    @property
    def high(self) -> int:
        """An upper bound of the value, exact for independent atoms."""
        return self.constant + sum(
            k * (_range(a)[1] if k > 0 else _range(a)[0]) for a, k in self.terms
        )

    def __add__(self, other: "Coord | int") -> "Coord":
        """The sum; ``k*d*(x//d) + k*(x%d)`` becomes ``k*x``."""
        if isinstance(other, int):
            return Coord(self.terms, self.constant + other)
        total = dict(self.terms)
        for atom, k in other.terms:
            total[atom] = total.get(atom, 0) + k
        terms = tuple((a, k) for a, k in total.items() if k)
        return _recombined(Coord(terms, self.constant + other.constant))

    def __neg__(self) -> "Coord":
        """The negated value."""
        return self * -1

    def __sub__(self, other: "Coord | int") -> "Coord":
        """The difference."""
        return self + -other

    def __mul__(self, factor: int) -> "Coord":
        """The value times an integer."""
        if factor == 0:
            return Coord()
        return Coord(tuple((a, k * factor) for a, k in self.terms), self.constant * factor)

    def __floordiv__(self, divisor: int) -> "Coord":
        """The floor quotient by a positive integer."""
        whole, rest = self._divided(divisor)
        if rest.low >= 0 and rest.high < divisor:
            return whole
        if len(rest.terms) == 1 and rest.constant == 0 and rest.terms[0][1] == 1:
            atom = rest.terms[0][0]
            if isinstance(atom, Quotient):  # (x//p)//q == x//(p*q)
                return whole + atom.base // (atom.divisor * divisor)
        return whole + Coord(((Quotient(rest, divisor), 1),))

    def __mod__(self, divisor: int) -> "Coord":
        """The remainder by a positive integer, in 0 .. divisor - 1."""
        _, rest = self._divided(divisor)
        if rest.low >= 0 and rest.high < divisor:
            return rest
        if len(rest.terms) == 1 and rest.constant == 0 and rest.terms[0][1] == 1:
            atom = rest.terms[0][0]
            if isinstance(atom, Remainder) and atom.divisor % divisor == 0:  # (x%(k*q))%q == x%q
                return atom.base % divisor
        return Coord(((Remainder(rest, divisor), 1),))

    def _divided(self, divisor: int) -> tuple["Coord", "Coord"]:
        """``(whole, rest)`` with ``self == whole * divisor + rest``."""
        if divisor < 1:
            raise ValueError(f"division of a coordinate by {divisor}")
        whole = Coord(
            tuple((a, k // divisor) for a, k in self.terms if k % divisor == 0),
            self.constant // divisor,
        )
        rest = Coord(tuple((a, k) for a, k in self.terms if k % divisor), self.constant % divisor)
        return whole, rest

    def to_expr(self) -> Expr:
        """The expression, positive terms first: ``a*4+c-1``, ``7-c``."""
        added = [_scaled(_atom_expr(a), k) for a, k in self.terms if k > 0]
        taken = [_scaled(_atom_expr(a), -k) for a, k in self.terms if k < 0]
        if self.constant > 0 or not (added or taken):
            added.append(Int(self.constant)) if self.constant >= 0 else None
        if self.constant < 0:
            taken.append(Int(-self.constant))
        result: Expr
        if added:
            result, *others = added
            for expr in others:
                result = Binary("+", result, expr)
        else:
            result, *taken = [Unary("-", taken[0]), *taken[1:]]
        for expr in taken:
            result = Binary("-", result, expr)
        return result


Coords = tuple[Coord, ...]


def constant(value: int) -> Coord:
    """A constant coordinate."""
    return Coord((), value)


def loop(index: str, extent: int) -> Coord:
    """The index of a loop with ``extent`` iterations that starts at 0.

    Unlike ``Coord.axis`` it stays an index for extent 1, so that the loop is seen to be used.
    """
    return Coord(((Axis(Index(index), extent), 1),))


def _range(atom: Atom) -> tuple[int, int]:
    match atom:
        case Axis():
            return 0, atom.extent - 1
        case Quotient():
            return atom.base.low // atom.divisor, atom.base.high // atom.divisor
        case Remainder():
            return 0, atom.divisor - 1


def _recombined(coord: Coord) -> Coord:
    """Undo ``k*d*(x//d) + k*(x%d)`` wherever it occurs."""
    have = dict(coord.terms)
    for atom, k in coord.terms:
        if isinstance(atom, Remainder):
            partner = _quotient_atom(atom.base, atom.divisor)
            if partner is not None and have.get(partner) == k * atom.divisor:
                rest = Coord(
                    tuple(t for t in coord.terms if t[0] not in (atom, partner)), coord.constant
                )
                return rest + atom.base * k
    return coord


def _quotient_atom(base: Coord, divisor: int) -> Atom | None:
    """The single atom that ``base // divisor`` is, if it is one."""
    quotient = base // divisor
    if len(quotient.terms) == 1 and quotient.constant == 0 and quotient.terms[0][1] == 1:
        return quotient.terms[0][0]
    return None


def _atom_expr(atom: Atom) -> Expr:
    match atom:
        case Axis():
            return atom.expr
        case Quotient():
            return Binary("//", atom.base.to_expr(), Int(atom.divisor))
        case Remainder():
            return Binary("%", atom.base.to_expr(), Int(atom.divisor))


def _scaled(expr: Expr, factor: int) -> Expr:
    return expr if factor == 1 else Binary("*", expr, Int(factor))


def flattened(coords: Iterable[Coord], shape: Iterable[int]) -> Coord:
    """The row-major position of ``coords`` in a tensor of ``shape``."""
    flat = Coord()
    for coord, extent in zip(coords, shape, strict=True):
        flat = flat * extent + coord
    return flat


def unflattened(flat: Coord, shape: tuple[int, ...]) -> Coords:
    """Coordinates in a tensor of ``shape`` of a row-major position within it."""
    result = []
    for i, extent in enumerate(shape):
        stride = prod(shape[i + 1 :])
        quotient = flat // stride
        result.append(quotient % extent if i else quotient)
    return tuple(result)


def reshaped(coords: Coords, shape: tuple[int, ...], source: tuple[int, ...]) -> Coords:
    """Coordinates in a ``source``-shaped tensor of ``coords`` in its view of ``shape``.

    Both shapes have the same number of elements. Dimensions are matched in the smallest groups
    of equal product, so that a view which leaves a dimension alone leaves its coordinate alone.
    """
    result: list[Coord] = []
    to, start = 0, 0
    while start < len(source):
        if source[start] == 1:
            result.append(Coord())
            start += 1
            continue
        while shape[to] == 1:
            to += 1
        end, there = start + 1, to + 1
        while (a := prod(source[start:end])) != (b := prod(shape[to:there])):
            if a < b:
                end += 1
            else:
                there += 1
        flat = flattened(coords[to:there], shape[to:there])
        result.extend(unflattened(flat, source[start:end]))
        start, to = end, there
    return tuple(result)
