"""Speed of surveys and steps on one core: what one step of each strategy costs.

    python benchmarks/bench_steps.py [--strategy NAME ...] [--sources NAME ...] [--profile]

Every strategy surveys every source of a sample and takes the step at every site. A *case* is one
strategy on one source: its time (processor time, survey and all steps) over the number of its
steps. Prints median, 90th percentile and worst over the cases, by strategy, by levels and over all,
and the medians of three parts: the survey, applying with the check of the result, and the
explanation. The target is a median of 1.5 ms per step for enumerating and applying, explanations
aside: ``unexplained``; the column behind it is the same time over all steps, not cases.

Mathematical strategies survey the programs of ``FORMULAS`` as well, which others have little use
for. A source may be followed by what is done to it first: ``GELU:inlined`` puts formulas in one
piece, ``softmax:online_softmax`` takes the first step of that strategy.

A survey takes a valid program, so that the program itself has been checked when a case begins;
nothing else is known of it. Cases with more than ``MOST`` sites take an even sample of the sites;
their survey counts in the same proportion. Garbage is collected as rarely as in the workers of a
build, and isl, which is imported when first needed, is there. On a busy machine even
processor times grow by half.
"""

import argparse
import cProfile
import importlib
import pstats
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

from steptp_dagster.dataset.inlined import inlined
from steptp_dagster.leir import nest_memory
from steptp_dagster.leir.collector import collect_rarely
from steptp_dagster.leir.fileform import read, write
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.translate.translate import Translation, translate

SAMPLE = (
    "Matmul3D",
    "GELU",
    "softmax",
    "Max_reduction_over_a_dimension",
    "cumsum",
    "LayerNorm",
    "GroupNorm",
    "Max_Pooling_2D",
    "Average_Pooling_3D",
    "conv_standard_2D__square_input__square_kernel",
    "conv_depthwise_separable_2D",
    "CrossEntropyLoss",
    "MinGPTCausalAttention",
    "GQA_max",
    "MHA_Gemm_GeLU_mean",
    "Gemm_BatchNorm_Scaling_Softmax",
    "Matmul_Sum_Max_AvgPool_LogSumExp_LogSumExp",
    "Conv2d_Add_Scale_Sigmoid_GroupNorm",
    "Conv3d_Softmax_MaxPool_MaxPool",
)
FORMULAS = (
    "LeakyReLU",
    "FocalLoss",
    "BetaLogDensity",
    "PoissonLogLikelihood",
    "PadeTanh:inlined",
    "PolynomialActivation:inlined",
    "ResidualModulation:inlined",
    "HarmonicMix:inlined",
    "LogOdds:inlined",
    "LogNormalLogDensity:inlined",
    "BetaLogDensity:inlined",
    "LogSumOfProducts:inlined",
    "CategoricalEntropy:inlined",
    "GaussianDivergence:inlined",
    "LomaxSecondMoment:inlined",
    "PearsonResiduals:inlined",
    "DensityRatio:inlined",
    "SaturationElasticity:inlined",
    "FoldedNormalization:inlined",
    "GaussianKernel",
    "Matmul_Scaling_ResidualAdd:inlined",
    "conv1d_conv1d",
    "conv2d_conv2d",
    "softmax:normal_loop_max_to_prefix_max",
    "LogSoftmax:normal_loop_max_to_prefix_max",
    "CrossEntropyLoss:online_softmax",
    "MinGPTCausalAttention:online_softmax",
    "GQA_max:normal_loop_summation_on_exp_to_prefix_summation_on_exp",
)
MOST = 60


@dataclass(frozen=True, slots=True)
class Case:
    """One strategy on one source: sites, steps taken, seconds of the survey and of the steps."""

    strategy: str
    source: str
    sites: int
    steps: int
    surveying: float
    taking: float
    explaining: float

    @property
    def per_step(self) -> float:
        """Milliseconds per step."""
        return (self.surveying / self.sites + self.taking / self.steps) * 1e3

    @property
    def unexplained(self) -> float:
        """Milliseconds per step without the explanation."""
        return self.per_step - self.explaining / self.steps * 1e3


def prepared(name: str) -> SignedProgram:
    """A source at its first sampled shape, with what is to be done to it first."""
    source, *changes = name.split(":")
    program = translated(source)
    for change in changes:
        after = inlined(program, 0) if change == "inlined" else first_step(change, program)
        if after is None:
            raise SystemExit(f"{name}: {change} does nothing")
        program = after
    return program


