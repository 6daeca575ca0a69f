"""``show ID``: a row with what belongs to it, in words or as JSON."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steptp_dagster.cli.ids import Found, find, plain
from steptp_dagster.cli.output import emit, json_option, spelling_option, table
from steptp_dagster.cli.warehouse import data_option, fetch, opened

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

Row = dict[str, Any]
#: What a program is called in the rows of steps, trajectories and negatives.
_TEXTS: Final = ("text", "candidate")


@click.command()
@click.argument("id_", metavar="ID")
@spelling_option
@data_option
@json_option
def show(id_: str, spelling: str, data: Path | None, as_json: bool) -> None:
    """Show a record, step, trajectory, negative, program or source; the start of its id is enough.

    --spelling compact writes programs short, but a record stays as it is.
    """
    with opened(data) as connection:
        found = find(connection, id_)
        extra = _AROUND.get(found.noun, _nothing)(connection, found)
    if spelling == "compact":
        _shorten(found.row)
        _shorten(extra)
    whole = {"noun": found.noun, **found.row, **extra}
    emit(whole, lambda: "\n".join(_WORDS[found.noun](found, extra)), as_json=as_json)


def _shorten(row: Row) -> None:
    """Write every program in a row, and in the rows that belong to it, in the compact spelling."""
    for name, value in row.items():
        if name in _TEXTS:
            row[name] = _short_spelling(value)
        elif isinstance(value, dict):
            _shorten(value)
        elif isinstance(value, list) and name in ("chain", "steps"):
            for each in value:
                _shorten(each)


def _short_spelling(text: str) -> str:
    from steptp_dagster.leir.compact import compact
    from steptp_dagster.leir.parser import parse
    from steptp_dagster.leir.texterror import TextError

    try:
        return compact(parse(text).program)
    except TextError:
        return text  # a wrong candidate need not be a program


# -- what belongs to a row -----------------------------------------------------------------------


def _nothing(connection: "Connection", found: Found) -> Row:
    return {}


def _around_step(connection: "Connection", found: Found) -> Row:
    verdicts = fetch(
        connection,
        "select * from gpu_verification where step_id = ? order by target",
        [found.id],
    )
    return {
        "before": _program(connection, found.row["parent_leir_id"]),
        "after": _program(connection, found.row["result_leir_id"]),
        "verdicts": [plain(v) for v in verdicts],
    }


def _around_trajectory(connection: "Connection", found: Found) -> Row:
    """The program that the chain starts from, and its steps with their results and verdicts."""
    chain = []
    for step in found.row["step_ids"]:
        (row,) = fetch(connection, "select * from transformed_steps where step_id = ?", [step])
        chain.append(plain(row) | _around_step(connection, Found("step", step, row)))
    before = _program(connection, found.row["first_leir_id"])
    return {"before": before, "chain": chain, "source": _source(connection, found)}


def _around_negative(connection: "Connection", found: Found) -> Row:
    """The program that was asked about, and the right step that the candidate was made from."""
    (row,) = fetch(
        connection, "select * from transformed_steps where step_id = ?", [found.row["step_id"]]
    )
    right = plain(row) | _around_step(connection, Found("step", row["step_id"], row))
    before = _program(connection, found.row["parent_leir_id"])
    return {"before": before, "right": right, "source": _source(connection, found)}


def _around_program(connection: "Connection", found: Found) -> Row:
    steps = fetch(
        connection,
        "select step_id, strategy, site, parameters from transformed_steps "
        "where parent_leir_id = ? order by step_id",
        [found.id],
    )
    return {"steps": [plain(s) for s in steps]}


def _around_source(connection: "Connection", found: Found) -> Row:
    rows = fetch(connection, "select * from translations where source_id = ?", [found.id])
    return {"translation": rows[0] if rows else None}


def _program(connection: "Connection", leir: str) -> Row:
    rows = fetch(
        connection, "select leir_id, signature, text from leir_programs where leir_id = ?", [leir]
    )
    return rows[0] if rows else {}


def _source(connection: "Connection", found: Found) -> str:
    """The source of a row in words."""
    query = "select program, dtype, form from source_programs where source_id = ?"
    rows = fetch(connection, query, [found.row["source_id"]])
    told = f"{rows[0]['program']} ({rows[0]['dtype']}, {rows[0]['form']})" if rows else "?"
    return f"{told}, source {found.row['source_id']}"


_AROUND: Final[Mapping[str, Callable[["Connection", Found], Row]]] = {
    "step": _around_step,
    "trajectory": _around_trajectory,
    "negative": _around_negative,
    "program": _around_program,
    "source": _around_source,
}

# -- words ---------------------------------------------------------------------------------------


def _record(found: Found, extra: Row) -> Iterator[str]:
    row = found.row
    yield (
        f"record {found.id}: {row['task']}, {', '.join(row['strategies'])} on {row['program']} "
        f"({row['dtype']}), {row['equality']}, {row['split']}"
    )
    for what in ("trajectory_id", "negative_id"):
        if row[what]:
            yield f"{what.removesuffix('_id')}: {row[what]}"
    yield f"steps: {', '.join(row['step_ids'])}"
    for message in row["messages"]:
        yield f"--- {message['role']} ---\n{message['content']}"


def _step(found: Found, extra: Row) -> Iterator[str]:
    row = found.row
    yield f"step {found.id}: {_done(row)}"
    yield f"verdict: {_verdicts(extra['verdicts'])}"
    yield f"--- before: {row['parent_leir_id']} ---"
    yield _signed(extra["before"])
    yield f"--- after: {row['result_leir_id']} ---"
    yield str(extra["after"].get("text", ""))
    yield f"--- reasoning ---\n{row['reasoning_text']}"


def _trajectory(found: Found, extra: Row) -> Iterator[str]:
    row = found.row
    yield f"trajectory {found.id}: {row['length']} steps from {extra['source']}"
    yield f"verdict on the first and the last program: {_verdicts([row])}"
    yield f"--- start: {row['first_leir_id']} ---"
    yield _signed(extra["before"])
    for number, step in enumerate(extra["chain"], 1):
        yield f"--- step {number}: {step['step_id']}: {_done(step)} ---"
        yield step["reasoning_text"]
        yield f"verdict: {_verdicts(step['verdicts'])}"
        yield f"result {step['result_leir_id']}:\n{step['after'].get('text', '')}"


def _negative(found: Found, extra: Row) -> Iterator[str]:
    row, right = found.row, extra["right"]
    yield f"negative {found.id}: {row['kind']} in a result of {row['strategy']}, {extra['source']}"
    yield f"mistake: {row['change']}"
    usable = "" if row["usable"] else "; not usable as a wrong candidate"
    yield f"verdict: {_verdicts([row])}{usable}"
    yield from _evidence(row)
    yield f"--- before: {row['parent_leir_id']} ---"
    yield _signed(extra["before"])
    yield f"--- candidate ---\n{row['candidate']}"
    yield f"--- the right step: {row['step_id']}: {_done(right)} ---"
    yield str(right["after"].get("text", ""))
    yield f"--- its reasoning ---\n{right['reasoning_text']}"


def _program_words(found: Found, extra: Row) -> Iterator[str]:
    yield f"program {found.id}"
    yield _signed(found.row)
    yield table([{k: v for k, v in found.row.items() if isinstance(v, int)}])
    yield table(extra["steps"]) if extra["steps"] else "no steps start here"


def _source_words(found: Found, extra: Row) -> Iterator[str]:
    yield f"source {found.id}"
    yield from (f"{k}: {v}" for k, v in found.row.items() if k != "code")
    yield f"--- code ---\n{found.row['code'].rstrip()}"


_WORDS: Final[Mapping[str, Callable[[Found, Row], Iterator[str]]]] = {
    "record": _record,
    "step": _step,
    "trajectory": _trajectory,
    "negative": _negative,
    "program": _program_words,
    "source": _source_words,
}


def _done(row: Row) -> str:
    """What a step does: strategy, place (as people count) and parameters."""
    sets = ", ".join(f"{k}={v}" for k, v in row["parameters"].items())
    place = ".".join(str(i + 1) for i in row["site"])
    return f"{row['strategy']} at statement {place}" + (f" with {sets}" if sets else "")


def _verdicts(rows: Iterable[Row]) -> str:
    said = [
        f"{row['target']}: {row['equality']}" + (f" ({row['reason']})" if row["reason"] else "")
        for row in rows
    ]
    return "; ".join(said) or "none"


def _evidence(row: Row) -> Iterator[str]:
    """What a rejection rests on: violations, and the families of inputs that failed."""
    for violation in row["static"]:
        yield f"  {violation['kind']}: {violation['message']}"
    for family in row["numeric"].get("families", ()):
        if family.get("failure"):
            yield f"  inputs {family['family']}: {family['failure']}{_by(family['difference'])}"


def _by(difference: float | str | None) -> str:
    """A difference in words; what is no finite number is stored as text."""
    if difference is None:
        return ""
    return f", difference {difference if isinstance(difference, str) else f'{difference:.3g}'}"


def _signed(program: Row) -> str:
    return f"{program.get('signature', '')}{program.get('text', '')}"
