"""Whether a program truly differs from its original, found out apart from the verdict.

The reference interpreter runs both, which shares no code with the static checker and none with
what TVM executes, on data of its own; programs of rational operations are evaluated exactly too.
Mistakes that need no data (races, memory that is not written, scopes) are the interpreter's
dynamic faults. Where nothing is found a mutant counts as no mistake, and says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import isnan
from typing import Final, Literal

import numpy as np

from steptp_dagster.leir.ast import THREAD_AXES
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import equations_in
from steptp_dagster.verify.compare import EPSILON, Array, is_float
from steptp_dagster.verify.mutation.data import Sample, exact_literals, nudged, rationals, samples
from steptp_dagster.verify.mutation.exact import NotExact, Results, evaluate, is_rational

How = Literal["fault", "values", "exact", "accuracy", "launch"]

#: Least normalised difference of values that is no rounding of binary64.
_DIFFERENT: Final = 1e-9
#: The same on lattices, where a cancelled sum may leave nothing but rounding errors.
_DIFFERENT_ON_LATTICE: Final = 1e-6
#: How much all data is nudged, and how often the change that this makes must be exceeded.
_NUDGE: Final = 2.0**-44
_ABOVE_NUDGE: Final = 100.0
#: Errors in working precision: this many times the original's and this many epsilons are worse.
_WORSE_FACTOR: Final = 64.0
_WORSE_EPSILONS: Final = 256.0
_MOST_THREADS: Final = 1024
#: What running a program says of its data, not of the program.
_OF_DATA: Final = frozenset({"undefined-conversion", "integer-division-by-zero"})


@dataclass(frozen=True, slots=True)
class Witness:
    """Why a program is wrong: how it shows, and in words what was seen."""

    how: How
    message: str


@dataclass(slots=True)
class Judge:
    """Witnesses against candidates of one original, whose own results are computed once."""

    original: SignedProgram
    seed: int = 0
    _runs: dict[str, tuple[dict[str, Array], dict[str, Array]]] = field(default_factory=dict)
    _exact: dict[tuple[int, tuple[Fraction, ...]], Results] = field(default_factory=dict)

    def witness(self, candidate: SignedProgram) -> Witness | None:
        """The first thing that shows the candidate to be wrong, or None."""
        return next(self._witnesses(candidate), None)

    def _witnesses(self, candidate: SignedProgram) -> Iterator[Witness]:
        threads = _threads(candidate)
        if threads > _MOST_THREADS:
            yield Witness("launch", f"{threads} threads in a block")
        drawn = samples(self.original, candidate, self.seed)
        first = next(drawn)
        run = interpret(candidate, first.inputs, precision="float64")
        for fault in run.faults:
            if fault.kind not in _OF_DATA:
                yield Witness("fault", f"{fault.kind}: {fault.message}")
        if (text := self._differs(first, run.outputs)) is not None:
            yield Witness("values", text)
        yield from self._exactly(candidate)
        for sample in drawn:
            again = interpret(candidate, sample.inputs, precision="float64", dynamic=False)
            if (text := self._differs(sample, again.outputs)) is not None:
                yield Witness("values", text)
        if (text := self._inaccurate(candidate, first)) is not None:
            yield Witness("accuracy", text)

    def _exactly(self, candidate: SignedProgram) -> Iterator[Witness]:
        if not (is_rational(self.original) and is_rational(candidate)):
            return
        literals = exact_literals(self.original, candidate)
        for draw, points in ((0, ()), (1, literals), (2, ())):
            inputs = rationals(self.original.signature, self.seed + draw, points)
            try:
                if (draw, points) not in self._exact:
                    self._exact[draw, points] = evaluate(self.original, inputs)
                found = evaluate(candidate, inputs)
            except NotExact:
                return
            for name, cells in self._exact[draw, points].items():
                for key, value in cells.items():
                    other = found[name].get(key)
                    if not (isinstance(value, float) and isnan(value)) and other != value:
                        text = f"{name} at {list(key)} is {other}, not {value}, in exact arithmetic"
                        yield Witness("exact", text)
                        return

    def _reference(self, sample: Sample) -> tuple[dict[str, Array], dict[str, Array]]:
        """The original's results, and how far each moves when all data is nudged."""
        # samples of one name differ only where they are drawn around a candidate's literals
        key = f"{sample.name} {_digest(sample)}"
        if key not in self._runs:
            run = interpret(self.original, sample.inputs, precision="float64", dynamic=False)
            moved = {name: np.zeros(np.shape(a)) for name, a in run.outputs.items()}
            if not sample.lattice:
                data = nudged(sample.inputs, self.original.signature, _NUDGE)
                other = interpret(self.original, data, precision="float64", dynamic=False)
                with np.errstate(invalid="ignore"):
                    moved = {
                        name: np.abs(other.outputs[name].astype(float) - a.astype(float))
                        for name, a in run.outputs.items()
                    }
            self._runs[key] = run.outputs, moved
        return self._runs[key]

    def _differs(self, sample: Sample, outputs: dict[str, Array]) -> str | None:
        """What differs on a sample, in words; what the original does not define does not count."""
        reference, moved = self._reference(sample)
        scale = _largest(sample)
        for variable in self.original.signature.outputs:
            r = reference[variable.name].astype(np.float64)
            q = outputs[variable.name].astype(np.float64)
            if not is_float(variable.dtype):
                wrong = r != q
            else:
                defined = np.isfinite(r)
                finite = defined & np.isfinite(q)
                rms = _rms(r[defined])
                least = _DIFFERENT_ON_LATTICE if sample.lattice else _DIFFERENT
                bound = least * (np.abs(r) + (rms or scale)) + _ABOVE_NUDGE * np.nan_to_num(
                    moved[variable.name]
                )
                with np.errstate(invalid="ignore"):
                    wrong = (defined & ~finite) | (finite & (np.abs(r - q) > bound))
                if sample.infinite:
                    wrong |= np.isinf(r) & (r != q)
            if wrong.any():
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                return f"{variable.name} at {list(at)} is {q[at]}, not {r[at]}, on {sample.name}"
        return None

    def _inaccurate(self, candidate: SignedProgram, sample: Sample) -> str | None:
        """Whether working precision loses digits that the original keeps, in words."""
        reference, _ = self._reference(sample)
        own = interpret(self.original, sample.inputs, dynamic=False).outputs
        other = interpret(candidate, sample.inputs, dynamic=False).outputs
        for variable in self.original.signature.outputs:
            if variable.dtype not in EPSILON:
                continue
            r = reference[variable.name]
            before, after = (
                _error(r, x[variable.name]) / EPSILON[variable.dtype] for x in (own, other)
            )
            if after > _WORSE_FACTOR * before + _WORSE_EPSILONS:
                return f"{variable.name} is off by {after:.3g} epsilons, not {before:.3g}"
        return None


