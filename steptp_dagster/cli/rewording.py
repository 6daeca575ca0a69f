"""``steptp reword``: reasoning texts in other words, by a language model, where they stay true."""

import json
import os
from pathlib import Path
from typing import Any

import click

from steptp_dagster.cli.output import Failure, NamedPath, emit, json_option, say
from steptp_dagster.cli.warehouse import data_option, fetch, opened


@click.command()
@click.option("--endpoint", required=True, help="Base URL of an OpenAI-compatible service.")
@click.option("--model", required=True, help="Name of the model there.")
@click.option(
    "--key-variable",
    default="OPENAI_API_KEY",
    show_default=True,
    help="Environment variable that holds the key; it is written nowhere.",
)
@click.option("--limit", default=10, show_default=True, help="How many records.")
@click.option("--output", type=NamedPath(), help="File (default: beside the export).")
@data_option
@json_option
def reword(
    endpoint: str,
    model: str,
    key_variable: str,
    limit: int,
    output: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Ask a model for the reasoning of records in other words, and keep what still holds.

    One JSON line a record: record_id, original, reworded (null where it was refused), objections.

    Exit code: 0 done, 2 no data set, or the service does not answer.
    """
    from steptp_dagster import paths
    from steptp_dagster.reasoning.rewording import Endpoint, EndpointError

    if limit < 1:
        raise Failure(f"--limit is a positive number, not {limit}")
    service = Endpoint(endpoint, model, os.environ.get(key_variable, ""))
    with opened(data) as connection:
        rows = fetch(
            connection,
            "select f.record_id, s.strategy, s.site, s.parameters, s.reasoning_text, p.signature, "
            "p.text from filtered_dataset f join transformed_steps s on s.step_id = f.step_ids[-1] "
            "join leir_programs p on p.leir_id = s.parent_leir_id order by f.record_id limit ?",
            [limit],
        )
    lines = []
    for number, row in enumerate(rows, 1):
        try:
            lines.append(_reworded(row, service))
        except EndpointError as error:
            raise Failure(str(error)) from error
        say(f"{number} of {len(rows)}")
    where = output or (data or paths.data()) / "reworded.jsonl"
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    aside = where.with_name(f".{where.name}.aside")
    try:
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, where)
    except OSError as error:
        raise Failure(f"{where}: {error.strerror or error}") from error
    kept = sum(line["reworded"] is not None for line in lines)
    summary = {"records": len(lines), "reworded": kept, "file": str(where)}
    emit(summary, f"{kept} of {len(lines)} texts reworded, in {where}", as_json=as_json)


def _reworded(row: dict[str, Any], service: Any) -> dict[str, Any]:  # noqa: ANN401 - loaded late
    from steptp_dagster.dataset.ids import canonical_json
    from steptp_dagster.dataset.signed import signed_of
    from steptp_dagster.dataset.stages.steps import parameters
    from steptp_dagster.reasoning.render import render_text
    from steptp_dagster.reasoning.rewording import objections
    from steptp_dagster.reasoning.style import STYLES
    from steptp_dagster.strategies.alternatives import compared, surveyed
    from steptp_dagster.strategies.registry import strategies
    from steptp_dagster.strategies.step import Step, take

    line = {"record_id": row["record_id"], "original": row["reasoning_text"], "reworded": None}
    chosen = strategies().get(row["strategy"])
    program = signed_of(row["signature"], row["text"])
    for site in surveyed(chosen, program).sites if chosen else ():
        if (canonical_json(list(site.path)), canonical_json(parameters(site))) != (
            row["site"],
            row["parameters"],
        ):
            continue
        step = take(chosen, program, site) if chosen else None
        if chosen is None or not isinstance(step, Step):
            continue
        step = compared(chosen, step)
        for style in STYLES.values():
            if render_text(chosen, site, step.explanation, style) == row["reasoning_text"]:
                told = service.ask(row["reasoning_text"])
                found = objections(chosen, step, row["reasoning_text"], told, style)
                kept = None if found else told
                return line | {
                    "reworded": kept,
                    "objections": [f"{m.kind}: {m.message}" for m in found],
                }
    return line | {"objections": ["stale: today's strategies do not make this text; build first"]}
