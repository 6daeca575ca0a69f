"""``steptp lineage``: what a row was made from, and what was made from it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steptp_dagster.cli.home import instance
from steptp_dagster.cli.ids import Found, find, plain
from steptp_dagster.cli.output import Failure, emit, json_option, table
from steptp_dagster.cli.warehouse import data_option, fetch, opened

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

Link = dict[str, Any]
#: Stage, as lineage names it, -> asset that runs it.
ASSETS: Final = {
    "sources": "source_programs",
    "leir": "leir_programs",
    "steps": "transformed_steps",
    "verdicts": "gpu_verification",
    "trajectories": "gpu_verification",
    "negatives": "gpu_verification",
    "records": "filtered_dataset",
}
#: Nouns that the way down does not start from.
_LAST: Final = ("record", "trajectory", "negative")
#: What stands in the columns of a link where nothing is known.
_NOTHING: Final = ("asset", "partition", "run_id", "created_at", "code_version")


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--down", is_flag=True, help="What was made from it; also of a program or strategy.")
@click.option("--events", is_flag=True, help="Add the materialisations that Dagster recorded.")
@data_option
@json_option
def lineage(id_: str, down: bool, events: bool, data: Path | None, as_json: bool) -> None:
    """Trace whatever has an id back to its source code, with hashes, seeds, versions and runs.

    With --down the other way: what was made from an id, from a program (by name), or by a strategy
    (NAME, or NAME@VERSION).
    """
    with opened(data) as connection:
        links = list(descend(connection, id_)) if down else trace(connection, find(connection, id_))
        runs = run_rows(connection, links)
    if events:
        add_events(links)
    told = {"links": links, "runs": runs}

    def words() -> str:
        columns = ["what", "id", "detail", "seed", "partition", "run_id", "created_at"]
        columns += ["event"] if events else []
        counted = {w: sum(link["what"] == w for link in links) for w in _order(links)}
        total = ", ".join(f"{n} {what}" for what, n in counted.items())
        listed = table(links, columns)
        known = table(runs) if runs else "no run is known"
        return f"{listed}\n\n{known}" + (f"\n\n{total}" if down else "")

    emit(told, words, as_json=as_json)


def _order(links: Sequence[Link]) -> list[str]:
    return list(dict.fromkeys(link["what"] for link in links))


# -- up ------------------------------------------------------------------------------------------


def trace(connection: "Connection", found: Found) -> list[Link]:
    """From a row back to the source program, nearest first."""
    if found.noun == "record":
        detail = f"{found.row['task']}, {found.row['split']}"
        link = _link(connection, "record", found.id, detail, found.row["unit"])
        return [link, *_made_of(connection, found.row)]
    if found.noun == "step":
        return list(_steps(connection, [found.id]))
    if found.noun == "trajectory":
        return [*_trajectory(connection, found.row), *_steps(connection, found.row["step_ids"])]
    if found.noun == "negative":
        return [*_negative(connection, found.row), *_steps(connection, [found.row["step_id"]])]
    if found.noun == "program":
        link = _link(connection, "program", found.id, "", found.row["unit"])
        step, source = _origin(connection, found.id)
        rest = _steps(connection, [step]) if step else _source(connection, source)
        return [link, *rest]
    return list(_source(connection, found.id))


def _made_of(connection: "Connection", record: dict[str, Any]) -> Iterator[Link]:
    """The trajectory or wrong candidate of a record, and all its steps."""
    query = "select * from trajectories where trajectory_id = ?"
    for row in fetch(connection, query, [record["trajectory_id"]]):
        yield from _trajectory(connection, plain(row))
    for row in fetch(
        connection, "select * from negatives where negative_id = ?", [record["negative_id"]]
    ):
        yield from _negative(connection, plain(row))
    yield from _steps(connection, record["step_ids"])


def _trajectory(connection: "Connection", row: dict[str, Any]) -> Iterator[Link]:
    detail = f"{row['length']} steps: {row['equality']}"
    yield _link(connection, "trajectory", row["trajectory_id"], detail, row["unit"], row["seeds"])


def _negative(connection: "Connection", row: dict[str, Any]) -> Iterator[Link]:
    detail = f"{row['kind']}: {row['reason'] or row['equality']}"
    yield _link(connection, "negative", row["negative_id"], detail, row["unit"], row["seeds"])


def _steps(connection: "Connection", steps: Sequence[str]) -> Iterator[Link]:
    """Steps of one source with their verdicts, all steps before them, and the source.

    Each once, the deepest first, of equally deep ones the last of ``steps``.
    """
    found: dict[str, dict[str, Any]] = {}
    for step in reversed(steps):
        name: str | None = step
        while name is not None and name not in found:
            query = "select * from transformed_steps where step_id = ?"
            (found[name],) = fetch(connection, query, [name])
            name = found[name]["parent_step_id"]
    for row in sorted(found.values(), key=lambda row: -row["step_depth"]):
        yield from _verdicts(connection, row["step_id"])
        yield _step(connection, row)
    yield from _source(connection, next(iter(found.values()))["source_id"])


def _step(connection: "Connection", row: dict[str, Any]) -> Link:
    detail = (
        f"{row['strategy']}@{row['strategy_version']} at {row['site']} {row['parameters']}: "
        f"{row['parent_leir_id']} -> {row['result_leir_id']}"
    )
    return _link(connection, "step", row["step_id"], detail, row["unit"])


def _verdicts(connection: "Connection", step: str) -> Iterator[Link]:
    query = "select * from gpu_verification where step_id = ? order by target"
    for row in fetch(connection, query, [step]):
        said = f" ({row['reason']})" if row["reason"] else ""
        detail = f"{row['target']}: {row['equality']}{said}, {row['toolchain']}"
        yield _link(connection, "verdict", step, detail, row["unit"], row["seeds"])


def _source(connection: "Connection", source: str | None) -> Iterator[Link]:
    """The translation of a source, and the source itself."""
    for row in fetch(connection, "select * from translations where source_id = ?", [source]):
        known = row["fidelity"] is not None
        detail = f"fidelity {row['fidelity']:.1e}" if known else f"refused: {row['refusal']}"
        yield _link(
            connection, "translation", row["leir_id"] or row["source_id"], detail, row["unit"]
        )
    for row in fetch(connection, "select * from source_programs where source_id = ?", [source]):
        detail = f"{row['program']} {row['dtype']} {row['form']} {row['shapes']}"
        detail += f", code {row['code_hash']}"
        yield _link(connection, "source", row["source_id"], detail, row["unit"], row["seed"])


def _origin(connection: "Connection", leir: str) -> tuple[str | None, str | None]:
    """The step that made a program, or the source that was translated to it."""
    translated = fetch(
        connection, "select min(source_id) as id from translations where leir_id = ?", [leir]
    )
    if translated[0]["id"] is not None:
        return None, translated[0]["id"]
    made = fetch(
        connection,
        "select step_id as id from transformed_steps where result_leir_id = ? "
        "order by step_depth, step_id limit 1",
        [leir],
    )
    return (made[0]["id"] if made else None), None


def _link(
    connection: "Connection", what: str, id_: str, detail: str, unit: str, seed: object = None
) -> Link:
    """One row with the run, the asset and the partition that made it."""
    rows = fetch(
        connection,
        "select stage, program, run_id, created_at, code_version from lineage where unit = ?",
        [unit],
    )
    made = dict.fromkeys(_NOTHING)
    for row in rows:
        stage, program = row.pop("stage"), row.pop("program")
        made = {"asset": ASSETS.get(stage, stage), "partition": program, **row}
    return {"what": what, "id": id_, "detail": detail, "seed": seed, **made}


# -- down ----------------------------------------------------------------------------------------

#: Steps that follow from those of ``{start}``, themselves included.
_FOLLOWING: Final = """
with recursive following as (
    select step_id from transformed_steps where {start}
    union
    select s.step_id from transformed_steps s join following f on s.parent_step_id = f.step_id
)
select s.* from transformed_steps s join following using (step_id) order by step_depth, step_id
"""


def descend(connection: "Connection", name: str) -> Iterator[Link]:
    """What was made from a program, an id, or by a strategy: sources, steps, verdicts, records."""
    start, value = _start(connection, name)
    if start in ("program", "source_id"):
        query = f"select source_id from source_programs where {start} = ? order by source_id"
        sources = fetch(connection, query, [value])
        for row in sources:
            yield from reversed(list(_source(connection, row["source_id"])))
        condition = "list_contains(?, source_id)"
        steps = _followers(connection, condition, [row["source_id"] for row in sources])
    elif start == "strategy":
        strategy, _, version = value.partition("@")
        condition = "[strategy, strategy_version] = ?" if version else "strategy = ?"
        steps = _followers(connection, condition, [strategy, version] if version else strategy)
    else:
        steps = _followers(connection, f"{start} = ?", value)
    for row in steps:
        yield _step(connection, row)
        yield from _verdicts(connection, row["step_id"])
    names = [row["step_id"] for row in steps]
    query = "select * from filtered_dataset where list_has_any(step_ids, ?) order by record_id"
    for row in fetch(connection, query, [names]) if names else ():
        detail = f"{row['task']}, {row['split']}"
        yield _link(connection, "record", row["record_id"], detail, row["unit"])


def _followers(connection: "Connection", condition: str, value: object) -> list[dict[str, Any]]:
    return fetch(connection, _FOLLOWING.format(start=condition), [value])


def _start(connection: "Connection", name: str) -> tuple[str, str]:
    """Where the way down starts: a column, and its value. Fails in words for unknown names."""
    known = "select 1 from {} where {} = ? limit 1"
    if fetch(connection, known.format("source_programs", "program"), [name]):
        return "program", name
    if fetch(connection, known.format("transformed_steps", "strategy"), [name.partition("@")[0]]):
        return "strategy", name
    try:
        found = find(connection, name)
    except Failure as error:
        raise Failure(f"{error.message}; nor is it a program or a strategy with steps") from error
    if found.noun in _LAST:
        raise Failure(f"{found.id} is a {found.noun}: lineage goes no further down from it")
    column = {"step": "step_id", "program": "parent_leir_id", "source": "source_id"}[found.noun]
    return column, found.id


# -- runs ----------------------------------------------------------------------------------------


def run_rows(connection: "Connection", links: Sequence[Link]) -> list[dict[str, Any]]:
    """The runs that the links name, the first first."""
    names = sorted({link["run_id"] for link in links if link["run_id"]})
    query = "select * from runs where list_contains(?, run_id) order by started_at, run_id"
    return fetch(connection, query, [names]) if names else []


def add_events(links: Sequence[Link]) -> None:
    """Add to each link the materialisation of its asset and partition by its run.

    ``event`` is the id in Dagster's event log, where that is kept; else None.
    """
    known: dict[tuple[str, str, str], int | None] = {}
    with instance() as events:
        for link in links:
            if link["run_id"] is None:
                link["event"] = None
                continue
            key = (link["asset"], link["partition"], link["run_id"])
            if key not in known:
                known[key] = _event(events, *key)
            link["event"] = known[key]


def _event(instance: Any, asset: str, partition: str, run_id: str) -> int | None:  # noqa: ANN401
    """The id of the last such event; dagster is imported only where it is asked for."""
    import dagster as dg

    wanted = dg.AssetRecordsFilter(
        asset_key=dg.AssetKey(asset),
        asset_partitions=None if partition == "all" else [partition],
    )
    records = instance.fetch_materializations(wanted, limit=1000).records
    return next((int(r.storage_id) for r in records if r.run_id == run_id), None)
