"""Data at the literals of two programs, compared in binary64 alone.

The families (``families``) draw data that the working dtype holds, of sizes around one. Two kinds
of mistake hide from them: at a threshold that the dtype cannot hold (``A>0.3`` and ``A>=0.3`` in
f32), and in a number far smaller or larger than the data (``x/(n+1e-12)``). Here data is drawn in
binary64, exactly at thresholds and at literals that only the candidate has, and as large as the
smallest and largest literals; of the candidate's own largest one also one input at a time, since a
clamped mask shows only beside scores of ordinary size.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt
from typing import Final

import numpy as np

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.ast import Access, Compare, Expr, Int, Real
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, children, equations, expressions, iter_expr
from steptp_dagster.lowering.identity import Identity, identity_of
from steptp_dagster.lowering.precision import in_precision
from steptp_dagster.verify import reasons
from steptp_dagster.verify.compare import Array, difference, is_float, same_values
from steptp_dagster.verify.domain import Reference
from steptp_dagster.verify.engine import LLVM, Engine, Runner
from steptp_dagster.verify.families import FAMILIES, Family, inputs
from steptp_dagster.verify.record import FamilyEvidence

#: Literals below and above these are of another size than the data of the families.
_SMALL: Final = 0.05
_LARGE: Final = 20.0
#: How many sizes are tried, and how many points data is drawn from.
_SIZES: Final = 3
_POINTS: Final = 48
#: Scaling all data by one plus this moves a smooth result by little; see ``original``.
_NUDGE: Final = 2.0**-48
_NUDGES: Final = (-1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0)
_ROUNDING: Final = 2.5e-12
#: Where nudged data moves a result by more, it crosses a threshold, which is no rounding.
_CROSSING: Final = 1e-4
_SCALED: Final = 1e-300
_SQUARE_IS_FINITE: Final = 2.0**60
_LARGEST: Final = 2.0**400
#: Results of originals that are kept, and bytes of their arrays; the last one in any case.
_KEPT: Final = 32
_KEPT_BYTES: Final = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Draw:
    """One data set: its name, what it is drawn from, whether that is few points or a size.

    Of ``alone``, where it names an input, all values lie beyond the size, on its side of zero.
    """

    name: str
    values: tuple[float, ...]
    discrete: bool
    alone: str = ""


@dataclass(frozen=True, slots=True)
class _Expected:
    """A data set with the original's results on it; None where it has none that count."""

    inputs: dict[str, Array]
    results: dict[str, Array] | None
    scale: float

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(
            a.nbytes for arrays in (self.inputs, self.results or {}) for a in arrays.values()
        )


#: The last results of originals: many candidates of one have the same literals.
_kept: OrderedDict[tuple[Identity, int, str, _Draw], _Expected] = OrderedDict()


def at_literals(
    original: SignedProgram,
    candidate: SignedProgram,
    seed: int,
    double: Runner,
    engine: Engine,
    mathematics: float,
) -> list[tuple[dict[str, Array], FamilyEvidence]]:
    """Data at the literals with the evidence of T1 on it; ``double`` is the candidate in binary64.

    ``mathematics`` is the greatest difference of two evaluations of one function.
    """
    draws = (
        *_at_points(original, candidate),
        *_of_sizes(original, candidate),
        *_beyond(original, candidate),
    )
    each = [(draw, _expected(original, seed, draw, engine)) for draw in draws]
    wanted = [(draw, expected) for draw, expected in each if expected.results is not None]
    if not wanted:
        return []
    names = wanted[0][1].inputs
    together = {n: np.stack([expected.inputs[n] for _, expected in wanted]) for n in names}
    results = double.run_many(together, len(wanted))
    found = []
    for i, (draw, expected) in enumerate(wanted):
        own = {name: np.asarray(values[i]) for name, values in results.items()}
        found.append((expected.inputs, _compared(original, expected, draw, own, mathematics)))
    return found


