"""Before/after cases of strategies: the example in a class docstring, and case files.

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

``sites N`` asks for the number of sites. ``steptp check-strategy`` runs the cases of a plug-in,
the tests those of the library.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from steptp_dagster.leir.fileform import FileFormError, read, write
from steptp_dagster.leir.parser import ParseError, parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Refusal, Strategy
from steptp_dagster.strategies.step import Step, take


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
    try:
        before = read(pairs[0][1]).signed
    except (FileFormError, ParseError) as error:
        raise ValueError(f"{strategy_name}, {name}: {error}") from error
    case = Case(strategy_name, name, before)
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


def step_of(chosen: Strategy, case: Case) -> Step:
    """The step that the case names. Raises LookupError without that site, ValueError if refused."""
    survey = chosen.survey(case.before)
    for site in survey.sites:
        if site.describe() == case.site:
            step = take(chosen, case.before, site)
            if isinstance(step, Refusal):
                raise ValueError(f"{step.reason}: {step.message}")
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
    if case.after is None:
        raise ValueError(f"{case.name}: the case has no after")
    return to_text(parse(case.after, case.before.signature).program)


def lines(text: str) -> str:
    """Canonical text with one top-level nest per line, for reading."""
    out, depth = [], 0
    for piece in re.split(r"(\[|\];)", text):
        depth += {"[": 1, "];": -1}.get(piece, 0)
        out.append(piece + ("\n" if piece == "];" and depth == 0 else ""))
    return "".join(out).strip()


def filled_in(chosen: Strategy, text: str) -> str:
    """A case file with every result computed anew, to be read before it is saved."""
    out = []
    for case in read_cases(chosen.name, text):
        out.append(f"=== {case.name}\n--- before")
        header, _, body = write(case.before).rpartition("\n# ")
        first, _, program = body.partition("\n")
        out.append(f"{header}\n# {first}".strip() + "\n" + lines(program.replace("\n", "")))
        if case.site is not None:
            step = step_of(chosen, case)
            out.append(f"--- site {case.site}\n--- after")
            out.append(lines(to_text(step.after.program)))
            out.append(f"--- numerics {step.numerics}")
        out += [f"--- refused {where}: {reason}" for where, reason in case.refused]
        if case.sites is not None:
            out.append(f"--- sites {case.sites}" if case.sites else "--- no sites")
        out.append("")
    return "\n".join(out)


def objections(chosen: Strategy, case: Case) -> Iterator[str]:
    """What the strategy does otherwise than the case says, in words; nothing: as stated."""
    survey = chosen.survey(case.before)
    if survey != chosen.survey(case.before):
        yield "two surveys of the same program differ"
    if case.sites is not None and len(survey.sites) != case.sites:
        yield f"{len(survey.sites)} sites, not {case.sites}"
    found = refusals_of(chosen, case.before)
    for where, reason in case.refused:
        if (where, reason) not in found:
            yield f"no refusal {reason} at statement {where}"
    if case.site is None:
        return
    try:
        step = step_of(chosen, case)
    except (LookupError, ValueError) as error:
        yield str(error)
        return
    if to_text(step.after.program) != expected_text(case):
        yield f"the result is\n{lines(to_text(step.after.program))}"
    if case.numerics is not None and step.numerics != case.numerics:
        yield f"the values are {step.numerics}, not {case.numerics}"
