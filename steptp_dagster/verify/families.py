"""The named input families on which two programs are compared.

A family fills float tensors with data of one kind (its *pattern*) and integer tensors within
their declared range. ``plain`` families are well scaled: both programs are compared on them in
binary64. ``adversarial`` ones look for overflow, cancellation and masks, in working precision.
What a family draws depends on the seed, the family's and the tensor's name, and nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from math import prod, sqrt
from typing import Any, Final, Literal

import numpy as np

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, Variable
from steptp_dagster.lowering.storage import NUMPY
from steptp_dagster.verify.seeds import generator

Array = np.ndarray[Any, np.dtype[Any]]
#: Draws binary64 values of a shape; ``dtype`` is the LEIR dtype they will be rounded to.
Pattern = Callable[[np.random.Generator, tuple[int, ...], str], Array]
#: Which tensors are made positive, for originals that need it (logarithms, roots).
Domain = Literal["", "positive-parameters", "positive"]
DOMAINS: Final[tuple[Domain, ...]] = ("", "positive-parameters", "positive")

#: Smallest magnitude of a value made positive.
_POSITIVE_FLOOR: Final = 0.01
#: Magnitudes around the least normal number of each float format.
_TINY: Final = {"f16": 2.0**-18, "bf16": 2.0**-128, "f32": 2.0**-128, "f64": 2.0**-1030}
#: Magnitudes above the square root of the largest number of each float format.
_HUGE: Final = {"f16": 2.0**9, "bf16": 2.0**70, "f32": 2.0**70, "f64": 2.0**540}
#: Scales of inputs beside each other: a sum of two of them loses digits of the smaller.
_APART: Final = (1.0, 2.0**7, 2.0**13)
_INTEGER_SPAN: Final = 8
#: Points of a larger magnitude are no integers that a program compares with.
_WHOLE: Final = 2**52


@dataclass(frozen=True, slots=True)
class Family:
    """One family.

    ``infinite`` ones put ``-inf`` into inputs; ``only_finiteness`` ones are too small for errors
    to mean anything; ``discrete`` ones draw from few values, which a program may compare with.
    ``scales`` are factors that the float tensors take in turn, in the order of the signature.
    ``points``: integers without a range are drawn from its points too.
    ``alone`` names the one input that an infinite family puts ``-inf`` into; empty: all of them.
    """

    name: str
    pattern: Pattern
    adversarial: bool = False
    infinite: bool = False
    only_finiteness: bool = False
    discrete: bool = False
    scales: tuple[float, ...] = (1.0,)
    alone: str = ""
    points: bool = False


def _normal(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return rng.standard_normal(shape)


def _rows(shape: tuple[int, ...]) -> tuple[int, int]:
    """A shape as (rows, length of a row): the last axis is a row; a scalar is a row of one."""
    return (prod(shape[:-1]), shape[-1]) if shape else (1, 1)


def _scaled(factor: float) -> Pattern:
    return lambda rng, shape, dtype: factor * rng.standard_normal(shape)


def _offset(level: float) -> Pattern:
    return lambda rng, shape, dtype: level + rng.standard_normal(shape)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return rng.random(shape)


def _small_integers(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return rng.integers(-4, 5, shape).astype(np.float64)


def _constant(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return np.full(shape, rng.uniform(0.25, 1.75))


def _negative(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return -np.abs(rng.standard_normal(shape)) - _POSITIVE_FLOOR


def _ramp(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    start = rng.uniform(-3.0, -1.0)
    return np.linspace(start, start + 4.0, max(prod(shape), 1)).reshape(shape)


def _sparse(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return np.where(rng.random(shape) < 0.5, 0.0, rng.standard_normal(shape))


def _ties(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return rng.integers(-2, 3, shape) / 2.0


def _one_hot(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    rows, length = _rows(shape)
    hot = np.zeros((rows, length))
    hot[np.arange(rows), rng.integers(0, length, rows)] = 1.0
    return hot.reshape(shape)


def _near_ties(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    """Values that are equal but for little: comparisons with a tolerance go wrong here."""
    little = np.array([-(2.0**-6), -(2.0**-8), 0.0, 0.0, 2.0**-8, 2.0**-6])
    return np.asarray(rng.integers(-1, 2, shape) / 2.0 + rng.choice(little, shape))


def _peak(position: int, height: float) -> Pattern:
    def pattern(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
        rows = rng.standard_normal(_rows(shape))
        rows[:, position] = np.abs(rows[:, position]) + height
        return rows.reshape(shape)

    return pattern


def _outlier(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    flat = rng.standard_normal(prod(shape))
    flat[rng.integers(0, flat.size)] = 1000.0
    return flat.reshape(shape)


def _row_levels(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    rows, length = _rows(shape)
    levels = rng.uniform(-60.0, 60.0, (rows, 1))
    return (rng.standard_normal((rows, length)) + levels).reshape(shape)


def _rising(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    """Each row rises steeply: a running maximum changes at every step."""
    rows, length = _rows(shape)
    steps = np.linspace(-40.0, 40.0, length)
    return (rng.standard_normal((rows, length)) + steps).reshape(shape)


def _tiny(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return _TINY[dtype] * rng.standard_normal(shape)


def _huge(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Values whose squares overflow, though they themselves are far from the end of the type."""
    return _HUGE[dtype] * rng.standard_normal(shape)


