"""Every site of every strategy over all sources, judged by an oracle of its own.

    python benchmarks/sweep.py [--sites 6 | --all] [--seed 0] [--work 1500] [--out FILE --resume]
    python benchmarks/sweep.py --form inlined    # as dead-code, repeated-code, naive
    python benchmarks/sweep.py --after operator_fusion --strategy operator_fission
    python benchmarks/sweep.py --chains 1000 --length 4
    python benchmarks/sweep.py --count           # sites only, at default shapes
    python benchmarks/sweep.py --report FILE     # the table of an earlier run

Each source is translated at one small shape (``--work`` bounds its estimated iterations). Of the
sites of each strategy an even sample is taken, and every result is run by ``oracle`` on several
families of inputs in binary64 (algebraic and streaming steps also in binary32) and compared with
the original: bit for bit where the step claims to be exact, otherwise up to rounding. The same
run shows whether the result is legal. Results are lines of JSON, one a source and strategy, so that
a stopped run goes on with ``--resume``. Nothing here is shared with the checks of the strategies.
"""

import argparse
import json
import random
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.oracle import (
    Array,
    Cells,
    Compiled,
    Key,
    Meaningless,
    cells_of,
    compiled,
    doubtful,
    illegal,
    lanes,
    outputs,
    size_of,
)
from steptp_dagster.dataset.forms import in_form
from steptp_dagster.dataset.schemas import FORMS
from steptp_dagster.leir.fileform import write
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.sources.base import Source
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.base import Refusal, Site, Strategy
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.translate.translate import Translation, TranslationRefusal, translate

FAMILIES: Final = ("normal", "positive", "zeros", "equal", "grid", "large", "masked", "hidden")
#: Families in binary32, where steps of level math are compared too.
SINGLE: Final = ("normal", "large", "offset")
#: Strategies of level math that promise the behaviour of the original for rows with -inf.
STREAMING: Final = frozenset(
    {
        "flashattention_rolling_state",
        "flashattention_wo_tiling",
        "normal_loop_max_to_prefix_max",
        "normal_loop_reduction_to_prefix_reduction",
        "normal_loop_summation_on_exp_to_prefix_summation_on_exp",
        "normal_matmul_to_prefix_matmul_based_on_online_softmax",
        "online_softmax",
    }
)
#: Greatest difference in binary64, relative to the element and the typical size of its tensor.
TOLERANCE: Final = 1e-9
#: Differences that may be left where all digits cancel, relative to the largest value of all.
NOISE: Final = 1e-14
#: Errors in binary32 may grow by this factor, and by so many units in the last place.
GROWTH: Final = 8.0
UNITS: Final = 16 * 2.0**-23


# ------------------------------------------------------------------ inputs


