"""Forms of a record outside the tables: what trainers read."""

from collections.abc import Callable
from typing import Any, Final

from steptp_dagster.dataset.schemas import FILTERED_DATASET, Row

#: Columns of the export that are no column of the records' table, and columns left out of it.
_APART: Final = ("unit",)
#: Columns of a record in exports, ``messages`` last.
RECORD_COLUMNS: Final = (
    *(c for c in FILTERED_DATASET.columns if c not in (*_APART, "messages")),
    "messages",
)


def chat(record: Row) -> Row:
    """All columns, with ``messages`` as TRL's and ms-swift's trainers take them.

    A text that a record has not is empty: readers that guess types from the first lines would
    take a column of nulls for one that has nothing else.
    """
    return {name: "" if record[name] is None else record[name] for name in RECORD_COLUMNS}


def trl(record: Row) -> Row:
    """TRL's prompt-completion form: the loss falls on the answer alone."""
    *prompt, completion = _messages(record)
    return {"prompt": prompt, "completion": [completion]}


def swift(record: Row) -> Row:
    """ms-swift's form: messages, each told whether it is learned."""
    told = zip(_messages(record), record["weights"], strict=True)
    return {"messages": [{**message, "loss": weight > 0} for message, weight in told]}


def _messages(record: Row) -> list[dict[str, Any]]:
    return [dict(message) for message in record["messages"]]


#: Folder (``""``: the top) -> form of its JSONL files.
FORMATS: Final[dict[str, Callable[[Row], Row]]] = {"": chat, "trl": trl, "swift": swift}