def at_own_numbers(
    original: SignedProgram, double: Runner, data: Iterable[dict[str, Array]], mathematics: float
) -> list[tuple[dict[str, Array], FamilyEvidence]]:
    """As ``at_literals``, on data to which the candidate's own numbers were steered.

    There the original may be nothing but its own roundings, as ``x*x-3*x+2.25`` is next to 1.5, and
    one nudge of the data shows that by chance only; many do, with worse roundings beside.
    """
    given = list(data)
    if not given:
        return []
    runners = (
        LLVM.compile([original], "float64")[0],
        LLVM.compile([in_precision(original, "float64")], "jittered")[0],
    )
    reference = Reference(original, runners[0])
    found = []
    for number, inputs_there in enumerate(given):
        results = _counted(original, reference, inputs_there, discrete=False)
        if results is not None:
            moved = [_nudged(original, inputs_there, by * _NUDGE) for by in _NUDGES]
            for runner in runners:
                _drop_noise(original, results, runner, moved, mathematics / 2)
            expected = _Expected(inputs_there, results, _scale(inputs_there))
            draw = _Draw(f"own-number {number}", (), discrete=False)
            own = double.run(inputs_there)
            evidence = _compared(original, expected, draw, own, mathematics)
            found.append((inputs_there, evidence))
    return found


def _drop_noise(
    original: SignedProgram,
    results: dict[str, Array],
    runner: Runner,
    moved: list[dict[str, Array]],
    most: float,
) -> None:
    """Put NaN where ``runner`` gives something else on moved data, relative to the result."""
    together = {name: np.stack([one[name] for one in moved]) for name in moved[0]}
    around = runner.run_many(together, len(moved))
    for variable in original.signature.outputs:
        if is_float(variable.dtype):
            own = results[variable.name]
            with np.errstate(invalid="ignore"):
                apart = np.max(np.abs(np.asarray(around[variable.name]) - own), axis=0)
                results[variable.name] = np.where(apart > most * np.abs(own), np.nan, own)


@per_program
def thresholds_within(signed: SignedProgram) -> frozenset[float]:
    """All literals inside comparisons of data, at any depth, subscripts aside."""
    return frozenset(
        value
        for expr in _roots(signed)
        for node in iter_expr(expr)
        if isinstance(node, Compare) and any(True for _ in accesses_in(node))
        for operand in node.operands
        for value in _literals(operand)
    )


@per_program
def _numbers(signed: SignedProgram) -> frozenset[float]:
    """All literals, those in subscripts aside."""
    return frozenset(v for expr in _roots(signed) for v in _literals(expr))


def _at_points(original: SignedProgram, candidate: SignedProgram) -> Iterator[_Draw]:
    new = _numbers(candidate) - _numbers(original)
    exact = sorted(thresholds_within(original) | thresholds_within(candidate) | new)
    exact = [v for v in exact if abs(v) < _SQUARE_IS_FINITE][:_POINTS]
    if exact:
        points = sorted({s * v for v in exact for s in (1.0, -1.0)} | {0.0, 1.0})
        between = [(a + b) / 2.0 for a, b in pairwise(points)]
        yield _Draw("literals", tuple(sorted({*points, *between})), discrete=True)


def _of_sizes(original: SignedProgram, candidate: SignedProgram) -> Iterator[_Draw]:
    """Normal data as large as the smallest and largest literals, and as their roots."""
    values = {abs(v) for v in _numbers(original) | _numbers(candidate)}
    small = sorted(v for v in values if _SCALED < v < _SMALL)[:_SIZES]
    large = sorted((v for v in values if v > _LARGE), reverse=True)[:1]
    for size in dict.fromkeys([*small, *(sqrt(v) for v in small), *large]):
        yield _Draw(f"literal-sized {size:.3g}", (size,), discrete=False)


def _beyond(original: SignedProgram, candidate: SignedProgram) -> Iterator[_Draw]:
    """One input after the other beyond the candidate's own largest literal, on either side."""
    largest = max(map(abs, _numbers(candidate) - _numbers(original)), default=0.0)
    free = [v.name for v in original.signature.sources if v.role == "input" and v.low is None]
    floats = [name for name in free if is_float(original.signature.by_name[name].dtype)]
    if _LARGE < largest < _LARGEST and len(floats) > 1:
        for name in floats:
            for size in (largest, -largest):
                yield _Draw(f"beyond {size:.3g} {name}", (size,), discrete=False, alone=name)


