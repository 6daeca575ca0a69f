"""Before/after cases of strategies: the example in a class docstring, and the fixture files.

A case file holds any number of cases; whatever stands before the first ``===`` is commentary.

    === name of the case
    --- before
    # input A f32[4]
    # output D f32[4]
    B^{4}_{tx=0}[...];
    --- site statement 1: factor=2, loop=a        (the text of ``Site.describe``)
    --- after
    B^{4}_{tx=0}[...];                             (no header: the signature stays)
    --- numerics exact

    === a refused program
    --- before
    ...
    --- refused 1: producer-is-output              (path as in ``describe``; any number)
    --- no sites

``sites N`` asks for the number of sites. ``python -m tests.support.strategy_cases NAME`` prints
the file of a strategy with every ``after`` filled in anew, for review before it is saved.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from steptp_dagster.leir.fileform import read, write
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Refusal, Strategy
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step, take

FOLDER = Path(__file__).parents[1] / "fixtures" / "strategies"


@dataclass(slots=True)
class Case:
    """One case: a program and what the strategy must say about it."""

    strategy: str
    name: str
    before: SignedProgram
    site: str | None = None
    after: str | None = None
    numerics: str | None = None
    refused: list[tuple[str, str]] = field(default_factory=list)
    sites: int | None = None


def cases_of(name: str) -> list[Case]:
    """The docstring example and the fixture cases of a strategy."""
    doc = type(strategy(name)).__doc__ or ""
    example = read_cases(name, doc)
    if not example:
        raise ValueError(f"{name}: no example in the class docstring")
    return example + read_cases(name, (FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


def all_cases() -> list[Case]:
    """The cases of all registered strategies."""
    return [case for name in strategies() for case in cases_of(name)]


def read_cases(strategy_name: str, text: str) -> list[Case]:
    """Read the cases of a text. Raises ValueError where a case is malformed."""
    chunks = re.split(r"^ *=== *(.*)$", text, flags=re.MULTILINE)[1:]
    return [
        _read_case(strategy_name, name.strip(), body)
        for name, body in zip(chunks[::2], chunks[1::2], strict=True)
    ]


def _read_case(strategy_name: str, name: str, body: str) -> Case:
    sections = re.split(r"^ *--- *(.*)$", body, flags=re.MULTILINE)[1:]
    pairs = [
        (head.strip(), content.strip())
        for head, content in zip(sections[::2], sections[1::2], strict=True)
    ]
    if not pairs or pairs[0][0] != "before":
        raise ValueError(f"{strategy_name}, {name}: a case starts with '--- before'")
    case = Case(strategy_name, name, read(pairs[0][1]).signed)
    for head, content in pairs[1:]:
        word, _, rest = head.partition(" ")
        match word:
            case "site":
                case.site = rest
            case "after":
                case.after = content
            case "numerics":
                case.numerics = rest
            case "sites":
                case.sites = int(rest)
            case "no":
                case.sites = 0
            case "refused":
                where, _, reason = rest.partition(": ")
                case.refused.append((where, reason))
            case _:
                raise ValueError(f"{strategy_name}, {name}: unknown section {head!r}")
    if (case.site is None) != (case.after is None):
        raise ValueError(f"{strategy_name}, {name}: a site and an after belong together")
    return case


def step_of(case: Case) -> Step:
    """The step that the case names. Raises LookupError or AssertionError otherwise."""
    chosen = strategy(case.strategy)
    survey = chosen.survey(case.before)
    for site in survey.sites:
        if site.describe() == case.site:
            step = take(chosen, case.before, site)
            if isinstance(step, Refusal):
                raise AssertionError(f"{step.reason}: {step.message}")
            return step
    listed = "\n  ".join(site.describe() for site in survey.sites)
    refused = "\n  ".join(_refusal_text(refusal) for refusal in survey.refusals)
    raise LookupError(f"no site {case.site!r}; sites:\n  {listed}\nrefusals:\n  {refused}")


def _refusal_text(refusal: Refusal) -> str:
    where = ".".join(str(i + 1) for i in refusal.path)
    return f"{where}: {refusal.reason} ({refusal.message})"


def refusals_of(chosen: Strategy, program: SignedProgram) -> list[tuple[str, str]]:
    """The refusals as (path text, reason)."""
    return [
        (".".join(str(i + 1) for i in refusal.path), refusal.reason)
        for refusal in chosen.survey(program).refusals
    ]


def expected_text(case: Case) -> str:
    """The canonical text that the case's ``after`` denotes."""
    assert case.after is not None
    return to_text(parse(case.after, case.before.signature).program)


def lines(text: str) -> str:
    """Canonical text with one top-level nest per line, for reading."""
    out, depth = [], 0
    for piece in re.split(r"(\[|\];)", text):
        depth += {"[": 1, "];": -1}.get(piece, 0)
        out.append(piece + ("\n" if piece == "];" and depth == 0 else ""))
    return "".join(out).strip()


def main(name: str) -> str:
    """The fixture file of a strategy with every ``after`` computed anew."""
    out = []
    for case in read_cases(name, (FOLDER / f"{name}.txt").read_text(encoding="utf-8")):
        out.append(f"=== {case.name}\n--- before")
        header, _, body = write(case.before).rpartition("\n# ")
        first, _, program = body.partition("\n")
        out.append(f"{header}\n# {first}".strip() + "\n" + lines(program.replace("\n", "")))
        if case.site is not None:
            step = step_of(case)
            out.append(f"--- site {case.site}\n--- after")
            out.append(lines(to_text(step.after.program)))
            out.append(f"--- numerics {step.numerics}")
        out += [f"--- refused {where}: {reason}" for where, reason in case.refused]
        if case.sites is not None:
            out.append(f"--- sites {case.sites}" if case.sites else "--- no sites")
        out.append("")
    return "\n".join(out)


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1]))
