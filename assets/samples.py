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
    steps = store.read_all(TRANSFORMED_STEPS, programs)
    if steps.is_empty():
        return {}
    length = pl.col("reasoning_text").str.len_chars()
    row = steps.sort(length, "step_id").row(0, named=True)
    return {"a step": dg.MetadataValue.md(step_words(store, programs, row))}


def verdict_sample(store: Store, programs: Sequence[str]) -> Metadata:
    """One accepted and, where there is one, one rejected step with the evidence."""
    rows = store.read_all(GPU_VERIFICATION, programs).sort("step_id", "target")
    steps = store.read_all(TRANSFORMED_STEPS, programs)
    found = {}
    for name, chosen in (
        ("an accepted step", rows.filter("equal_pass")),
        ("a rejected step", rows.filter(~pl.col("equal_pass"))),
    ):
        for verdict in chosen.head(1).to_dicts():
            (step,) = steps.filter(pl.col("step_id") == verdict["step_id"]).to_dicts()
            text = step_words(store, programs, step) + "\n" + verdict_words(verdict)
            found[name] = dg.MetadataValue.md(text)
    return found


def record_sample(store: Store, programs: Sequence[str]) -> Metadata:
    """The shortest record of each task: its steps and verdicts, then the messages themselves."""
    records = store.read(FILTERED_DATASET, WHOLE).sort("answer_tokens", "record_id")
    steps = store.read_all(TRANSFORMED_STEPS, programs)
    verdicts = store.read_all(GPU_VERIFICATION, programs)
    found = {}
    for record in records.unique("task", keep="first", maintain_order=True).to_dicts():
        parts = [f"`{record['record_id']}`: {record['program']}, {record['split']}\n"]
        for name in record["step_ids"]:
            for step in steps.filter(pl.col("step_id") == name).to_dicts():
                parts.append(step_words(store, programs, step))
            parts += [
                verdict_words(v) for v in verdicts.filter(pl.col("step_id") == name).to_dicts()
            ]
        parts += [f"**{m['role']}**\n\n{block(m['content'])}" for m in record["messages"]]
        found[f"a record ({record['task']})"] = dg.MetadataValue.md("\n".join(parts))
    return found


def step_words(store: Store, programs: Sequence[str], step: Row) -> str:
    """Program, step, result and reasoning."""
    before = _program(store, programs, step["parent_leir_id"])
    after = _program(store, programs, step["result_leir_id"])
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


def _program(store: Store, programs: Sequence[str], name: str) -> str:
    for folder in ("leir_programs", "step_programs"):
        for program in programs:
            rows = store.read(LEIR_PROGRAMS, program, folder).filter(pl.col("leir_id") == name)
            for row in rows.head(1).to_dicts():
                return f"{row['signature'].rstrip()}\n{row['text']}"
    return name
