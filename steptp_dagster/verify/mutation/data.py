"""Data for witnesses, drawn otherwise than the verdict draws its own (``families``).

Python's generator, not NumPy's; values on lattices and around the literals of both programs; no
name of a family enters.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle
from math import inf, prod
from typing import Final

import numpy as np

from steptp_dagster.leir.ast import Expr, Inf, Int, Real
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import equations, expressions, iter_expr
from steptp_dagster.verify.compare import Array

#: One element of a float tensor; the integer is its place in its row.
_Draw = Callable[[random.Random, int], float]
_NUMPY: Final = {"bf16": "float32"}
_INTEGERS: Final = (-3, 5)
_MOST_LITERALS: Final = 12


@dataclass(frozen=True, slots=True)
class Sample:
    """Inputs and parameters by name.

    ``lattice``: all values are multiples of a small power of two, so that comparisons meet ties
    and most sums are exact. ``infinite``: there are infinities among them.
    """

    name: str
    inputs: dict[str, Array]
    lattice: bool = False
    infinite: bool = False


def samples(original: SignedProgram, candidate: SignedProgram, seed: int) -> Iterator[Sample]:
    """Data sets on which two programs are compared, those that tell most in front."""
    signature = original.signature

    def made(name: str, draw: _Draw, **marks: bool) -> Sample:
        rng = random.Random(f"witness {seed} {name}")
        inputs = {v.name: _filled(v, draw, rng) for v in signature.sources if v.role != "const"}
        return Sample(name, inputs, **marks)

    near = _around(original, candidate)
    yield made("uniform", lambda rng, _: rng.uniform(-2.5, 2.5))
    yield made("quarters", lambda rng, _: rng.randrange(-12, 13) / 4.0, lattice=True)
    yield made("positive", lambda rng, _: rng.uniform(0.05, 4.0))
    # every point before any comes again: one that is left out by chance proves nothing
    points = cycle(random.Random(f"points {seed}").sample(near, len(near)))
    yield made("literals", lambda rng, _: next(points), lattice=True)
    yield made("few", lambda rng, _: rng.choice((-1.0, 0.0, 0.0, 0.5, 1.0)), lattice=True)
    yield made("steep", lambda rng, place: rng.uniform(-1.0, 1.0) + 37.0 * (place % 3 - 1))
    yield made("small", lambda rng, _: rng.uniform(-1.0, 1.0) * 2.0**-10)
    yield made("large", lambda rng, _: rng.uniform(-900.0, 900.0))
    if _takes_infinities(original):
        yield made("masked", _masked, infinite=True)
        yield made("masked-start", _masked_start, infinite=True)
    yield made("uniform-again", lambda rng, _: rng.gauss(0.0, 1.0))


def _masked(rng: random.Random, _: int) -> float:
    return -inf if rng.random() < 0.3 else rng.uniform(-2.0, 2.0)


def _masked_start(rng: random.Random, place: int) -> float:
    return -inf if place < 2 else rng.uniform(-2.0, 2.0)


def exact_literals(*programs: SignedProgram) -> tuple[Fraction, ...]:
    """The decimals of programs with either sign, exactly as written, zero and one besides."""
    found = {Fraction(0), Fraction(1)}
    for program in programs:
        for node in _nodes(program):
            if isinstance(node, Real):
                found |= {Fraction(node.text), -Fraction(node.text)}
    return tuple(sorted(found))


def rationals(
    signature: Signature, seed: int, points: Sequence[Fraction] = ()
) -> dict[str, list[Fraction | int]]:
    """Small rational numbers for floats, small integers for the rest, in row-major order.

    Where there are ``points``, floats without a declared range take all of them in turn.
    """
    rng = random.Random(f"exact {seed}")
    found: dict[str, list[Fraction | int]] = {}
    for variable in signature.sources:
        if variable.role == "const":
            continue
        low, high = _whole_range(variable)
        size = prod(variable.shape)
        if not DTYPES[variable.dtype].is_float:
            found[variable.name] = [rng.randint(low, high) for _ in range(size)]
        elif variable.low is not None and variable.high is not None:
            a, b = Fraction(variable.low), Fraction(variable.high)
            found[variable.name] = [a + (b - a) * rng.randrange(0, 17) / 16 for _ in range(size)]
        else:
            thirds = [Fraction(rng.randrange(-9, 10), 3) for _ in range(size)]
            turns = cycle(rng.sample(points, len(points))) if points else iter(thirds)
            found[variable.name] = [next(turns) for _ in range(size)]
    return found


def nudged(inputs: dict[str, Array], signature: Signature, by: float) -> dict[str, Array]:
    """All float data without a declared range scaled by ``1 + by``, in binary64."""
    free = {
        v.name
        for v in signature.sources
        if DTYPES[v.dtype].is_float and v.low is None and v.role != "const"
    }
    return {
        name: array.astype(np.float64) * (1.0 + by) if name in free else array
        for name, array in inputs.items()
    }


def _filled(variable: Variable, draw: _Draw, rng: random.Random) -> Array:
    size = prod(variable.shape)
    dtype = DTYPES[variable.dtype]
    row = variable.shape[-1] if variable.shape else 1
    if not dtype.is_float:
        low, high = _whole_range(variable)
        values: Sequence[float] = [rng.randint(low, high) for _ in range(size)]
        return np.array(values, dtype.numpy).reshape(variable.shape)
    values = [draw(rng, i % row) for i in range(size)]
    if variable.low is not None and variable.high is not None:
        a, b = float(variable.low), float(variable.high)
        values = [_inside(rng, v, a, b) for v in values]
    array = np.array(values, np.float64).reshape(variable.shape)
    with np.errstate(over="ignore"):
        return array.astype(_NUMPY.get(dtype.name, dtype.numpy))


def _inside(rng: random.Random, value: float, low: float, high: float) -> float:
    """The value if it is in a range, else one drawn there, on a lattice of the range."""
    if low <= value <= high:
        return value
    if high == inf:
        return low + abs(value) if abs(value) < inf else low
    if low == -inf:
        return high - abs(value) if abs(value) < inf else high
    return low + (high - low) * rng.randrange(1, 16) / 16.0


def _whole_range(variable: Variable) -> tuple[int, int]:
    if variable.low is not None and variable.high is not None:
        low, high = variable.low, variable.high
        return (int(low), int(high)) if abs(low) < inf and abs(high) < inf else (0, 4)
    dtype = DTYPES[variable.dtype]
    if dtype.kind == "bool":
        return 0, 1
    low, high = _INTEGERS
    return (low, high) if dtype.signed else (0, high)


def _around(*programs: SignedProgram) -> tuple[float, ...]:
    """The literals of the programs with either sign, and values beside them."""
    found = {0.0, 1.0}
    for program in programs:
        for node in _nodes(program):
            if isinstance(node, Int | Real) and abs(node.value) < 2.0**20:
                found.add(float(node.value))
    literals = sorted(found)[:_MOST_LITERALS]
    near = {s * v + step for v in literals for s in (1.0, -1.0) for step in (0.0, 0.0625, -0.0625)}
    return tuple(sorted(near))


def _takes_infinities(program: SignedProgram) -> bool:
    """Whether minus infinity is a mask: the program itself has one, or takes an exponential."""
    return any(
        isinstance(node, Inf) or getattr(node, "function", "") in ("exp", "max", "min")
        for node in _nodes(program)
    )


def _nodes(program: SignedProgram) -> Iterator[Expr]:
    for located in equations(program.program):
        for expr in expressions(located.equation):
            yield from iter_expr(expr)
