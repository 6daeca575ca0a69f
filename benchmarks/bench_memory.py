"""Memory of one worker over thousands of verdicts, and how far two workers halve the time.

    python -m benchmarks.bench_memory [--data FOLDER] [--verdicts 5000] [--workers 1 2]

Steps of a build (``bench_verify``) are judged in worker processes as in a build, all of them, then
in other orders until there are enough. For each number of workers: resident memory as it grows,
processor time per verdict of workers and of the parent, and wall time. On a busy machine only
processor time tells: what the parent takes is the part that more workers do not share.
"""

import argparse
import os
import random
import resource
import sys
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from steptp_dagster.leir.signature import SignedProgram

# Workers import this file, so that nothing large may be imported before ``main``.

MIB: Final = 1 << 20
#: What a worker may take, and how much it may grow in the second half of the verdicts.
MOST_MIB: Final = 400
GROWTH_MIB: Final = 10


def workers_of(server: int) -> list[int]:
    """The processes that a fork server has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == server:
            found.append(int(folder.name))
    return sorted(found)


def resident(process: int) -> float:
    """Resident memory in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def seconds(process: int) -> float:
    """Processor time so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rounds(
    pairs: "list[tuple[SignedProgram, SignedProgram]]", count: int
) -> "Iterator[tuple[int, SignedProgram, SignedProgram]]":
    """Numbered pairs: all in order, then shuffled by originals, again and again."""
    number = 0
    order = list(range(len(pairs)))
    while True:
        for i in order:
            if number == count:
                return
            yield number, *pairs[i]
            number += 1
        originals = list(dict.fromkeys(id(pairs[i][0]) for i in order))
        random.Random(number).shuffle(originals)
        place = {original: k for k, original in enumerate(originals)}
        order.sort(key=lambda i: place[id(pairs[i][0])])


def measure(pairs: "list[tuple[SignedProgram, SignedProgram]]", count: int, workers: int) -> bool:
    """Judge, print, and say whether memory stayed flat and small."""
    from steptp_dagster.verify.pool import Verifier

    server: Any = forkserver._forkserver
    curve: list[float] = []
    with Verifier(workers) as verifier:
        start, own = time.perf_counter(), time.process_time()
        for number, _ in verifier.verify_many(rounds(pairs, count)):
            if (number + 1) % max(1, count // 20) == 0:
                curve.append(max(map(resident, workers_of(server._forkserver_pid))))
        wall, own = time.perf_counter() - start, time.process_time() - own
        taken = sum(map(seconds, workers_of(server._forkserver_pid)))
    growth = curve[-1] - curve[len(curve) // 2]
    print(
        f"{workers} workers, {count} verdicts, processor time {1e3 * taken / count:.1f} ms each, "
        f"in the parent {1e3 * own / count:.2f}; wall {1e3 * wall / count:.1f}, "
        f"workers busy {100 * taken / (workers * wall):.0f} %"
    )
    print(f"  MiB of the largest worker: {' '.join(f'{m:.0f}' for m in curve)}; +{growth:.0f}")
    return max(curve) <= MOST_MIB and growth <= GROWTH_MIB


def main() -> int:
    """1 if a worker grew, or took too much."""
    from benchmarks.bench_verify import pairs_of
    from steptp_dagster import paths

    parser = argparse.ArgumentParser(description="Memory and scaling of the verifier's workers.")
    parser.add_argument("--data", type=Path, default=paths.data(), help="data folder of a build")
    parser.add_argument("--verdicts", type=int, default=5000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    pairs = pairs_of(options.data, options.verdicts)
    if not pairs:
        print(f"no steps in {options.data}: build a data set first (make dataset)")
        return 1
    print(f"{len(pairs)} different steps")
    flat = True
    for workers in options.workers:
        flat = measure(pairs, options.verdicts, workers) and flat
    return int(not flat)


if __name__ == "__main__":
    sys.exit(main())