def first_step(name: str, program: SignedProgram) -> SignedProgram | None:
    """The program after the step of a strategy at its first site."""
    sites = strategy(name).survey(program).sites
    return strategy(name).apply(program, sites[0]) if sites else None


def translated(name: str) -> SignedProgram:
    """A source at its first sampled shape."""
    shape = SOURCES[name].sample(random.Random(0), 2)[0]
    built = SOURCES[name].build(shape, "f32", 0)
    found = translate(built.module, built.blank(), source=name, ranges=built.ranges)
    if not isinstance(found, Translation):
        raise SystemExit(f"{name} does not translate: {found}")
    return found.signed


def case(name: str, source: str, text: str) -> Case | None:
    """Run one case; None where the strategy has no site."""
    nest_memory.forget()
    program = read(text).signed
    if fault(program) is not None:
        raise SystemExit(f"{source} is not legal")
    one = strategy(name)
    start = process_time()
    sites = one.survey(program).sites
    surveying = process_time() - start
    stride = -(-len(sites) // MOST)
    chosen = sites[::stride] if sites else ()
    start = process_time()
    taken = [take(one, program, site) for site in chosen]
    taking = process_time() - start
    start = process_time()
    for step in taken:
        if isinstance(step, Step):
            one.explain(step.before, step.after, step.site)
    explaining = process_time() - start
    if not all(isinstance(step, Step) for step in taken):
        raise SystemExit(f"{name} on {source}: a listed site was refused")
    return (
        Case(name, source, len(sites), len(taken), surveying, taking, explaining) if taken else None
    )


def line(label: str, cases: Sequence[Case]) -> str:
    """One row of the table."""
    spent = sorted(c.per_step for c in cases)
    worst = max(cases, key=lambda c: c.per_step)
    survey = statistics.median(c.surveying / c.sites for c in cases) * 1e3
    apply_ = statistics.median((c.taking - c.explaining) / c.steps for c in cases) * 1e3
    explain = statistics.median(c.explaining / c.steps for c in cases) * 1e3
    plain = statistics.median(c.unexplained for c in cases)
    sites = sum(c.sites for c in cases)
    by_step = sum(c.unexplained * c.sites for c in cases) / sites
    return (
        f"{label[:40]:40} {len(cases):4} {sites:6} "
        f"{statistics.median(spent):8.2f} {spent[int(0.9 * (len(spent) - 1))]:8.2f} "
        f"{spent[-1]:8.2f} {survey:8.2f} {apply_:8.2f} {explain:8.2f} {plain:11.2f} {by_step:8.2f}"
        f"  {worst.source}"
    )


def main(arguments: Sequence[str]) -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--strategy", action="append", choices=sorted(strategies()))
    parser.add_argument("--sources", nargs="*")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    wanted = parser.parse_args(arguments)
    names = wanted.strategy or sorted(strategies())
    formulas = any(strategy(name).level == "math" for name in names)
    sources = wanted.sources or (*SAMPLE, *(FORMULAS if formulas else ()))
    texts = {source: write(prepared(source)) for source in sources}
    importlib.import_module("islpy")  # is imported when first needed, and belongs to no case
    collect_rarely()
    profile = cProfile.Profile()
    if wanted.profile:
        profile.enable()
    every: list[Case] = []
    print(
        f"{'ms per step':40} {'':4} {'sites':>6} {'median':>8} {'p90':>8} {'worst':>8} "
        f"{'survey':>8} {'apply':>8} {'explain':>8} {'unexplained':>11} {'by step':>8}"
    )
    for name in names:
        left_out = () if wanted.sources or strategy(name).level == "math" else FORMULAS
        own = {source: text for source, text in texts.items() if source not in left_out}
        found = [c for source, text in own.items() if (c := case(name, source, text))]
        every += found
        if found:
            print(line(name, found), flush=True)
    mathematical = [c for c in every if strategy(c.strategy).level == "math"]
    algebraic = [c for c in every if isinstance(strategy(c.strategy), AlgebraicStrategy)]
    others = [c for c in every if strategy(c.strategy).level != "math"]
    for label, cases in (
        ("graph, operator and memory", others),
        ("mathematical", mathematical),
        ("of these, algebraic", algebraic),
        ("all cases", every),
    ):
        if cases:
            print(line(label, cases))
    if wanted.profile:
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main(sys.argv[1:])
