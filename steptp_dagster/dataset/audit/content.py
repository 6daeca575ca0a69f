"""Rows made again from what they hold: ids, hashes, measures, texts, answers."""

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

import polars as pl

from steptp_dagster.dataset import ids
from steptp_dagster.dataset.answers import BadAnswer, read_answer
from steptp_dagster.dataset.audit.defects import Defect
from steptp_dagster.dataset.ids import canonical_json
from steptp_dagster.dataset.programs import row_of
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.leir.texterror import TextError
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.registry import strategies

_EVIDENCE: Final = ("static", "numeric", "margins", "seeds", "toolchain")
#: Columns that hold JSON text, by table.
JSON_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "source_programs": ("inputs", "params", "shapes"),
    "transformed_steps": ("site", "parameters", "reasoning"),
    "gpu_verification": _EVIDENCE,
    "trajectories": _EVIDENCE,
    "negatives": _EVIDENCE,
}


def content(tables: Mapping[str, pl.DataFrame]) -> Iterator[Defect]:
    """Everything that one row, or a row and those it names, gives away."""
    for name, check in CHECKS.items():
        rows = tables.get(name)
        for row in rows.iter_rows(named=True) if rows is not None else ():
            yield from check(name, row)
    yield from _answers(tables)


def _source(table: str, row: Row) -> Iterator[Defect]:
    yield from _json(table, row, row["source_id"])
    shapes = _loaded(row["shapes"])
    if isinstance(shapes, dict):
        parts = (row["program"], row["code_hash"], row["dtype"], shapes, row["seed"], row["form"])
        yield from _same(table, row["source_id"], "source_id", ids.source_id(*parts))
    if row["program"] in SOURCES:  # the hash of a user's file covers files that it imports
        code = blake2b(row["code"].encode(), digest_size=16).hexdigest()
        yield from _same(table, row["source_id"], "code_hash", code, row["code_hash"])


def _program(table: str, row: Row) -> Iterator[Defect]:
    name = row["leir_id"]
    try:
        signed = signed_of(row["signature"], row["text"])
    except (TextError, ValueError) as error:
        yield Defect("unparsable", table, name, " ".join(str(error).split()))
        return
    again = row_of(signed)
    if again["text"] != row["text"]:
        yield Defect("unparsable", table, name, "the text is not in canonical form")
    for column in ("leir_id", "structural_hash"):
        yield from _same(table, name, column, again[column], row[column])
    for column, value in again.items():
        if isinstance(value, int) and value != row[column]:
            said = f"{column} is {row[column]}, the text gives {value}"
            yield Defect("wrong-measure", table, name, said)


def _step(table: str, row: Row) -> Iterator[Defect]:
    name = row["step_id"]
    yield from _json(table, row, name)
    site, values = _loaded(row["site"]), _loaded(row["parameters"])
    if isinstance(site, list) and not isinstance(values, ValueError):
        identity = (row["source_id"], row["parent_leir_id"], row["strategy"])
        made = ids.step_id(*identity, row["strategy_version"], site, values)
        yield from _same(table, name, "step_id", made)
    known = strategies().get(row["strategy"])
    if known is None:
        yield Defect("unknown-strategy", table, name, row["strategy"])
    elif known.version != row["strategy_version"]:
        said = f"{row['strategy']} {row['strategy_version']}, today {known.version}"
        yield Defect("outdated-strategy", table, name, said)


def _survey(table: str, row: Row) -> Iterator[Defect]:
    identity = (row["source_id"], row["parent_leir_id"], row["parent_step_id"], row["strategy"])
    made = ids.digest("survey", *identity)
    yield from _same(table, row["survey_id"], "survey_id", made)


#: What a row of each table of verdicts is called by.
_NAMED: Final = {
    "gpu_verification": "step_id",
    "trajectories": "trajectory_id",
    "negatives": "negative_id",
}


def _verdict(table: str, row: Row) -> Iterator[Defect]:
    name = row[_NAMED[table]]
    yield from _json(table, row, name)
    accepted = row["equality"] in ("exact", "reassociated")
    passes = None if row["equality"] == "built" else accepted
    if row["equal_pass"] is not passes or accepted != (row["reason"] is None):
        said = f"{row['equality']}, passes: {row['equal_pass']}, reason: {row['reason']}"
        yield Defect("disagreement", table, name, said)
    families = _families(row["numeric"])
    for family in families if accepted else ():
        if family.get("failure") is not None:
            said = f"accepted, and fails on {family.get('family')}: {family['failure']}"
            yield Defect("disagreement", table, name, said)
    odd = [f.get("family") for f in families if not f.get("exact")]
    if row["equality"] == "exact" and odd:
        yield Defect("disagreement", table, name, f"exact, but not on {', '.join(map(str, odd))}")


