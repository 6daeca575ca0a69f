"""Algebra on zeros, infinities, and values at the ends of what data may be.

The contract (docs/strategies.md): where the original has a number the result has one, where data
makes the original infinite the result is infinite, and where the original has no number nothing is
promised. Data without a declared range is at most 2**80 in size, ``-inf`` where the program has a
use for masks.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.strategies.algebra.data import data_of
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.verify.verdict import verify
from tests.support.random_algebra import algebraic_program
from tests.support.strategy_cases import all_cases

ALGEBRAIC = {n: s for n, s in strategies().items() if isinstance(s, AlgebraicStrategy)}
ORDINARY = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1e-30, -1e-30, 100.0, -100.0)
LARGE = (*ORDINARY, 2.0**79, -(2.0**79), 2.0**70, 1e4, -1e4)
_NUMPY = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "float32"}
Array = NDArray[np.generic]
Precision = Literal["working", "float64"]


def _values(variable: Variable, pool: tuple[float, ...], rng: np.random.Generator) -> Array:
    dtype = DTYPES[variable.dtype]
    low = None if variable.low is None else float(variable.low)
    high = None if variable.high is None else float(variable.high)
    if not dtype.is_float:
        drawn = rng.integers(int(low or 0), int(1 if high is None else high) + 1, variable.shape)
        return drawn.astype(bool if dtype.kind == "bool" else "int64")
    if low is not None and high is not None:
        pool = (low, high, (low + high) / 2, *((0.0,) if low <= 0.0 <= high else ()))
    elif variable.role != "input":
        pool = tuple(x for x in pool if np.isfinite(x)) or ORDINARY
    with np.errstate(over="ignore"):
        fit = [x for x in pool if np.isinf(x) or np.isfinite(np.dtype(_NUMPY[dtype.name]).type(x))]
    return rng.choice(np.array(fit), variable.shape).astype(_NUMPY[dtype.name])


def _inputs(program: SignedProgram, seed: int) -> Iterator[tuple[str, dict[str, Array]]]:
    rng = np.random.default_rng(seed)
    pools = {"ordinary": ORDINARY, "large": LARGE}
    if data_of(program).masked:
        pools["masked"] = (*ORDINARY, -np.inf, -np.inf, -np.inf)
        pools["nothing but masks"] = (-np.inf,)
    for name, pool in pools.items():
        yield name, {v.name: _values(v, pool, rng) for v in program.signature.sources}


def _steps(program: SignedProgram) -> Iterator[Step]:
    for chosen in ALGEBRAIC.values():
        for site in chosen.survey(program).sites:
            step = take(chosen, program, site)
            assert isinstance(step, Step), step
            yield step


def _check(step: Step, seed: int, precisions: tuple[Precision, ...]) -> None:
    for name, inputs in _inputs(step.before, seed):
        for precision in precisions:
            with np.errstate(all="ignore"):
                first = interpret(step.before, inputs, precision=precision).outputs
                second = interpret(step.after, inputs, precision=precision).outputs
            where = f"{name}, {precision}: {step.site.describe()}\n{to_text(step.before.program)}"
            for tensor, value in first.items():
                old, new = np.asarray(value, np.float64), np.asarray(second[tensor], np.float64)
                assert np.isfinite(new[np.isfinite(old)]).all(), where
                # the sign of an infinity may be that of a zero; overflow may be mended
                assert not np.isnan(new[np.isinf(old)]).any(), where
                if name == "masked":
                    assert np.isinf(new[np.isinf(old)]).all(), where


def _check_all(
    programs: Iterator[SignedProgram], seed: int, *precisions: Precision
) -> Counter[str]:
    taken: Counter[str] = Counter()
    for program in programs:
        for step in _steps(program):
            _check(step, seed, precisions)
            taken[step.site.text("rule")] += 1
    return taken


def _of_cases() -> Iterator[SignedProgram]:
    """The programs of all cases of algebraic strategies, each once."""
    found = (case.before for case in all_cases() if case.strategy in ALGEBRAIC)
    yield from dict.fromkeys(found)


def test_numbers_stay_numbers_in_every_case() -> None:
    taken = _check_all(_of_cases(), 0, "working")
    own = {rule.name for one in ALGEBRAIC.values() for rule in one.rules}
    assert own <= set(taken)


@pytest.mark.slow
def test_numbers_stay_numbers_in_random_equations() -> None:
    programs = (algebraic_program(seed) for seed in range(3000, 3150))
    assert len(_check_all(programs, 1, "working", "float64")) > 25


MASKED = """
# input A f32[3,5]
# input C f32[5]
# input D f32[5]
# output E f32[3,5]
B^{3}_{tx=0}L^{5}_{a=0}[E^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a}*C^{f32,g}_{a}+A^{f32,g}_{tx,a}*D^{f32,g}_{a});];
"""


def test_no_number_may_become_one() -> None:
    """A mask times both signs has no sum, but a product with their sum; the verdict agrees."""
    program = read(MASKED).signed
    (step,) = _steps(program)
    mask = np.full((3, 5), -np.inf, np.float32)
    inputs = {"A": mask, "C": np.full(5, 2, np.float32), "D": np.full(5, -1, np.float32)}
    with np.errstate(all="ignore"):
        assert np.isnan(interpret(step.before, inputs).outputs["E"]).all()
        assert (interpret(step.after, inputs).outputs["E"] == 0).all()
    assert verify(step.before, step.after).accepted
    assert not ALGEBRAIC["expand_factorization"].survey(step.after).sites  # no way back
