"""How many tokens LEIR saves against TVM's script and CUDA, over the library.

    python benchmarks/bench_tokens.py [--dtypes f16 f32] [--sizes default large] [--steps N]
        [--programs NAME ...] [--every N] [--mix]

Every published source is translated at one shape of each size and dtype and counted in the forms of
``dataset.token_counts``, with Qwen's vocabulary and all programs in the paper's spelling. By dtype,
size, and originals or results: how many programs each language has, tokens in total, the share of
them that LEIR saves, and what it saves of one program (median, 5th and 95th percentile). What TVM
refuses is left out of its own rows only, on both sides.

``--steps N`` also takes, from each original, the step at the first site of every strategy, and
counts the N results whose ids come first (ids are digests, so that is no choice of ours).
``--mix`` says what the tokens of the LEIR texts are spent on. Results go to standard output;
``--rows FILE`` keeps the counts of every program as JSON lines.
"""

import argparse
import json
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from steptp_dagster.dataset.token_counts import OTHER_FORMS, row
from steptp_dagster.dataset.tokens import encoding
from steptp_dagster.leir.canonical import leir_id
from steptp_dagster.leir.fileform import header_text
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.sources.base import Size
from steptp_dagster.sources.registry import SOURCES, WORKLOADS
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.translate.translate import Translation, translate

SIZES: Final[tuple[Size, ...]] = ("default", "large")
#: What a token is spent on: the first pattern that its text matches.
_SPENT_ON: Final = (
    ("digits", r"\d"),
    ("dtypes and scopes", r",?(f|bf|i|u|bool|g|s|l),?$|,[gsl]\}"),
    ("braces and scripts", r"[\^_{}\[\];]+"),
    ("operators", r"[-+*/%<>=!&|().,:]+"),
    ("names and functions", r".*"),
)


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of one program in every form that it has."""

    group: str
    program: str
    tokens: dict[str, int]
    refusals: tuple[str, ...]


def original(name: str, dtype: str, size: Size) -> SignedProgram | None:
    """A source at its first shape of a size; None (said on standard error) if it is refused."""
    source = SOURCES[name]
    (shape, *_) = source.sample(random.Random(0), 1, size)
    built = source.build(shape, dtype)
    found = translate(built.module, built.blank(), source=name, ranges=built.ranges)
    if isinstance(found, Translation):
        return found.signed
    print(f"{name} {dtype} {size}: {found}", file=sys.stderr)
    return None


def results(program: SignedProgram) -> Iterator[SignedProgram]:
    """The result of every strategy at its first site."""
    for strategy in strategies().values():
        for site in strategy.survey(program).sites[:1]:
            step = take(strategy, program, site)
            if isinstance(step, Step):
                yield step.after


def counted(group: str, name: str, program: SignedProgram) -> Counted:
    """A program in all languages."""
    made = row(
        leir_id(program),
        header_text(program.signature),
        to_text(program.program),
        all_languages=True,
    )
    forms = ("leir", "compact", *OTHER_FORMS)
    tokens = {form: made[form] for form in forms if made[form] is not None}
    return Counted(group, name, tokens, tuple(made["refusals"]))


def savings(rows: Sequence[Counted]) -> Iterator[str]:
    """A line for each language: totals, and what the spellings of LEIR save of them."""
    yield (
        f"  {'against':14}{'programs':>9}{'tokens':>11}{'LEIR':>10}{'saves':>8}{'median':>8}"
        f"{'5 %':>8}{'95 %':>8}{'compact saves':>15}"
    )
    for form in OTHER_FORMS:
        there = [each.tokens for each in rows if form in each.tokens]
        if not there:
            continue
        theirs, ours, short = (
            sum(each[name] for each in there) for name in (form, "leir", "compact")
        )
        shares = sorted(1 - each["leir"] / each[form] for each in there)
        low, high = (shares[int(q * (len(shares) - 1))] for q in (0.05, 0.95))
        yield (
            f"  {form:14}{len(there):9}{theirs:11}{ours:10}{1 - ours / theirs:8.1%}"
            f"{statistics.median(shares):8.1%}{low:8.1%}{high:8.1%}{1 - short / theirs:15.1%}"
        )


def report(group: str, rows: Sequence[Counted]) -> None:
    """Print one table."""
    print(f"{group}: {len(rows)} programs", *savings(rows), sep="\n", flush=True)


def mix(texts: Iterable[str]) -> Iterator[str]:
    """What tokens are spent on, by kind and by token."""
    tokens: Counter[str] = Counter()
    for text in texts:
        pieces = encoding().decode_tokens_bytes(encoding().encode(text))
        tokens.update(piece.decode("utf-8", "replace") for piece in pieces)
    total = tokens.total()
    kinds: Counter[str] = Counter()
    for token, times in tokens.items():
        kinds[next(kind for kind, pattern in _SPENT_ON if re.match(pattern, token))] += times
    yield "  " + ", ".join(f"{kind} {n / total:.1%}" for kind, n in kinds.most_common())
    yield "  " + "  ".join(f"{token!r} {n / total:.1%}" for token, n in tokens.most_common(40))


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dtypes", nargs="+", default=["f16", "f32"])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["default"])
    parser.add_argument("--programs", nargs="+", default=list(WORKLOADS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--mix", action="store_true")
    parser.add_argument("--rows", type=Path)
    chosen = parser.parse_args()
    kept: list[Counted] = []
    for size in chosen.sizes:
        parts: dict[str, list[Counted]] = {}
        for dtype in chosen.dtypes:
            names = chosen.programs[:: chosen.every]
            made = {name: original(name, dtype, size) for name in names}
            there = [(name, program) for name, program in made.items() if program is not None]
            after = {
                leir_id(result): (name, result)
                for name, program in (there if chosen.steps else [])
                for result in results(program)
            }
            chosen_results = [after[key] for key in sorted(after)[: chosen.steps]]
            for what, programs in (("originals", there), ("results", chosen_results)):
                if not programs:
                    continue
                group = f"{what} {dtype} {size}"
                parts[group] = [counted(group, name, program) for name, program in programs]
                report(group, parts[group])
                if chosen.mix:
                    print(*mix(to_text(program.program) for _, program in programs), sep="\n")
        for what in ("originals", "results"):
            groups = [rows for group, rows in parts.items() if group.startswith(what)]
            if len(groups) > 1:
                dtypes = " and ".join(chosen.dtypes)
                report(f"{what} {dtypes} {size}", list(chain.from_iterable(groups)))
        kept += chain.from_iterable(parts.values())
    if chosen.rows:
        lines = (
            {"group": r.group, "program": r.program, **r.tokens, "refusals": r.refusals}
            for r in kept
        )
        chosen.rows.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    main()