def _huge_rows(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Rows of one sign: extremes that start from a number instead of an infinity go wrong."""
    rows, length = _rows(shape)
    signs = np.where(np.arange(rows) % 2 == 0, -1.0, 1.0)[:, None]
    values = np.abs(rng.standard_normal((rows, length))) + _POSITIVE_FLOOR
    return (_HUGE[dtype] * signs * values).reshape(shape)


def _masked(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    return np.where(rng.random(shape) < 0.3, -np.inf, rng.standard_normal(shape))


def _masked_first(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    """Each row starts with ``-inf``, up to half of it, but never all."""
    rows, length = _rows(shape)
    masked = rng.integers(0, length // 2 + 1, (rows, 1))
    values = rng.standard_normal((rows, length))
    return np.where(np.arange(length) < masked, -np.inf, values).reshape(shape)


def _masked_rows(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    """Every other row is ``-inf`` throughout, the others but for their last element."""
    rows, length = _rows(shape)
    values = np.full((rows, length), -np.inf)
    values[1::2, -1] = rng.standard_normal(rows // 2)
    return values.reshape(shape)


def _diagonal(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
    """``-inf`` where the indices add up to one number, modulo the largest extent.

    So there is one at least, and one at most in each line along any axis.
    """
    places = np.indices(shape).sum(axis=0)
    period = max(shape)
    masked = places % period == rng.choice(places.reshape(-1)) % period
    return np.where(masked, -np.inf, rng.standard_normal(shape))


FAMILIES: Final[tuple[Family, ...]] = (
    Family("normal", _normal),
    Family("normal-again", _normal),
    Family("wide", _scaled(10.0)),
    Family("uniform", _uniform),
    Family("small-integers", _small_integers, discrete=True),
    Family("constant", _constant),
    Family("negative", _negative),
    Family("ramp", _ramp),
    Family("sparse", _sparse),
    Family("offset", _offset(100.0)),
    Family("ties", _ties, discrete=True),
    Family("one-hot", _one_hot, discrete=True),
    Family("near-ties", _near_ties, discrete=True),
    Family("peak-first", _peak(0, 8.0)),
    Family("peak-last", _peak(-1, 8.0)),
    Family("large", _scaled(300.0), adversarial=True),
    Family("huge", _huge, adversarial=True),
    Family("very-negative", _offset(-200.0), adversarial=True),
    Family("far-offset", _offset(1000.0), adversarial=True),
    Family("far-negative", _offset(-1000.0), adversarial=True),
    Family("spike-first", _peak(0, 1000.0), adversarial=True),
    Family("spike-last", _peak(-1, 1000.0), adversarial=True),
    Family("huge-rows", _huge_rows, adversarial=True),
    Family("outlier", _outlier, adversarial=True),
    Family("row-levels", _row_levels, adversarial=True),
    Family("rising", _rising, adversarial=True),
    Family("first-larger", _normal, adversarial=True, scales=_APART[::-1]),
    Family("first-smaller", _normal, adversarial=True, scales=_APART),
    Family("tiny", _tiny, adversarial=True, only_finiteness=True),
    Family("masked", _masked, adversarial=True, infinite=True),
    Family("masked-first", _masked_first, adversarial=True, infinite=True),
    Family("masked-rows", _masked_rows, adversarial=True, infinite=True),
)


def masks_alone(signature: Signature) -> tuple[Family, ...]:
    """For each input with room for a mask, the family that puts ``-inf`` into it alone.

    Where several inputs meet, masks in all of them leave no value: attention masks its scores
    by one.
    """
    free = (
        v.name
        for v in signature.sources
        if v.role == "input" and v.low is None and DTYPES[v.dtype].is_float and prod(v.shape) > 1
    )
    return tuple(
        Family(f"masked-alone {name}", _diagonal, adversarial=True, infinite=True, alone=name)
        for name in free
    )


def thresholds_family(thresholds: Sequence[float]) -> Family:
    """Data exactly at, below, above and between the literals that programs compare data with."""
    literals = sorted({*thresholds, -1.0, 0.0, 1.0})
    between = [(a + b) / 2.0 for a, b in pairwise(literals)]
    around = [t + step for t in thresholds for step in (-0.25, 0.25)]
    points = np.array(sorted({*literals, *between, *around}))

    def pattern(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
        # Every point occurs if there is room: one that is left out by chance proves nothing.
        return rng.permutation(np.resize(rng.permutation(points), prod(shape))).reshape(shape)

    return Family("thresholds", pattern, discrete=True, points=True)


def inputs(
    signature: Signature, family: Family, seed: int, domain: Domain = "", draw: int = 0
) -> dict[str, Array]:
    """Arrays for all inputs and parameters, in their NumPy dtypes, inside their declared ranges.

    ``draw`` counts further data of the same family and seed.
    """
    stream = (family.name, f"draw {draw}") if draw else (family.name,)
    drawn = [v for v in signature.sources if v.role != "const"]
    floats = [v.name for v in drawn if DTYPES[v.dtype].is_float]
    scales = dict(zip(floats, cycle(family.scales), strict=False))
    return {
        v.name: _filled(
            v, family, generator(seed, *stream, v.name), domain, scales.get(v.name, 1.0)
        )
        for v in drawn
    }


def _filled(
    variable: Variable, family: Family, rng: np.random.Generator, domain: Domain, scale: float
) -> Array:
    kind = DTYPES[variable.dtype]
    if kind.kind == "bool":
        return rng.random(variable.shape) < 0.5
    if kind.is_integer:
        return _integers(variable, family, rng)
    pattern = family.pattern
    spared = variable.role == "param" or variable.low is not None
    if family.infinite and (spared or family.alone not in ("", variable.name)):
        pattern = _normal
    values = scale * pattern(rng, variable.shape, variable.dtype)
    if variable.role == "param":
        values = values * _parameter_scale(variable.shape)
    if domain == "positive" or (domain == "positive-parameters" and variable.role == "param"):
        values = np.abs(values) + _POSITIVE_FLOOR
    dtype = NUMPY[variable.dtype]
    if variable.low is None or variable.high is None:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values).astype(dtype)
    return _within(np.asarray(values), float(variable.low), float(variable.high), dtype)


def _parameter_scale(shape: tuple[int, ...]) -> float:
    """One over the root of the fan-in, so that layers keep the scale of their inputs."""
    rank_of_a_matrix = 2
    if len(shape) < rank_of_a_matrix:
        return 1.0
    return 1.0 / sqrt(max(prod(shape) / max(shape[0], shape[-1]), 1.0))


def _integers(variable: Variable, family: Family, rng: np.random.Generator) -> Array:
    """Integers in the declared range, else small ones; the full type where the family is large."""
    dtype = NUMPY[variable.dtype]
    span = np.iinfo(dtype)
    if variable.low is not None and variable.high is not None:
        low, high = int(variable.low), int(variable.high)
    elif family.name == "large":
        low, high = int(span.min), int(span.max)
    else:
        low, high = max(-_INTEGER_SPAN, int(span.min)), _INTEGER_SPAN
    if family.points and variable.low is None:
        drawn = np.rint(family.pattern(rng, variable.shape, "f64"))
        return np.clip(drawn, max(span.min, -_WHOLE), min(span.max, _WHOLE)).astype(dtype)
    match family.name:
        case "constant":
            return np.full(variable.shape, rng.integers(low, high, endpoint=True), dtype)
        case "ramp":
            steps = np.arange(prod(variable.shape), dtype=np.int64).reshape(variable.shape)
            return (low + steps % (high - low + 1)).astype(dtype)
        case "ties":
            return rng.choice(np.array([low, high], dtype), variable.shape)
    return rng.integers(low, high, variable.shape, dtype=dtype, endpoint=True)


def _within(values: Array, low: float, high: float, dtype: np.dtype[Any]) -> Array:
    """Values moved into ``low..high``, order and ties kept, and still there when rounded."""
    finite = np.where(np.isfinite(values), values, 0.0)
    if np.isfinite(low) and np.isfinite(high):
        inside = np.all((finite >= low) & (finite <= high))
        width = float(np.ptp(finite)) if finite.size else 0.0
        if not inside and width > 0.0:
            finite = low + (high - low) * ((finite - finite.min()) / width)
        elif not inside:
            finite = np.full(finite.shape, low + (high - low) * 0.5)
    elif np.isfinite(low):
        finite = low + np.abs(finite)
    elif np.isfinite(high):
        finite = high - np.abs(finite)
    rounded = np.asarray(finite).astype(dtype)
    back = rounded.astype(np.float64)
    towards = np.where(back > high, low, high).astype(dtype)
    outside = (back > high) | (back < low)
    return np.where(outside, np.nextafter(rounded, towards), rounded).astype(dtype)
