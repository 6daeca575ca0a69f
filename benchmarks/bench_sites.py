"""In how many published workloads each strategy has a site, beside the published system's figures.

    python benchmarks/bench_sites.py [--form composed naive] [--dtype f32] [--seed 0]
    python benchmarks/bench_sites.py --missing expression_reorder   # the programs without a site

Every published workload is translated in each form at its first default shape, and every strategy
surveys it; nothing is executed. ``any form`` counts programs that have a site in one of them.
``set_storage_scope`` and ``operator_fission`` need several statements in one nest, which
translations hardly have: ``after fusion`` counts the programs in which ``operator_fusion`` has a
step after which they have a site. The same command prints the same table.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.sweep import translated
from steptp_dagster.dataset.schemas import FORMS
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.base import Strategy
from steptp_dagster.strategies.registry import strategies

#: Programs, of 185, for which a run of the published system gave an output: illegal and
#: meaningless ones count, those that it injected itself (dead code) or swapped (fusion) do not.
PUBLISHED: Final = {
    "additive_split": 125,
    "apart": 28,
    "cache_read_write": 183,
    "cancellation": 41,
    "collect": 25,
    "common_subexpression_elimination": 52,
    "compute_inline": 104,
    "dead_code_elimination": 1,
    "expand_cancellation": 41,
    "expand_collect": 25,
    "expand_factorization": 30,
    "expand_log": 1,
    "expand_powsimp": 49,
    "exponential_split": 71,
    "expression_reorder": 69,
    "expression_splitting": 125,
    "factorization": 92,
    "flashattention_wo_tiling": 27,
    "layout_transformation": 185,
    "logsimp": 1,
    "loop_binding": 154,
    "loop_fusion": 0,
    "loop_parallelization": 159,
    "loop_reorder": 160,
    "loop_split": 183,
    "loop_tiling": 146,
    "loop_unrolling": 160,
    "loop_vectorization": 42,
    "multiplicative_split": 123,
    "normal_loop_max_to_prefix_max": 36,
    "normal_loop_summation_on_exp_to_prefix_summation_on_exp": 36,
    "online_softmax": 34,
    "operator_fission": 2,
    "operator_fusion": 99,
    "partially_equivalent_then_correct": 4,
    "powsimp": 49,
    "precompute_indices": 95,
    "reduction_factorization": 102,
    "set_storage_layout": 142,
    "set_storage_scope": 147,
    "tensor_concat_to_fuse_operators": 12,
    "tensor_split_to_decouple_operators": 129,
    "together": 28,
}
FUSION: Final = "operator_fusion"
#: Strategies that need several statements in a nest.
AFTER_FUSION: Final = ("operator_fission", "set_storage_scope")
AFTER: Final = "after fusion"


def fused(program: SignedProgram) -> Iterator[SignedProgram]:
    """What single fusions make of a program."""
    fusion = strategies()[FUSION]
    return (fusion.apply(program, site) for site in fusion.survey(program).sites)


#: The workloads of the published data set.
WORKLOADS: Final = tuple(sorted(n for n, s in SOURCES.items() if s.origin == "published"))


def survey(
    names: Sequence[str], form: str, wanted: list[Strategy], seed: int = 0, dtype: str = "f32"
) -> dict[tuple[str, str], set[str]]:
    """Which of the programs have a site, by strategy and column of the table."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        program = translated(name, None, seed, form, dtype)
        if program is None:
            continue
        for strategy in wanted:
            if strategy.survey(program).sites:
                found[strategy.name, form].add(name)
            if strategy.name in AFTER_FUSION and any(
                strategy.survey(after).sites for after in fused(program)
            ):
                found[strategy.name, f"{form} {AFTER}"].add(name)
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--form", nargs="+", choices=FORMS, default=["composed", "naive"])
    parser.add_argument("--dtype", choices=("f16", "f32", "f64"), default="f32")
    parser.add_argument("--seed", type=int, default=0, help="of the shapes")
    parser.add_argument("--strategy", nargs="+", choices=sorted(strategies()))
    parser.add_argument("--missing", choices=sorted(strategies()), help="name the programs without")
    given = parser.parse_args()
    names = [given.missing] if given.missing else given.strategy or list(strategies())
    found: dict[tuple[str, str], set[str]] = {}
    for form in given.form:
        chosen = [strategies()[n] for n in names]
        found |= survey(WORKLOADS, form, chosen, given.seed, given.dtype)
    if given.missing:
        for form in given.form:
            without = set(WORKLOADS) - found.get((given.missing, form), set())
            print(f"{form}: {' '.join(sorted(without))}")
        return 0
    columns = [c for form in given.form for c in (form, f"{form} {AFTER}")]
    print(f"{len(WORKLOADS)} workloads, {given.dtype}, seed {given.seed}")
    print(
        f"{'strategy':<58}{'published':>10}" + "".join(f"{c:>23}" for c in [*columns, "any form"])
    )
    for name in names:
        sets = [found.get((name, c), set()) for c in columns]
        shown = [
            str(len(hit)) if name in AFTER_FUSION or AFTER not in column else ""
            for column, hit in zip(columns, sets, strict=True)
        ]
        row = [*shown, str(len(set[str]().union(*sets)))]
        told = str(PUBLISHED.get(name, ""))
        print(f"{name:<58}{told:>10}" + "".join(f"{cell:>23}" for cell in row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