def _families(numeric: str) -> list[dict[str, Any]]:
    told = _loaded(numeric)
    found = told.get("families") if isinstance(told, dict) else None
    return [f for f in found if isinstance(f, dict)] if isinstance(found, list) else []


def _trajectory(table: str, row: Row) -> Iterator[Defect]:
    made = ids.digest("trajectory", row["step_ids"])
    yield from _same(table, row["trajectory_id"], "trajectory_id", made)
    if row["length"] != len(row["step_ids"]):
        said = f"length is {row['length']}, there are {len(row['step_ids'])} steps"
        yield Defect("wrong-measure", table, row["trajectory_id"], said)
    yield from _verdict(table, row)


def _negative(table: str, row: Row) -> Iterator[Defect]:
    made = ids.digest("negative", row["step_id"], row["candidate"])
    yield from _same(table, row["negative_id"], "negative_id", made)
    yield from _verdict(table, row)


def _record(table: str, row: Row) -> Iterator[Defect]:
    contents = [message["content"] for message in row["messages"]]
    made = ids.record_id(row["step_ids"], row["task"], contents)
    yield from _same(table, row["record_id"], "record_id", made)


CHECKS: Final[dict[str, Callable[[str, Row], Iterator[Defect]]]] = {
    "source_programs": _source,
    "leir_programs": _program,
    "transformed_steps": _step,
    "surveys": _survey,
    "gpu_verification": _verdict,
    "trajectories": _trajectory,
    "negatives": _negative,
    "filtered_dataset": _record,
}


def _same(
    table: str, name: str, column: str, made: str, held: str | None = None
) -> Iterator[Defect]:
    if made != (name if held is None else held):
        yield Defect("wrong-id", table, name, f"{column}: the content gives {made}")


def _json(table: str, row: Row, name: str) -> Iterator[Defect]:
    for column in JSON_COLUMNS.get(table, ()):
        held = _loaded(row[column])
        if isinstance(held, ValueError):
            yield Defect("unparsable", table, name, f"{column} is no JSON: {held}")
        elif canonical_json(held) != row[column]:
            yield Defect("unparsable", table, name, f"{column} is not canonical JSON")


def _loaded(text: str) -> Any:  # noqa: ANN401 - whatever the JSON holds, or the error
    try:
        return json.loads(text)
    except ValueError as error:
        return error


def _answers(tables: Mapping[str, pl.DataFrame]) -> Iterator[Defect]:
    """Records whose answer is not their steps and the programs that these lead to."""
    names = ("filtered_dataset", "transformed_steps", "leir_programs")
    if not all(name in tables for name in names):
        return
    records, steps, programs = (tables[name] for name in names)
    texts = dict(programs.select("leir_id", "text").rows())
    made = {
        step: {"strategy": strategy, "leir": texts.get(result)}
        for step, strategy, result in steps.select(
            "step_id", "strategy", "result_leir_id"
        ).iter_rows()
    }
    for row in records.iter_rows(named=True):
        reply = row["messages"][-1]["content"] if row["messages"] else ""
        try:
            told = _told(reply, row["task"], reasoning=row["reasoning_tokens"] > 0)
        except BadAnswer as error:
            yield Defect("unparsable", "filtered_dataset", row["record_id"], str(error))
            continue
        for step, answer in zip(row["step_ids"], told, strict=False):
            wanted = made.get(step, {})
            if odd := [name for name, value in wanted.items() if answer.get(name, value) != value]:
                said = f"the answer has another {' and '.join(odd)} than the step {step}"
                yield Defect("wrong-answer", "filtered_dataset", row["record_id"], said)


def _told(reply: str, task: str, *, reasoning: bool) -> list[dict[str, Any]]:
    """The steps that an answer gives, none of a negative record; in LEIR or another language."""
    answer = _read(reply, task, reasoning=reasoning)
    steps: list[dict[str, Any]] = answer.get("steps", [])
    return [answer] if task == "single" else steps


def _read(reply: str, task: str, *, reasoning: bool) -> dict[str, Any]:
    for language in ("tir", "cuda"):
        try:
            return read_answer(reply, task, language, reasoning=reasoning)[1]
        except BadAnswer:
            continue
    return read_answer(reply, task, reasoning=reasoning)[1]
