"""One step and one record as people read them: program, step, reasoning, verdict."""

import json
import textwrap
from collections.abc import Sequence
from typing import Any, Final

import dagster as dg
import polars as pl

from assets.display import Metadata
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.schemas import (
    FILTERED_DATASET,
    GPU_VERIFICATION,
    LEIR_PROGRAMS,
    TRANSFORMED_STEPS,
    Row,
)
from steptp_dagster.dataset.store import WHOLE, Store

#: Characters of a text; metadata lies in Dagster's event log and should stay small.
LONGEST: Final = 3000
#: Characters of a line.
LINE: Final = 110


def step_sample(store: Store, programs: Sequence[str]) -> Metadata:
    """The step with the shortest reasoning, in words; empty where there is none."""
    length = pl.col("reasoning_text").str.len_chars().alias("length")
    found = [
        (*row, program)
        for program in programs
        for row in store.read(TRANSFORMED_STEPS, program, columns=("step_id", "reasoning_text"))
        .select(length, "step_id")
        .sort("length", "step_id")
        .head(1)
        .rows()
    ]
    if not found:
        return {}
    _, name, program = min(found)
    return {"a step": dg.MetadataValue.md(step_words(store, program, _step(store, program, name)))}


def verdict_sample(store: Store, programs: Sequence[str]) -> Metadata:
    """One accepted and, where there is one, one rejected step with the evidence."""
    columns = ("step_id", "target", "equal_pass")
    told = [(p, store.read(GPU_VERIFICATION, p, columns=columns)) for p in programs]
    found = {}
    for title, passes in (("an accepted step", True), ("a rejected step", False)):
        first = [
            (*row, program)
            for program, rows in told
            for row in rows.filter(pl.col("equal_pass") == passes)
            .select("step_id", "target")
            .sort(pl.all())
            .head(1)
            .rows()
        ]
        for name, target, program in sorted(first)[:1]:
            (verdict,) = _verdicts(store, program, name, target)
            words = step_words(store, program, _step(store, program, name))
            found[title] = dg.MetadataValue.md(f"{words}\n{verdict_words(verdict)}")
    return found


def record_sample(store: Store) -> Metadata:
    """The shortest record of each task: its steps and verdicts, then the messages themselves."""
    columns = ("record_id", "task", "answer_tokens")
    known = store.read(FILTERED_DATASET, WHOLE, columns=columns).sort("answer_tokens", "record_id")
    first = known.unique("task", keep="first", maintain_order=True)["record_id"].to_list()
    rows = store.read(FILTERED_DATASET, WHOLE, where=pl.col("record_id").is_in(first)).to_dicts()
    found = {}
    for record in sorted(rows, key=lambda row: first.index(row["record_id"])):
        # What several programs of one file of a user are called starts with their partition.
        program = record["program"].partition(".")[0]
        parts = [f"`{record['record_id']}`: {record['program']}, {record['split']}\n"]
        for name in record["step_ids"]:
            parts.append(step_words(store, program, _step(store, program, name)))
            parts += map(verdict_words, _verdicts(store, program, name))
        parts += [f"**{m['role']}**\n\n{block(m['content'])}" for m in record["messages"]]
        found[f"a record ({record['task']})"] = dg.MetadataValue.md("\n".join(parts))
    return found


def _step(store: Store, program: str, name: str) -> Row:
    (row,) = store.read(TRANSFORMED_STEPS, program, where=pl.col("step_id") == name).to_dicts()
    return row


def _verdicts(store: Store, program: str, name: str, target: str | None = None) -> list[Row]:
    wanted = pl.col("step_id") == name
    if target is not None:
        wanted &= pl.col("target") == target
    return store.read(GPU_VERIFICATION, program, where=wanted).to_dicts()


def step_words(store: Store, program: str, step: Row) -> str:
    """Program, step, result and reasoning."""
    before = _program(store, program, step["parent_leir_id"])
    after = _program(store, program, step["result_leir_id"])
    sets = ", ".join(f"{k} = {v}" for k, v in json.loads(step["parameters"]).items())
    place = ".".join(str(i + 1) for i in json.loads(step["site"]))
    return "\n".join(
        [
            f"**Program** `{step['parent_leir_id']}`\n",
            block(before),
            f"**Step**: `{step['strategy']}` at statement {place} with {sets}\n",
            block(after),
            f"**Reasoning**\n\n{block(step['reasoning_text'])}",
        ]
    )


def verdict_words(verdict: Row) -> str:
    """The verdict with its evidence by input family."""
    said = f" ({verdict['reason']})" if verdict["reason"] else ""
    bits = "equal bit for bit" if verdict["bitwise"] else "not equal bit for bit"
    head = f"**Verdict** on {verdict['target']}: {verdict['equality']}{said}; outputs {bits}\n\n"
    known = json.loads(verdict["numeric"])
    families = known.get("families", []) if isinstance(known, dict) else []
    columns = ("family", "difference", "original_error", "candidate_error", "failure")
    rows = [{name: _cell(family.get(name)) for name in columns} for family in families]
    return head + (markdown(pl.DataFrame(rows)) if rows else "")


def block(text: str) -> str:
    """A text in lines that fit a page; one that is very long is cut."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n[{len(text) - LONGEST} more characters]"
    lines = [part for line in text.splitlines() for part in folded(line)]
    return "\n".join(["````text", *lines, "````\n"])


def folded(line: str) -> list[str]:
    """A line of prose in pieces; programs have few blanks and stay whole."""
    pieces = textwrap.wrap(line, LINE, break_long_words=False, break_on_hyphens=False)
    return pieces if len(line) > LINE else [line]


def _cell(value: Any) -> str:  # noqa: ANN401 - JSON
    return f"{value:.2g}" if isinstance(value, float) else "" if value is None else str(value)


def _program(store: Store, program: str, name: str) -> str:
    for folder in ("leir_programs", "step_programs"):
        rows = store.read(LEIR_PROGRAMS, program, folder, where=pl.col("leir_id") == name)
        for row in rows.head(1).to_dicts():
            return f"{row['signature'].rstrip()}\n{row['text']}"
    return name