def _error(reference: Array, computed: Array) -> float:
    r, q = reference.astype(np.float64), computed.astype(np.float64)
    counted = np.isfinite(r) & np.isfinite(q)
    if not counted.any():
        return 0.0
    rms = _rms(r[counted])
    scale = np.abs(r[counted]) + (rms or 1.0)
    return float(np.max(np.abs(r[counted] - q[counted]) / scale))


def _rms(values: Array) -> float:
    """The root mean square of finite values, squares scaled so that none overflows; 0 for none."""
    top = float(np.max(np.abs(values), initial=0.0))
    return top * float(np.sqrt(np.mean(np.square(values / top)))) if top > 0.0 else 0.0


def _largest(sample: Sample) -> float:
    found = [
        float(np.max(np.abs(a[np.isfinite(a)].astype(np.float64)), initial=0.0))
        for a in sample.inputs.values()
        if a.dtype.kind == "f"
    ]
    return max(found, default=0.0) or 1.0


def _digest(sample: Sample) -> int:
    return hash(tuple(a.tobytes() for a in sample.inputs.values()))


def _threads(signed: SignedProgram) -> int:
    """Threads of the largest block: the longest loop of every thread axis of a nest."""
    most = 1
    for nest in signed.program.nests:
        sizes: dict[str, int] = {}
        for located in equations_in(nest):
            for loop in located.loops:
                if loop.axis in THREAD_AXES:
                    sizes[loop.axis] = max(sizes.get(loop.axis, 1), loop.extent)
        threads = 1
        for extent in sizes.values():
            threads *= extent
        most = max(most, threads)
    return most
