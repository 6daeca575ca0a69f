"""Random chains of strategies over random and real programs: how many steps, and is any wrong.

    python benchmarks/random_chains.py --seconds 600 --seed 1 [--sources 40] [--verdicts 10]

Each chain starts from a program of the corpus, a fixture, a random program or a translated source,
and takes up to four steps, each of a random strategy that has a site. Every step is run by the
reference interpreter in float64, with all dynamic checks and shuffled parallel loops, and compared
with the *first* program of the chain; of every ``--verdicts`` steps one is also judged by the
verifier. Prints a line for every finding and a summary; exit code 1 if there was one.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from steptp_dagster.dataset.inlined import inlined
from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.fileform import write
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Refusal, Strategy
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.verify.verdict import verify
from tests.support.corpus import VALID
from tests.support.programs import random_inputs, random_program
from tests.support.strategy_cases import all_cases

LENGTH = 4
MOST_ITERATIONS = 20_000
#: Greatest difference of float64 results, relative to the element and the typical size.
TOLERANCE = 1e-9


def sources(count: int, rng: random.Random) -> list[SignedProgram]:
    """Translations of library programs at small shapes, as they are and with inlined formulas."""
    from steptp_dagster.sources.registry import SOURCES
    from steptp_dagster.translate.translate import Translation, translate

    found = []
    for name in rng.sample(sorted(SOURCES), min(count, len(SOURCES))):
        source = SOURCES[name]
        built = source.build(source.least(source.sample(rng, 1)[0]), "f32", 0)
        made = translate(built.module, built.example(0), source=name, ranges=built.ranges)
        if isinstance(made, Translation):
            found.append(made.signed)
            formula = inlined(made.signed, 0)
            if formula is not None:
                found.append(formula)
    return found


def difference(wanted: Mapping[str, Any], got: Mapping[str, Any]) -> float:
    """Largest difference over elements that are finite in the original."""
    worst = 0.0
    for name, value in wanted.items():
        a, b = np.asarray(value, np.float64), np.asarray(got[name], np.float64)
        finite = np.isfinite(a)
        if not finite.any():
            continue
        typical = float(np.sqrt(np.mean(a[finite] ** 2)))
        gap = np.abs(a - b)[finite] / (np.abs(a)[finite] + typical + 1e-300)
        worst = max(worst, float(np.max(np.where(np.isnan(gap), np.inf, gap))))
    return worst


class Stress:
    """Runs chains and counts."""

    def __init__(self, pool: list[SignedProgram], rng: random.Random, verdicts: int) -> None:
        self.pool, self.rng, self.verdicts = pool, rng, verdicts
        self.strategies = list(strategies().values())
        self.counts: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self.findings = 0

    def finding(self, what: str, *programs: SignedProgram) -> None:
        """Print a finding with its programs."""
        self.findings += 1
        print(f"FINDING {what}", flush=True)
        for program in programs:
            print(write(program), flush=True)

    def step(self, program: SignedProgram) -> Step | None:
        """A step of the first strategy, in random order, that has a site."""
        for chosen in self.rng.sample(self.strategies, len(self.strategies)):
            found = self._try(chosen, program)
            if found is not None:
                return found
        return None

    def _try(self, chosen: Strategy, program: SignedProgram) -> Step | None:
        try:
            sites = chosen.survey(program).sites
            if not sites:
                return None
            site = self.rng.choice(sites)
            result = take(chosen, program, site)
        except Exception as error:  # noqa: BLE001 - whatever a strategy raises is a finding
            self.finding(f"crash of {chosen.name}: {type(error).__name__}: {error}", program)
            return None
        if isinstance(result, Refusal):
            what = f"{chosen.name} listed {site.describe()} and refused: {result.message}"
            self.finding(what, program)
            return None
        return result

    def chain(self) -> None:
        """One chain, to its end or its first finding."""
        if self.pool and self.rng.random() < 0.7:
            first = self.rng.choice(self.pool)
        else:
            first = random_program(self.rng.randrange(10**6))
        inputs = random_inputs(first, self.rng.randrange(1000))
        reference = interpret(first, inputs, precision="float64")
        if reference.faults:
            self.finding(f"the first program is faulty: {reference.faults[0].message}", first)
            return
        self.counts["chains"] += 1
        program, path = first, []
        for _ in range(LENGTH):
            step = self.step(program)
            if step is None or cost(step.after).iterations > 2 * MOST_ITERATIONS:
                return
            path.append(f"{step.strategy} {step.site.describe()}")
            self.counts["steps"] += 1
            self.used[step.strategy] += 1
            run = interpret(step.after, inputs, precision="float64", order="shuffled", seed=3)
            gap = difference(reference.outputs, run.outputs)
            if run.faults or not gap < TOLERANCE:
                told = run.faults[0].message if run.faults else f"difference {gap:.2e}"
                self.finding(f"wrong after {path}: {told}", program, step.after)
                return
            if self.verdicts and self.counts["steps"] % self.verdicts == 0:
                self.counts["verdicts"] += 1
                verdict = verify(program, step.after)
                if not verdict.accepted:
                    what = f"rejected after {path}: {verdict.reason}: {verdict.message}"
                    self.finding(what, program, step.after)
                    return
            program = step.after


def main() -> int:
    """Run until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--chains", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--verdicts", type=int, default=10)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    pool = [case.signed for case in VALID] + [case.before for case in all_cases()]
    pool += sources(options.sources, rng)
    pool = [program for program in pool if cost(program).iterations <= MOST_ITERATIONS]
    stress = Stress(pool, rng, options.verdicts)
    start = time.monotonic()
    while time.monotonic() - start < options.seconds and stress.counts["chains"] < options.chains:
        stress.chain()
    used = ", ".join(f"{name} {n}" for name, n in sorted(stress.used.items()))
    print(f"{dict(stress.counts)}, findings {stress.findings}")
    print(f"steps by strategy: {used}")
    unused = sorted({s.name for s in stress.strategies} - set(stress.used))
    print(f"never taken: {', '.join(unused) or 'none'}")
    return 1 if stress.findings else 0


if __name__ == "__main__":
    sys.exit(main())
