"""Powers, logarithms and splits on formulas that people write: nothing wrong, nothing undone."""

import random
from collections.abc import Iterator

import pytest

from steptp_dagster.leir.ast import Call
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import at, iter_expr
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.sources.tables import mathematical
from steptp_dagster.strategies.base import Refusal, Site
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.translate.translate import Translation, translate
from steptp_dagster.verify.verdict import verify

NAMES = (
    "powsimp",
    "expand_powsimp",
    "expand_log",
    "logsimp",
    "exponential_split",
    "multiplicative_split",
    "additive_split",
)
#: What brings formulas together, and the other laws, for chains.
MORE = (
    "compute_inline",
    "normal_loop_max_to_prefix_max",
    "factorization",
    "expand_factorization",
    "cancellation",
    "together",
    "apart",
    "collect",
)
PROGRAMS = tuple(source.program for source in mathematical.SOURCES)
FEW = ("LogNormalLogDensity", "LogOdds", "DecayedSoftmaxWeights", "SquarePlus")


def program(name: str, dtype: str = "f32") -> SignedProgram:
    """A small sample of a source program."""
    source = SOURCES[name]
    shape = min(source.sample(random.Random(2), 5), key=source.work)
    built = source.build(shape, dtype)
    found = translate(built.module, built.example(0), source=name, ranges=built.ranges)
    assert isinstance(found, Translation)
    return found.signed


def step(name: str, before: SignedProgram, site: Site) -> Step:
    found = take(strategy(name), before, site)
    assert isinstance(found, Step), found
    return found


def forms(before: SignedProgram, seed: int) -> Iterator[SignedProgram]:
    """The program, with a running maximum where it has a maximum, and its inlined forms."""
    yield before
    rng = random.Random(seed)
    for name in ("normal_loop_max_to_prefix_max", *["compute_inline"] * 10):
        sites = strategy(name).survey(before).sites
        if sites:
            before = step(name, before, rng.choice(sites)).after
            yield before


def check_sites(before: SignedProgram, most: int | None = None) -> int:
    """Judge the steps of all strategies at up to ``most`` sites each; how many there were."""
    count = 0
    for name in NAMES:
        for site in strategy(name).survey(before).sites[:most]:
            found = step(name, before, site)
            verdict = verify(before, found.after)
            assert verdict.accepted, (name, site.describe(), verdict.reason, verdict.message)
            assert found.numerics != "exact" or verdict.equality == "exact", site.describe()
            count += 1
    return count


@pytest.mark.parametrize("name", FEW)
def test_the_last_form_of_some_programs(name: str) -> None:
    *_, last = forms(program(name), 1)
    assert check_sites(last, 2) > 0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_sites_of_all_forms(name: str, dtype: str) -> None:
    for form in forms(program(name, dtype), 1):
        check_sites(form)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PROGRAMS, "softmax", "LayerNorm", "MinGPTNewGelu", "KLDivLoss"])
def test_random_chains_of_four_steps(name: str) -> None:
    for seed in range(6):
        original = before = program(name)
        rng = random.Random(f"{name} {seed}")
        for _ in range(4):
            names = rng.sample((*NAMES, *MORE), len(NAMES) + len(MORE))
            for chosen in names:
                sites = strategy(chosen).survey(before).sites
                if sites:
                    found = take(strategy(chosen), before, rng.choice(sites))
                    if not isinstance(found, Refusal):
                        before = found.after
                        break
        verdict = verify(original, before)
        assert verdict.accepted, (name, seed, verdict.reason, verdict.message)


@pytest.mark.parametrize("name", ["softmax", "CategoricalEntropy"])
def test_the_shift_of_a_softmax_is_kept(name: str) -> None:
    """No step leaves an exponential that does not subtract something, or that is not positive."""
    for form in forms(program(name), 3):
        for chosen in NAMES:
            for site in strategy(chosen).survey(form).sites:
                after = strategy(chosen).apply(form, site)
                equation = at(after.program, site.path)
                for node in iter_expr(equation.value):  # type: ignore[union-attr]
                    if isinstance(node, Call) and node.function == "exp":
                        text = repr(node.arguments[0])
                        assert "op='-'" in text, (chosen, site.describe())
