"""Records with their programs in the compact spelling of LEIR; all else stays as it is."""

import json
import re
from typing import Any, Final

import polars as pl

from steptp_dagster.dataset.prompts import prompts
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.tokens import count
from steptp_dagster.leir.compact import compact
from steptp_dagster.leir.fileform import program_text
from steptp_dagster.leir.parser import ParseError, parse

_FENCED: Final = re.compile(r"(?<=^```\n)(.*?)(?=\n```$)", re.MULTILINE | re.DOTALL)
_THOUGHT_ENDS: Final = "</think>\n"
_PAPER: Final = "leir"
_COMPACT: Final = "compact"


class NotLeir(ValueError):
    """A record that shows its programs in another language than the paper's spelling of LEIR."""


def respelled(records: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``filtered_dataset`` with programs in the compact spelling, counted anew.

    Raises NotLeir. Thoughts keep the pieces of programs that they quote.
    """
    return pl.DataFrame([_record(row) for row in records.to_dicts()], schema=records.schema)


def _record(row: Row) -> Row:
    system, user, assistant = (message["content"] for message in row["messages"])
    thought, found, reply = assistant.rpartition(_THOUGHT_ENDS)
    reasoned = bool(found)
    if system != prompts().system(row["task"], _PAPER, reasoned):
        raise NotLeir(
            f"record {row['record_id']} does not show LEIR in the paper's spelling: only a profile "
            "with `records: {program: leir}` and today's prompts can be exported as compact"
        )
    system = prompts().system(row["task"], _COMPACT, reasoned)
    user = _FENCED.sub(lambda match: _program(match[0]), user)
    answer = _answer(json.loads(reply))
    reply = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    contents = (system, user, f"{thought}{found}{reply}")
    told = zip(row["messages"], contents, strict=True)
    return {
        **row,
        "messages": [{**message, "content": content} for message, content in told],
        "prompt_tokens": count(system) + count(user),
        "answer_tokens": count(reply),
    }


def _answer(data: Any) -> Any:  # noqa: ANN401 - JSON
    """The answer with every program of it respelled."""
    if isinstance(data, list):
        return [_answer(item) for item in data]
    if not isinstance(data, dict):
        return data
    return {
        (_COMPACT if key == _PAPER else key): _text(value) if key == _PAPER else _answer(value)
        for key, value in data.items()
    }


def _program(declared: str) -> str:
    """Header lines, and the program below them respelled."""
    lines = declared.split("\n")
    first = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "\n".join([*lines[:first], _text("\n".join(lines[first:]))])


def _text(text: str) -> str:
    """A program respelled; a rejected one that is no LEIR stays as it is."""
    try:
        return compact(parse(program_text(text)).program)
    except ParseError:
        return text
