"""Programs of the library and steps of strategies for the zoo: mistakes are made in them.

The zoo's own programs are written by hand (``verify.zoo``). Here are translations at small shapes,
what strategies of all levels make of both, and with that a long list of right rewrites.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.base import Refusal, Site
from steptp_dagster.strategies.choice import spread
from steptp_dagster.strategies.registry import own_strategies
from steptp_dagster.strategies.step import take
from steptp_dagster.translate.translate import TranslationRefusal, translate
from steptp_dagster.verify.mutation.bases import small
from steptp_dagster.verify.mutation.generate import Base

#: Programs of the library: every kind of operator, all small at the shapes of siblings.
LIBRARY: Final = (
    "Matmul3D",
    "softmax",
    "LayerNorm",
    "GELU",
    "LogSoftmax",
    "Max_Pooling_1D",
    "Average_Pooling_2D",
    "conv_standard_1D",
    "conv_standard_1D_dilated_strided",
    "RMSNorm",
    "GroupNorm",
    "L2Norm",
    "cumsum",
    "masked_cumsum",
    "MSELoss",
    "HuberLoss",
    "CosineSimilarityLoss",
    "CrossEntropyLoss",
    "Argmax_over_a_dimension",
    "HardTanh",
    "LeakyReLU",
    "MatMul_and_Softmax",
    "MinGPTCausalAttention",
    "Matmul_Sigmoid_Sum",
    "Gemm_BiasAdd_Hardtanh_Mish_GroupNorm",
    "Gemm_Scale_BatchNorm",
)
#: Sites taken of each strategy on each program, and steps of each program that are spoilt.
_SITES: Final = 2
_SPOILT: Final = 4


@dataclass(frozen=True, slots=True)
class RightStep:
    """A step of a strategy, which the verdict must accept."""

    program: str
    strategy: str
    level: str
    before: SignedProgram
    after: SignedProgram

    @property
    def name(self) -> str:
        """Program and strategy."""
        return f"{self.program}, {self.strategy}"


def library(name: str, seed: int) -> Base | None:
    """The translation of a program at the shape of a sibling; None if refused or too long."""
    source = SOURCES[name]
    (shape,) = source.sample(random.Random(seed), 1)
    built = source.build(source.sibling(shape, random.Random(seed)), "f32", seed)
    found = translate(built.module, built.example(seed), source=name, ranges=built.ranges)
    if isinstance(found, TranslationRefusal):
        return None
    base = Base(name, found.signed, found.signed)
    return base if small(base) else None


def right_steps(base: Base, seed: int) -> Iterator[RightStep]:
    """Steps of every strategy from a program, at sites that differ as much as they can."""

    def rank(site: Site) -> str:
        return blake2b(f"{seed} {base.name} {site!r}".encode(), digest_size=8).hexdigest()

    for name, strategy in own_strategies().items():
        sites = strategy.survey(base.form).sites
        for site, _ in zip(spread(sites, rank), range(_SITES), strict=False):
            step = take(strategy, base.form, site)
            if not isinstance(step, Refusal):
                yield RightStep(base.name, name, strategy.level, base.original, step.after)


def spoilt(steps: Sequence[RightStep]) -> list[Base]:
    """Some results of one program's steps as bases of mistakes: one of each level, then others."""
    by_level: dict[str, list[RightStep]] = defaultdict(list)
    for step in steps:
        by_level[step.level].append(step)
    turns = [steps[i] for steps in by_level.values() for i in (0, len(steps) // 2)]
    chosen = dict.fromkeys(turns)
    bases = [Base(step.name, step.before, step.after) for step in chosen]
    return [base for base in bases if small(base)][:_SPOILT]
