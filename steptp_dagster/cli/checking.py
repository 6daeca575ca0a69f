"""``steptp check-strategy``: a strategy through everything that the library's own go through."""

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from steptp_dagster.cli.files import read_valid
from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, read_text, table

if TYPE_CHECKING:
    from steptp_dagster.leir.signature import SignedProgram
    from steptp_dagster.strategies.base import Site, Strategy
    from steptp_dagster.strategies.cases import Case
    from steptp_dagster.verify.pool import Verifier

#: Programs of the library that a strategy is tried on: one of each kind, all small.
LIBRARY: Final = (
    "Matmul3D",
    "softmax",
    "LayerNorm",
    "GELU",
    "Max_Pooling_2D",
    "conv_standard_1D",
    "MatMul_and_Softmax",
    "Gemm_Scale_BatchNorm",
)


@click.command(name="check-strategy")
@click.argument("name")
@click.argument("programs", nargs=-1)
@click.option("--cases", "case_file", help="File of before/after cases (docs/plug-ins.md).")
@click.option("--library", is_flag=True, help="Also try it on programs of the library.")
@click.option("--sites", default=4, show_default=True, help="Sites taken of each program.")
@json_option
@click.pass_context
def check_strategy(
    context: click.Context,
    name: str,
    programs: tuple[str, ...],
    case_file: str | None,
    library: bool,
    sites: int,
    as_json: bool,
) -> None:
    """Try the strategy NAME on its cases, on LEIR files PROGRAMS, and on the library.

    Each step must be legal, explained so that every fact is derived again, and accepted by the
    verifier, which runs both sides; each case must come out as it says.

    Exit code: 0 all of that holds, 1 something does not (it is listed), 2 wrong usage.
    """
    from steptp_dagster.cli.programs import known_strategy
    from steptp_dagster.verify.pool import Verifier

    if sites < 1:
        raise Failure(f"--sites is a positive number, not {sites}")
    chosen = known_strategy(name)
    cases = _cases(chosen, case_file)
    tried: list[tuple[str, SignedProgram]] = [(f"case {c.name}", c.before) for c in cases]
    tried += [(file, read_valid(file).signed) for file in programs]
    if library:
        tried += _library()
    if not tried:
        raise Failure(
            f"{name} has no example in its docstring; give --cases, programs or --library"
        )
    problems = [f"case {c.name}: {o}" for c in cases for o in _told(chosen, c)]
    rows: list[dict[str, Any]] = []
    with Verifier(1) as verifier:
        for label, program in tried:
            row, more = _tried(chosen, label, program, sites, verifier)
            rows.append(row)
            problems += more
    data = {"strategy": name, "programs": rows, "problems": problems}
    emit(data, lambda: "\n".join((table(rows), *problems)), as_json=as_json)
    if problems:
        context.exit(REJECTED)


def _cases(chosen: "Strategy", file: str | None) -> "list[Case]":
    from steptp_dagster.strategies.cases import read_cases

    try:
        own = read_cases(chosen.name, type(chosen).__doc__ or "")
        return own + (read_cases(chosen.name, read_text(file)) if file else [])
    except ValueError as error:
        raise Failure(f"a case cannot be read: {error}") from error


def _told(chosen: "Strategy", case: "Case") -> Iterator[str]:
    """Objections to a case; what the strategy raises is one."""
    from steptp_dagster.leir.validity import check
    from steptp_dagster.strategies.cases import objections

    broken = check(case.before)
    if broken:
        yield f"the program before is not valid: {broken[0].kind}: {broken[0].message}"
        return
    try:
        yield from objections(chosen, case)
    except Exception as error:  # noqa: BLE001 - a user's strategy raises anything
        yield f"raised {type(error).__name__}: {error}"


def _tried(
    chosen: "Strategy", label: str, program: "SignedProgram", most: int, verifier: "Verifier"
) -> tuple[dict[str, Any], list[str]]:
    """Counts of one program, and what is wrong, in words."""
    from steptp_dagster.leir.validity import check
    from steptp_dagster.reasoning.check import grounding
    from steptp_dagster.reasoning.render import render_text
    from steptp_dagster.strategies.base import Refusal
    from steptp_dagster.strategies.choice import spread
    from steptp_dagster.strategies.step import take

    row: dict[str, Any] = {"program": label}
    row |= dict.fromkeys(("sites", "refusals", "taken", "accepted"), 0)
    problems: list[str] = []
    if check(program):
        return row, problems
    pairs: list[tuple[Site, SignedProgram]] = []
    try:
        survey = chosen.survey(program)
        row |= {"sites": len(survey.sites), "refusals": len(survey.refusals)}
        for site, _ in zip(spread(survey.sites, repr), range(most), strict=False):
            where = f"{label}, {site.describe()}"
            step = take(chosen, program, site)
            if isinstance(step, Refusal):
                problems.append(f"{where}: listed, but {step.reason}: {step.message}")
                continue
            row["taken"] += 1
            text = render_text(chosen, site, step.explanation)
            found = grounding(program, step.after, chosen, site, step.explanation, text)
            problems += [f"{where}: reasoning: {m.kind}: {m.message}" for m in found]
            pairs.append((site, step.after))
    except Exception as error:  # noqa: BLE001 - a user's strategy raises anything
        problems.append(f"{label}: raised {type(error).__name__}: {error}")
    for number, verdict in verifier.verify_many(
        [(i, program, after) for i, (_, after) in enumerate(pairs)]
    ):
        row["accepted"] += verdict.accepted
        if not verdict.accepted:
            where = f"{label}, {pairs[number][0].describe()}"
            problems.append(f"{where}: rejected: {verdict.reason}: {verdict.message}")
    return row, problems


def _library() -> "list[tuple[str, SignedProgram]]":
    from steptp_dagster.sources.registry import SOURCES
    from steptp_dagster.translate.translate import TranslationRefusal, translate

    found = []
    for name in LIBRARY:
        source = SOURCES[name]
        (shape,) = source.sample(random.Random(0), 1)
        built = source.build(shape, "f32", 0)
        result = translate(built.module, built.example(0), source=name, ranges=built.ranges)
        if isinstance(result, TranslationRefusal):
            raise Failure(f"{name} is not translated: {result}", REJECTED)
        found.append((name, result.signed))
    return found
