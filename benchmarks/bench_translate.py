"""The library through the whole door, and how long each stage takes, in CPU seconds.

``python benchmarks/bench_translate.py`` builds every source program at one shape, exports,
translates, compares (both evaluators, many families, both precisions) and screens it; it prints
what failed, then median, 90th percentile and total by stage. ``--dtype`` and ``--form`` choose the
precision and the form, ``--sample N`` the N-th shape, ``--shapes`` ``default``, ``sibling`` (of a
large shape), ``ones`` (every extent that may be 1 is 1; not screened, since much is redundant
then) or ``large`` (only translated),
``--family`` one family, ``--verbose`` prints every program. The exit code is 1 if anything failed.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import torch

from steptp_dagster.dataset.evidence import gather
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.validity import check
from steptp_dagster.sources.base import Built, Source
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.translate import translate as door
from steptp_dagster.translate.reference import Reference
from steptp_dagster.translate.translate import Translation, TranslationRefusal
from steptp_dagster.verify.screen import screen

STAGES: Final = ("build", "export", "translate", "compare", "screen")
SHAPES: Final = ("default", "sibling", "ones", "large")
#: What the translator calls to export a module.
EXPORT: Final = "export"
#: Scalar iterations above which a program is not executed.
LARGE: Final = 10**6


@dataclass
class Clock:
    """CPU seconds by stage; what runs inside another stage is not counted there."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    inner: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside as this stage."""
        outer, self.inner = self.inner, 0.0
        start = time.process_time()
        yield
        spent = time.process_time() - start
        self.seconds[name] += spent - self.inner
        self.inner = outer + spent


def shape_of(source: Source, kind: str, number: int) -> Mapping[str, int]:
    """A shape of a program: the ``number``-th of its kind."""
    rng = random.Random(number)
    if kind in ("large", "sibling"):
        (large,) = source.sample(rng, 1, "large")
        return large if kind == "large" else source.sibling(large, rng)
    (shape,) = source.sample(rng, 1)
    return shape if kind == "default" else _ones(source, shape)


def _ones(source: Source, shape: Mapping[str, int]) -> Mapping[str, int]:
    """The shape with every extent 1 that the program runs with."""
    result = dict(shape)
    for name in shape:
        changed = {**result, name: 1}
        if name in source.structure or not source.admits(changed):
            continue
        try:
            built = source.build(changed)
            built.module(*built.example(0))
        except (RuntimeError, ValueError):
            continue
        result = changed
    return result


def run(
    source: Source,
    shape: Mapping[str, int],
    dtype: str,
    form: str,
    clock: Clock,
    *,
    screened: bool = True,
) -> list[str]:
    """Everything that is wrong with one program, in words. Large ones are only translated."""
    large = source.work(shape) > LARGE
    with clock.stage("build"):
        built = source.build(shape, dtype)
        inputs = built.blank() if large else built.example(0)
    result = _translated(built, inputs, form, clock)
    if isinstance(result, TranslationRefusal):
        return [f"refused: {result}"]
    faults = [
        f"{v.kind}: {v.message}" for v in (*check(result.signed), *check_limits(result.signed))
    ]
    if parse(to_text(result.signed.program)).program != result.signed.program:
        faults.append("it is not read back as it was printed")
    if large or faults:
        return faults

    def sibling() -> Reference | None:
        small = source.build(source.least(shape), dtype)
        given = small.example(0)
        own = _translated(small, given, form, clock)
        return Reference(small.module, given, own) if isinstance(own, Translation) else None

    with clock.stage("compare"):
        evidence = gather(Reference(built.module, inputs, result), sibling)
    if objection := evidence.objection():
        faults.append(f"{objection[0]}: {objection[1]}")
    with clock.stage("screen"):
        plain = result if form == "composed" else _translated(built, inputs, "composed", clock)
        screens = screen(plain.signed) if screened and isinstance(plain, Translation) else ()
        faults += [f"screen: {what}" for what in screens]
    return faults


def _translated(
    built: Built, inputs: tuple[torch.Tensor, ...], form: str, clock: Clock
) -> Translation | TranslationRefusal:
    with clock.stage("translate"):
        return door.translate(built.module, inputs, ranges=built.ranges, naive=form == "naive")


def sweep(chosen: argparse.Namespace) -> tuple[list[Clock], dict[str, list[str]]]:
    """The times of every program, and the faults of those that have any."""
    clocks, failed = [], {}
    for name, source in SOURCES.items():
        if chosen.family not in ("", source.family):
            continue
        clock = Clock()
        shape: Mapping[str, int] = {}
        try:
            with exports_counted(clock):
                shape = shape_of(source, chosen.shapes, chosen.sample)
                screened = chosen.shapes != "ones"
                faults = run(source, shape, chosen.dtype, chosen.form, clock, screened=screened)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this program's fault
            faults = [f"crashed: {type(error).__name__}: {error}"]
        clocks.append(clock)
        if faults:
            failed[name] = [f"{dict(shape)}", *faults]
        if chosen.verbose:
            print(f"{name:70}", *(f"{clock.seconds[s]:9.3f}" for s in STAGES), *faults, flush=True)
    return clocks, failed


@contextmanager
def exports_counted(clock: Clock) -> Iterator[None]:
    """Let the translator's exports count as a stage of their own."""
    before = getattr(door, EXPORT)

    def timed(*arguments: object) -> object:
        with clock.stage("export"):
            return before(*arguments)

    setattr(door, EXPORT, timed)
    try:
        yield
    finally:
        setattr(door, EXPORT, before)


def main() -> int:
    """Print faults and a table."""
    parser = argparse.ArgumentParser(description="All source programs through the whole door.")
    parser.add_argument("--dtype", default="f32", choices=("f16", "f32", "f64"))
    parser.add_argument("--form", default="composed", choices=("composed", "naive"))
    parser.add_argument("--shapes", default="default", choices=SHAPES)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--family", default="")
    parser.add_argument("--verbose", action="store_true")
    torch.set_num_threads(1)
    clocks, failed = sweep(parser.parse_args())
    for name, faults in failed.items():
        print(name, *faults, sep="\n    ")
    print(f"{len(clocks)} programs, {len(failed)} with faults; CPU seconds")
    print(f"{'stage':10} {'median':>8} {'p90':>8} {'most':>8} {'total':>8}")
    columns = {stage: [c.seconds[stage] for c in clocks] for stage in STAGES}
    columns["all"] = [sum(c.seconds.values()) for c in clocks]
    for stage, seconds in columns.items():
        ordered = sorted(seconds)
        middle, high = statistics.median(ordered), ordered[int(0.9 * (len(ordered) - 1))]
        print(f"{stage:10} {middle:8.3f} {high:8.3f} {ordered[-1]:8.3f} {sum(ordered):8.1f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