def _drawn(original: SignedProgram, seed: int, draw: _Draw) -> dict[str, Array] | None:
    """The inputs of a data set in binary64; None where no data could be of that size."""
    doubled = in_precision(original, "float64").signature
    if draw.discrete:
        pool = np.array(draw.values)

        def pattern(rng: np.random.Generator, shape: tuple[int, ...], _: str) -> Array:
            # Every point occurs if there is room: one that is left out by chance proves nothing.
            return rng.permutation(np.resize(rng.permutation(pool), prod(shape))).reshape(shape)

        return inputs(doubled, Family(draw.name, pattern, discrete=True, points=True), seed)
    if draw.alone:
        drawn = inputs(doubled, FAMILIES[0], seed, draw=1)
        far = draw.values[0] * (1.0 + np.abs(drawn[draw.alone]))
        return {**drawn, draw.alone: far}
    floats = [v for v in doubled.sources if v.role != "const" and is_float(v.dtype)]
    free = [v for v in floats if v.low is None]
    scaled = {v.name for v in free if v.role == "input"} or {v.name for v in free}
    if not scaled:
        return None
    drawn = inputs(doubled, FAMILIES[0], seed, draw=1)
    return {n: a * draw.values[0] if n in scaled else a for n, a in drawn.items()}


def _expected(original: SignedProgram, seed: int, draw: _Draw, engine: Engine) -> _Expected:
    """What the original computes on a data set, worked out once for candidates alike."""
    key = identity_of(original), seed, engine.target, draw
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    data = _drawn(original, seed, draw)
    if data is None:
        found = _Expected({}, None, 1.0)
    else:
        reference = Reference(original, engine.compile([original], "float64")[0])
        results = _counted(original, reference, data, discrete=draw.discrete)
        found = _Expected(data, results, _scale(data))
    _kept[key] = found
    total = sum(kept.size for kept in _kept.values())
    while len(_kept) > 1 and (len(_kept) > _KEPT or total > _KEPT_BYTES):
        total -= _kept.popitem(last=False)[1].size
    return found


def _counted(
    original: SignedProgram, reference: Reference, data: dict[str, Array], *, discrete: bool
) -> dict[str, Array] | None:
    """The original's results, NaN where they are rounding noise; None where nothing is left."""
    expected = reference.run(data)
    moved = reference.kernel.run(_nudged(original, data))
    scale = _scale(data)
    for variable in original.signature.outputs:
        if not is_float(variable.dtype):
            continue
        own = expected[variable.name]
        with np.errstate(invalid="ignore"):
            top = float(np.max(np.abs(own[np.isfinite(own)]), initial=0.0))
            by = np.abs(own - moved[variable.name]) / (np.abs(own) + (top or scale))
            noisy = (by > _ROUNDING) & ((by < _CROSSING) | (not discrete))
        expected[variable.name] = np.where(noisy, np.nan, own)
    usable = any(
        not is_float(v.dtype) or bool(np.isfinite(expected[v.name]).any())
        for v in original.signature.outputs
    )
    return expected if usable else None


def _compared(
    original: SignedProgram,
    expected: _Expected,
    draw: _Draw,
    found: dict[str, Array],
    mathematics: float,
) -> FamilyEvidence:
    results = expected.results or {}
    outputs = original.signature.outputs
    floats = [v.name for v in outputs if is_float(v.dtype)]
    apart = max((difference(results[n], found[n], expected.scale) for n in floats), default=0.0)
    failure = None
    if not all(
        same_values(results[v.name], found[v.name]) for v in outputs if v.name not in floats
    ):
        failure = reasons.INTEGERS_DIFFER
    elif not apart <= mathematics:
        failure = reasons.MATHEMATICS
    return FamilyEvidence(draw.name, apart, None, None, 0, 0, 0, True, True, failure)


def _nudged(
    original: SignedProgram, data: dict[str, Array], by: float = _NUDGE
) -> dict[str, Array]:
    free = {v.name for v in original.signature.sources if v.low is None and is_float(v.dtype)}
    return {n: a * (1.0 + by) if n in free else a for n, a in data.items()}


def _scale(data: dict[str, Array]) -> float:
    found = [float(np.max(np.abs(a), initial=0.0)) for a in data.values() if a.dtype.kind == "f"]
    return max(found, default=0.0) or 1.0


def _roots(signed: SignedProgram) -> Iterator[Expr]:
    """Right-hand sides and guards."""
    for located in equations(signed.program):
        yield from expressions(located.equation)[1:]


def _literals(expr: Expr) -> Iterator[float]:
    """Numbers of an expression, those in subscripts aside."""
    if isinstance(expr, Int | Real):
        yield float(expr.value)
    elif not isinstance(expr, Access):
        for child in children(expr):
            yield from _literals(child)