def values(variable: Variable, family: str, seed: int) -> Array:
    """Values of a source variable; floats are binary32 numbers."""
    if variable.values is not None:
        array = np.array(variable.values).reshape(variable.shape)
        return array.astype(np.float64) if variable.dtype[0] in "f" else array
    digits = [seed, *variable.name.encode(), *family.encode()]
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(digits)))
    if variable.dtype == "bool":
        return rng.random(variable.shape) < 0.5
    low, high = variable.low, variable.high
    if variable.dtype[0] in "iu":
        bounds = (0, 3) if low is None or high is None else (int(low), int(high))
        return rng.integers(*bounds, variable.shape, endpoint=True)
    array = np.asarray(rng.standard_normal(variable.shape))
    if family == "positive":
        array = np.abs(array) + 0.125
    elif family == "zeros":
        array = array * 0.0
    elif family == "equal":
        array = array * 0.0 + 0.75
    elif family == "large":
        array = array * 100.0
    elif family == "offset":
        array = array + 300.0
    elif family == "grid":
        array = np.round(array * 4.0) / 2.0
    elif family in ("masked", "hidden") and variable.role == "input" and array.ndim:
        array[..., : array.shape[-1] // 2] = -np.inf
        if family == "hidden":
            array.reshape(-1, array.shape[-1])[0] = -np.inf
    if low is not None and high is not None:
        if family != "equal":
            array = rng.uniform(float(low), float(high), variable.shape)
        array = np.clip(array, float(low), float(high))
    narrow = array.astype(np.float16 if variable.dtype == "f16" else np.float32)
    return narrow.astype(np.float64)


def inputs(program: SignedProgram, family: str, seed: int) -> dict[str, Cells]:
    """Cells of all inputs, parameters and constants."""
    return {v.name: cells_of(values(v, family, seed)) for v in program.signature.sources}


# ------------------------------------------------------------------ judging


class Reference:
    """An original with what it computes."""

    def __init__(self, program: SignedProgram, seed: int) -> None:
        self.program = program
        self.inputs = {f: inputs(program, f, seed) for f in dict.fromkeys((*FAMILIES, *SINGLE))}
        self._double = compiled(program)
        self._single: Compiled | None = None
        self._known: dict[tuple[str, bool], Known] = {}
        self.clean: set[Key] = set()
        first = self._double.run(self.inputs["normal"], range(len(self._double.nests)))
        self.fault = first.fault or next(iter(illegal(self._double, first, self.clean)), None)
        self.contiguous = not any(lanes(self._double, first))

    def known(self, family: str, single: bool = False) -> "Known":
        """What it computes for one family in one precision."""
        key = family, single
        if key not in self._known:
            if single and self._single is None:
                self._single = compiled(self.program, single=True)
            one = self._single if single and self._single else self._double
            outcome = one.run(self.inputs[family])
            arrays = outputs(one, outcome)[0]
            self._known[key] = Known(arrays, outcome.unordered, outcome.largest())
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Known:
    """Outputs of an original; see ``Outcome``."""

    arrays: dict[str, Array]
    unordered: bool
    largest: float


def judged(reference: Reference, step: Step, exact: bool, families: tuple[str, ...]) -> list[str]:
    """What is wrong with a step's result, as ``class: words``."""
    try:
        double = compiled(step.after)
    except Meaningless as error:
        return [f"illegal: {error}"]
    found = []
    for family in families:
        logged = doubtful(double, reference.clean) if family == "normal" else frozenset()
        outcome = double.run(reference.inputs[family], logged)
        if outcome.fault:
            return [f"illegal: {outcome.fault} ({family})"]
        got, fault = outputs(double, outcome)
        if fault:
            return [f"illegal: {fault}"]
        if family == "normal":
            found += [f"illegal: {x}" for x in illegal(double, outcome, reference.clean)]
            if step.strategy == "loop_vectorization" and reference.contiguous:
                found += [f"illegal: {x}" for x in lanes(double, outcome)]
        known = reference.known(family)
        fault = None if known.unordered else different(known, got, exact)
        if fault:
            found.append(f"wrong: {fault} ({family})")
    if exact and not found:
        single = compiled(step.after, single=True)
        got, _ = outputs(single, single.run(reference.inputs["normal"]))
        fault = different(reference.known("normal", single=True), got, exact=True)
        found += [f"wrong: {fault} (normal, in working precision)"] if fault else []
    if MATHEMATICAL[step.strategy] and not found:
        found += list(_unstable(reference, step.after))
    return found


def different(wanted: Known, got: Mapping[str, Array], exact: bool) -> str | None:
    """How two results differ, NaN of the original aside unless the step is exact."""
    for name, a in wanted.arrays.items():
        b = got[name]
        equal = (a == b) | np.isnan(a) & (np.isnan(b) | (not exact))
        if exact:
            if not equal.all():
                return f"{name} is not equal: {_worst(a, b, ~equal)}"
            continue
        finite = np.isfinite(a)
        typical = float(np.sqrt(np.mean(a[finite] ** 2))) if finite.any() else 0.0
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= TOLERANCE * (np.abs(a) + typical) + NOISE * wanted.largest
        bad = ~(equal | finite & near)
        if bad.any():
            return f"{name} differs: {_worst(a, b, bad)}"
    return None


def _worst(a: Array, b: Array, bad: Array) -> str:
    at = tuple(int(i) for i in np.argwhere(bad)[0]) if a.ndim else ()
    return f"{float(b[at])!r} instead of {float(a[at])!r} at {list(at)}, {int(bad.sum())} elements"


def _unstable(reference: Reference, after: SignedProgram) -> Iterator[str]:
    """Errors in binary32 that are much larger than those of the original."""
    single = compiled(after, single=True)
    for family in SINGLE:
        outcome = single.run(reference.inputs[family])
        got, _ = outputs(single, outcome)
        old, truth = reference.known(family, single=True), reference.known(family)
        if old.unordered or truth.unordered:
            continue
        for name, exact in truth.arrays.items():
            usable = np.isfinite(exact) & np.isfinite(old.arrays[name])
            if not usable.any():
                continue
            scale = np.abs(exact[usable]).max() + 1e-30 + 2.0**-23 * truth.largest
            with np.errstate(all="ignore"):
                before = np.abs(old.arrays[name] - exact)[usable].max() / scale
                now = np.abs(got[name] - exact)[usable].max() / scale
            if not now <= GROWTH * before + UNITS:
                yield f"wrong: {name} in f32 is {now:.1e} off, was {before:.1e} ({family})"
                return


MATHEMATICAL: Final = {name: s.level == "math" for name, s in strategies().items()}


def families_of(names: set[str]) -> tuple[str, ...]:
    """The families on which steps of these strategies must agree with the original."""
    algebraic = any(MATHEMATICAL[n] and n not in STREAMING for n in names)
    return tuple(f for f in FAMILIES if not (algebraic and f in ("masked", "hidden")))


# ------------------------------------------------------------------ programs


def shaped(source: Source, work: int, seed: int) -> dict[str, int]:
    """The largest of a few sampled shapes within ``work`` iterations, or else the smallest."""
    rng = random.Random(f"{seed} {source.program}")
    shapes = source.sample(rng, 60)
    small = [s for s in shapes if source.work(s) <= work]
    if small:
        return max(small, key=source.work)
    return min((*shapes, source.least(shapes[0], draws=64)), key=source.work)


def translated(
    name: str, work: int | None, seed: int, form: str = "composed", dtype: str = "f32"
) -> SignedProgram | None:
    """A source at a small shape, or at a default shape where ``work`` is None; or no such form."""
    source = SOURCES[name]
    if work is None:
        shape = source.sample(random.Random(f"{seed} {name}"), 1)[0]
    else:
        shape = shaped(source, work, seed)
    built = source.build(shape, dtype if dtype in source.dtypes else "f32", 0)

    def make(naive: bool) -> Translation | TranslationRefusal:
        values = built.blank()
        return translate(built.module, values, source=name, ranges=built.ranges, naive=naive)

    made = in_form(make, form)
    return made.signed if isinstance(made, Translation) else None


def sample(sites: tuple[Site, ...], most: int | None, seed: str) -> list[Site]:
    """An even sample of sites, in their order."""
    if most is None or len(sites) <= most:
        return list(sites)
    start = random.Random(seed).random()
    return [sites[int((k + start) * len(sites) / most)] for k in range(most)]


# ------------------------------------------------------------------ the sweep


@dataclass
class Options:
    """What to sweep."""

    sites: int | None
    seed: int
    out: Path | None
    work: int | None
    form: str
    after: str | None
    dtype: str


def one(name: str, chosen: Strategy, reference: Reference, options: Options) -> dict[str, Any]:
    """One strategy on one source: a line of the result."""
    line: dict[str, Any] = {"source": name, "strategy": chosen.name, "sites": 0, "tried": 0}
    findings: list[dict[str, str]] = []
    try:
        survey = chosen.survey(reference.program)
    except Exception:  # noqa: BLE001 - whatever a strategy raises is a finding
        findings.append({"what": "crash: survey", "text": traceback.format_exc()})
        return line | {"findings": findings}
    line["sites"] = len(survey.sites)
    line["refusals"] = {r.reason: r.message for r in reversed(survey.refusals)}
    for site in sample(survey.sites, options.sites, f"{options.seed} {name} {chosen.name}"):
        line["tried"] += 1
        after = ""
        try:
            step = take(chosen, reference.program, site)
            if isinstance(step, Refusal):
                what = [f"refused: {step.reason}: {step.message}"]
            else:
                after = write(step.after)
                families = families_of({chosen.name})
                what = judged(reference, step, step.numerics == "exact", families)
        except Exception:  # noqa: BLE001 - as above
            what = [f"crash: {traceback.format_exc()}"]
        findings += [{"what": w, "site": site.describe(), "text": after} for w in what]
    return line | {"findings": findings}


def starts(names: list[str], options: Options) -> Iterator[tuple[str, str | None, SignedProgram]]:
    """The programs to start from, by source: itself, or what a step of ``options.after`` gives."""
    for name in names:
        program = translated(name, options.work, options.seed, options.form, options.dtype)
        if program is None:
            print(f"{name}: no program of form {options.form}", flush=True)
        elif options.after is None:
            yield name, None, program
        else:
            first = strategies()[options.after]
            sites = first.survey(program).sites
            for site in sample(sites, options.sites, f"{options.seed} {name} {first.name}"):
                yield name, site.describe(), first.apply(program, site)


def sweep(names: list[str], wanted: list[Strategy], options: Options) -> list[Any]:
    """All lines; those already in the file are not made again."""
    lines = read(options.out)
    done = {(x["source"], x.get("start"), x["strategy"]) for x in lines}
    for name, start_site, program in starts(names, options):
        missing = [s for s in wanted if (name, start_site, s.name) not in done]
        if not missing:
            continue
        start = time.process_time()
        reference = Reference(program, options.seed)
        if reference.fault:
            print(f"FINDING {name}: the original: {reference.fault}", flush=True)
            continue
        steps = 0
        for chosen in missing:
            line = {"start": start_site, **one(name, chosen, reference, options)}
            lines.append(line)
            steps += line["tried"]
            for finding in line["findings"]:
                print(f"FINDING {name} {chosen.name} {finding.get('site')}: {finding['what']}")
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
        size = sum(size_of(n) for n in program.program.nests)
        spent = time.process_time() - start
        print(f"{name}: {size} instances, {steps} steps, {spent:.1f} s", flush=True)
    return lines


def read(out: Path | None) -> list[Any]:
    """The lines of an earlier run."""
    if out is None or not out.exists():
        return []
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def report(lines: list[Any]) -> int:
    """Print the table; the number of findings."""
    total: dict[str, Counter[str]] = defaultdict(Counter)
    hit = {(x["strategy"], x["source"]) for x in lines if x["sites"]}
    for line in lines:
        row = total[line["strategy"]]
        row["programs"] = sum(1 for name, _ in hit if name == line["strategy"])
        row["sites"] += line["sites"]
        row["tried"] += line["tried"]
        for finding in line["findings"]:
            row[finding["what"].split(":")[0]] += 1
    columns = ("programs", "sites", "tried", "wrong", "illegal", "refused", "crash")
    print(f"{len({x['source'] for x in lines})} sources")
    print(f"{'strategy':<60}" + "".join(f"{c:>10}" for c in columns))
    for name in sorted(total):
        print(f"{name:<60}" + "".join(f"{total[name][c]:>10}" for c in columns))
    sums = {c: sum(r[c] for r in total.values()) for c in columns}
    print(f"{'all':<60}" + "".join(f"{sums[c]:>10}" for c in columns))
    return sum(sums[c] for c in columns[3:])


# ------------------------------------------------------------------ chains


def chain(start: Reference, rng: random.Random, length: int, used: Counter[str]) -> str | None:
    """One random chain from a program; a finding with the steps that led to it."""
    program, exact = start.program, True
    path: list[str] = []
    names: set[str] = set()
    pool = list(strategies().values())
    for _ in range(length):
        for chosen in rng.sample(pool, len(pool)):
            try:
                sites = chosen.survey(program).sites
                step = take(chosen, program, rng.choice(sites)) if sites else None
            except Exception:  # noqa: BLE001 - as above
                return (
                    f"crash: {chosen.name} after {path}\n{traceback.format_exc()}{write(program)}"
                )
            if step is not None:
                break
        else:
            return None
        if isinstance(step, Refusal):
            return f"refused: {chosen.name} after {path}: {step.message}\n{write(program)}"
        path.append(f"{step.strategy} {step.site.describe()}")
        used[step.strategy] += 1
        names.add(step.strategy)
        exact = exact and step.numerics == "exact"
        what = judged(start, step, exact, families_of(names))
        if what:
            return f"{what[0]} after {path}\n{write(program)}\n{write(step.after)}"
        program = step.after
    return None


def chains(names: list[str], options: Options, count: int, length: int) -> int:
    """``count`` chains over the sources in turn; the number of findings."""
    findings, used = 0, Counter[str]()
    references: dict[str, Reference] = {}
    for k in range(count):
        rng = random.Random(f"{options.seed} {k}")
        name = rng.choice(names)
        if name not in references:
            program = translated(name, options.work, options.seed, options.form, options.dtype)
            if program is None:
                continue
            references[name] = Reference(program, options.seed)
        found = chain(references[name], rng, length, used)
        if found is not None:
            findings += 1
            print(f"FINDING chain {k} of {name}: {found}", flush=True)
        if k % 100 == 99:
            print(f"{k + 1} chains, {used.total()} steps, {findings} findings", flush=True)
    print(f"{count} chains, {used.total()} steps, {findings} findings")
    print(", ".join(f"{n} {c}" for n, c in sorted(used.items())))
    return findings


def main() -> int:
    """Sweep, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sites", type=int, default=6, help="most sites per source and strategy")
    parser.add_argument("--all", action="store_true", help="all sites")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=int, default=1500)
    parser.add_argument("--published", action="store_true", help="without sources of our own")
    parser.add_argument("--source", action="append", help="only these sources")
    parser.add_argument("--strategy", action="append", help="only these strategies")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--count", action="store_true", help="list sites only, default shapes")
    parser.add_argument("--form", choices=FORMS, default="composed")
    parser.add_argument("--dtype", choices=("f16", "f32", "f64"), default="f32")
    parser.add_argument("--after", choices=sorted(strategies()), help="begin with such a step")
    parser.add_argument("--chains", type=int, default=0)
    parser.add_argument("--length", type=int, default=4)
    given = parser.parse_args()
    if given.report:
        wanted_names = {n for n, s in SOURCES.items() if s.origin == "published"}
        lines = read(given.report)
        if given.published:
            lines = [x for x in lines if x["source"] in wanted_names]
        return 1 if report(lines) else 0
    if given.out and given.out.exists() and not given.resume:
        parser.error(f"{given.out} exists; --resume goes on with it")
    library = [n for n, s in SOURCES.items() if s.origin == "published" or not given.published]
    names = sorted(given.source or library)
    wanted = [s for n, s in strategies().items() if not given.strategy or n in given.strategy]
    most, work = None if given.all else given.sites, None if given.count else given.work
    options = Options(most, given.seed, given.out, work, given.form, given.after, given.dtype)
    if given.chains:
        return 1 if chains(names, options, given.chains, given.length) else 0
    if given.count:
        return counted(names, wanted, options)
    return 1 if report(sweep(names, wanted, options)) else 0


def counted(names: list[str], wanted: list[Strategy], options: Options) -> int:
    """Sites at default shapes, without steps."""
    lines = []
    for name, _, program in starts(names, options):
        for chosen in wanted:
            sites = len(chosen.survey(program).sites)
            row = {"source": name, "strategy": chosen.name, "sites": sites, "tried": 0}
            lines.append(row | {"findings": []})
    return 1 if report(lines) else 0


if __name__ == "__main__":
    sys.exit(main())
