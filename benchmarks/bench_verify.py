"""Speed of verdicts on steps of a build, against verification as one would first write it.

    python benchmarks/bench_verify.py [--data FOLDER] [--steps 500] [--sample 60 | --all]

Both sides judge the same pairs of programs in one process, with the same inputs and comparisons;
figures are processor time. *Ours* judges all steps in the order and batches of a build.
*Straightforward* takes one pair at a time and keeps nothing: both programs in both precisions are
printed as TVMScript, parsed, built by TVM's default pipeline with its default calling convention,
and run family by family. It takes minutes, so it judges a seeded sample, and the ratio is that on
the sample. All verdicts must be equal.
"""

import argparse
import random
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

from steptp_dagster.verify.worker import quieten_tvm, settle

quieten_tvm()

from steptp_dagster import paths  # noqa: E402
from steptp_dagster.dataset.schemas import TRANSFORMED_STEPS  # noqa: E402
from steptp_dagster.dataset.stages.judging import known_programs  # noqa: E402
from steptp_dagster.dataset.store import Store  # noqa: E402
from steptp_dagster.leir.signature import SignedProgram  # noqa: E402
from steptp_dagster.lowering.default_pipeline import build_by_default  # noqa: E402
from steptp_dagster.lowering.precision import Precision  # noqa: E402
from steptp_dagster.verify import measured, original  # noqa: E402
from steptp_dagster.verify.batch import verify_batch  # noqa: E402
from steptp_dagster.verify.engine import Runner  # noqa: E402
from steptp_dagster.verify.pool import BATCH  # noqa: E402
from steptp_dagster.verify.record import Verdict  # noqa: E402
from steptp_dagster.verify.verdict import numeric, static  # noqa: E402

Pair = tuple[SignedProgram, SignedProgram]
WANTED: Final = 20.0


class Straightforward:
    """An engine (``verify.engine``) that builds one program after the other, through text."""

    target: Final = "llvm"

    def compile(self, programs: Sequence[SignedProgram], precision: Precision) -> list[Runner]:
        """TVM's defaults for everything, but for the fused multiply-add, which changes results."""
        return [build_by_default(p, precision, None, as_text=True) for p in programs]


def pairs_of(folder: Path, count: int, seed: int = 0) -> list[Pair]:
    """Steps of a build: whole originals, chosen by seed, in the order in which they are judged."""
    store = Store(folder / "stages")
    table = str(TRANSFORMED_STEPS.name)
    names = sorted(p.name.partition("=")[2] for p in (store.root / table).glob("program=*"))
    found: list[list[Pair]] = []
    for name in names:
        programs = known_programs(store, name)
        steps = store.read(TRANSFORMED_STEPS, name)
        ids = sorted(set(steps.select("parent_leir_id", "result_leir_id").rows()))
        for parent, group in groupby(ids, key=lambda pair: pair[0]):
            found.append([(programs[parent], programs[result]) for _, result in group])
    random.Random(seed).shuffle(found)
    return [pair for group in found for pair in group][:count]


def ours(pairs: Sequence[Pair]) -> tuple[list[Verdict], list[float]]:
    """Verdicts in batches, and the seconds of each: those of its batch in equal parts."""
    verdicts: list[Verdict] = []
    seconds: list[float] = []
    for first in range(0, len(pairs), BATCH):
        batch = pairs[first : first + BATCH]
        start = time.process_time()
        verdicts += verify_batch(batch)
        seconds += [(time.process_time() - start) / len(batch)] * len(batch)
    return verdicts, seconds


def straightforward(pair: Pair) -> tuple[Verdict, float]:
    """The verdict on one pair, with nothing kept from the one before, and its seconds."""
    original._kept.clear()
    measured._drawn.clear()
    start = time.process_time()
    verdict = static(*pair) or numeric(*pair, 0, Straightforward())
    return verdict, time.process_time() - start


def main() -> int:
    """Print both, and their ratio; 1 if verdicts differ or the ratio is below ``WANTED``."""
    parser = argparse.ArgumentParser(description="Speed of verdicts.")
    parser.add_argument("--data", type=Path, default=paths.data(), help="data folder of a build")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--sample", type=int, default=60, help="steps for the straightforward way")
    parser.add_argument("--all", action="store_true", help="all of them the straightforward way")
    options = parser.parse_args()
    pairs = pairs_of(options.data, options.steps)
    if len(pairs) < options.steps:
        print(f"only {len(pairs)} steps in {options.data}: build a data set first (make dataset)")
        return 1
    settle()
    verdicts, seconds = ours(pairs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    batches = [1e3 * seconds[i] for i in range(0, len(seconds), BATCH)]
    print(
        f"ours: {len(pairs)} steps, ms per step: mean {1e3 * statistics.mean(seconds):.1f}, "
        f"median of batches {statistics.median(batches):.1f}, worst {max(batches):.1f}; "
        f"{1e3 / statistics.median(batches):.0f} steps per second; peak {peak:.0f} MiB"
    )
    count = len(pairs) if options.all else options.sample
    chosen = sorted(random.Random(1).sample(range(len(pairs)), count))
    differ = 0
    slow: list[float] = []
    for i in chosen:
        verdict, taken = straightforward(pairs[i])
        slow.append(taken)
        plain = replace(verdicts[i], seeds=(), versions=())
        differ += plain != verdict and verdicts[i].reason not in ("too-large",)
    own = [seconds[i] for i in chosen]
    ratio = sum(slow) / sum(own)
    print(
        f"straightforward: {count} of them, ms per step: mean {1e3 * statistics.mean(slow):.0f}, "
        f"median {1e3 * statistics.median(slow):.0f}; ours on the same "
        f"{1e3 * statistics.mean(own):.1f}; ratio {ratio:.1f}; different verdicts: {differ}"
    )
    return int(differ > 0 or ratio < WANTED)


if __name__ == "__main__":
    sys.exit(main())
