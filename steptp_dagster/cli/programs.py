"""``steptp parse`` and ``steptp apply``: commands over LEIR files."""

import difflib
from dataclasses import asdict
from typing import Any

import click

from steptp_dagster.cli.files import as_data, read_any, read_valid, report
from steptp_dagster.cli.output import (
    REJECTED,
    Failure,
    emit,
    json_option,
    say,
    spelling_option,
)
from steptp_dagster.leir import compact
from steptp_dagster.leir.canonical import leir_id, structural_hash
from steptp_dagster.leir.compact import Spelling, spell
from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.fileform import write
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import Signature, SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.reasoning.conditions import CONDITIONS, condition
from steptp_dagster.reasoning.render import render_json, render_text
from steptp_dagster.reasoning.style import STYLES, Style
from steptp_dagster.reasoning.wording import sentence
from steptp_dagster.strategies.alternatives import compared, surveyed
from steptp_dagster.strategies.base import Refusal, Strategy, Survey
from steptp_dagster.strategies.registry import faults, strategies
from steptp_dagster.strategies.step import Step, take


@click.command()
@click.argument("file")
@spelling_option
@json_option
@click.pass_context
def parse(context: click.Context, file: str, spelling: Spelling, as_json: bool) -> None:
    """Print the canonical text of a LEIR FILE (in either spelling) and check it.

    A file with header lines is checked against all rules of LEIR; violations and exceeded target
    limits go to standard error. Without a header only the text is read.

    Exit code: 0 read (and valid, where there is a header), 1 read but not valid, 2 not readable.
    """
    parsed, signature, text = read_any(file)
    for note in parsed.notes:
        say(f"{file}: note: {note}")
    data: dict[str, Any] = {
        "text": spell(parsed.program, spelling),
        "notes": [asdict(note) for note in parsed.notes],
        "signature": None,
    }
    if signature is None:
        say(f"{file}: no header lines such as '# output D f32[16,10]', so nothing was checked")
        emit(data, spell(parsed.program, spelling), as_json=as_json)
        return
    signed = SignedProgram(parsed.program, signature)
    violations, limits = check(signed), check_limits(signed)
    data |= {
        "signature": signature_data(signature),
        "valid": not violations,
        "violations": as_data(violations, text),
        "limits": as_data(limits, text),
        "leir_id": leir_id(signed),
        "structural_hash": structural_hash(signed),
        "cost": asdict(cost(signed)),
        "shapes": {} if violations else {n: list(s) for n, s in infer_shapes(signed).items()},
    }
    emit(data, compact.write(signed, spelling).rstrip("\n"), as_json=as_json)
    if limits:
        say(f"{file} is over the target limits:\n{report(limits, text)}")
    if violations:
        say(f"{file} is not valid LEIR:\n{report(violations, text)}")
        context.exit(REJECTED)


@click.command()
@click.argument("strategy")
@click.argument("file")
@click.option("--site", type=int, help="Number of a site, as listed without this option.")
@click.option(
    "--style",
    type=click.Choice(list(STYLES)),
    default="full",
    show_default=True,
    help="Length of the reasoning.",
)
@json_option
def apply(strategy: str, file: str, site: int | None, style: str, as_json: bool) -> None:
    """Apply STRATEGY to the program in FILE.

    Without --site: list the places where it applies, numbered from 0, and where it nearly does
    with the reason. With --site: print the program after the step; --json adds the reasoning.

    Exit code: 0 done, 1 the step was refused, 2 wrong usage or no valid program.
    """
    chosen = known_strategy(strategy)
    signed = read_valid(file).signed
    survey = surveyed(chosen, signed)
    if site is None:
        emit(survey_data(survey), lambda: _listing(survey), as_json=as_json)
        return
    if not 0 <= site < len(survey.sites):
        found = len(survey.sites)
        numbers = f"sites 0 to {found - 1}" if found else "no site"
        raise Failure(f"{strategy} has {numbers} in {file}, not {site}")
    step = take(chosen, signed, survey.sites[site])
    if isinstance(step, Refusal):
        raise Failure(f"{strategy} at site {site}: {step.reason}: {step.message}", REJECTED)
    step = compared(chosen, step)
    emit(step_data(chosen, step, STYLES[style]), write(step.after).rstrip("\n"), as_json=as_json)


def signature_data(signature: Signature) -> list[dict[str, object]]:
    """The known variables for machines; a range or values only where there are any."""
    rows = []
    for variable in signature.variables:
        row = {k: v for k, v in asdict(variable).items() if v is not None}
        rows.append({k: list(v) if isinstance(v, tuple) else v for k, v in row.items()})
    return rows


def survey_data(survey: Survey) -> dict[str, object]:
    """Sites with their numbers, and refusals, for machines."""
    return {
        "sites": [
            {
                "site": number,
                "path": list(site.path),
                "parameters": site.named,
                "description": site.describe(),
            }
            for number, site in enumerate(survey.sites)
        ],
        "refusals": [asdict(refusal) for refusal in survey.refusals],
    }


def step_data(strategy: Strategy, step: Step, style: Style) -> dict[str, object]:
    """A step for machines: both programs, the site, and the reasoning in both forms."""
    return {
        "strategy": strategy.name,
        "strategy_level": strategy.level,
        "site": {"path": list(step.site.path), "parameters": step.site.named},
        "numerics": step.numerics,
        "before": write(step.before),
        "after": write(step.after),
        "explanation": render_json(strategy, step.site, step.explanation),
        "reasoning": render_text(strategy, step.site, step.explanation, style),
    }


def known_strategy(name: str) -> Strategy:
    """The strategy of that name. Fails in words, with broken plug-ins, for an unknown one."""
    known = strategies()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"; did you mean {' or '.join(close)}?" if close else "; `steptp strategies` lists"
        broken = "".join(f"\n{fault}" for fault in faults())
        raise Failure(f"there is no strategy {name!r}{hint}{broken}")
    return known[name]


def _listing(survey: Survey) -> str:
    lines = [f"[{number}] {site.describe()}" for number, site in enumerate(survey.sites)]
    lines = lines or ["no site"]
    for refusal in survey.refusals:
        where = ".".join(str(i + 1) for i in refusal.path)
        place = f"statement {where}" if where else "the program"
        told, needed = sentence(refusal.message), condition(refusal.reason).holds
        known = refusal.reason in CONDITIONS
        lines.append(
            f"refused at {place}: {refusal.reason}: {told}" + f" Needed: {needed}." * known
        )
    return "\n".join(lines)
