"""What only several tables together show: references, splits, lineage, versions of the code."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import duckdb
import polars as pl

from steptp_dagster.dataset.audit.defects import KINDS, Defect
from steptp_dagster.dataset.integrity import integrity
from steptp_dagster.dataset.schemas import STABLE, TABLES, empty
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.dataset.warehouse import FOLDERS, MERGES, VIEWS

#: Stage -> versions of the code (``versions.GROUPS``) that its rows may have come from.
#: Records are kept by content, whatever code chose them, and a token count or rendering is that of
#: its text, whose key names the releases and code that decide it; so these stages are not in it.
MADE_BY: Final[dict[str, tuple[str, ...]]] = {
    "sources": ("sources", "user_sources"),
    "leir": ("leir", "user_leir"),
    "steps": ("steps",),
    "verdicts": ("verdicts",),
    "trajectories": ("trajectories",),
    "negatives": ("negatives",),
    "zoo": ("zoo",),
}
#: What a pair of programs is called by in both tables of verdicts.
_PAIR: Final = ("parent_leir_id", "result_leir_id", "target")


def merged(folders: Mapping[str, Sequence[pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The tables of the warehouse from the rows of all folders, by the warehouse's own rules."""
    found = {}
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            frames = [f for folder in FOLDERS.get(name, (name,)) for f in folders.get(folder, ())]
            rows = pl.concat([empty(table), *frames])
            connection.register("stage_rows", rows.to_arrow())
            query = MERGES.get(name, "select * from {rows}").format(rows="stage_rows")
            found[name] = pl.DataFrame(connection.sql(query).to_arrow_table())
            connection.unregister("stage_rows")
    return found


def references(tables: Mapping[str, pl.DataFrame]) -> Iterator[Defect]:
    """The checks that every warehouse has passed, run on the stage files as they are now."""
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(f"rows_{name}", rows.to_arrow())
            connection.execute(f"create view {name} as from rows_{name}")
        connection.execute(VIEWS.read_text(encoding="utf-8"))
        for finding in integrity(connection):
            kind = finding.check if finding.check in KINDS else "integrity"
            for row in finding.first:
                values = list(row.values())
                said = ", ".join(f"{key} {value}" for key, value in row.items())
                yield Defect(kind, "stages", values[-1 if kind == "references" else 0], said)
            if finding.broken > len(finding.first):
                said = f"and {finding.broken - len(finding.first)} more"
                yield Defect(kind, "stages", "", said)


def lineage(tables: Mapping[str, pl.DataFrame]) -> Iterator[Defect]:
    """Rows without a run, and lineage that names a run which no table knows."""
    known = tables["lineage"]
    for name in STABLE:
        rows = tables[name]
        if "unit" not in rows.columns:
            continue
        alone = rows.join(known, on="unit", how="anti")
        for row in alone.iter_rows():
            yield Defect("no-lineage", name, str(row[0]), f"unit {row[-1]}")
    lost = known.join(tables["runs"], on="run_id", how="anti")
    for name, units in lost.group_by("run_id").len().sort("run_id").iter_rows():
        yield Defect("no-run", "lineage", name, f"{units} units of the run {name}")


def versions(tables: Mapping[str, pl.DataFrame]) -> Iterator[Defect]:
    """Rows that other code made: verdicts older than their verifier, translations ..."""
    owners = {
        row[-1]: (name, str(row[0]))
        for name in (
            *("source_programs", "translations", "surveys", "gpu_verification"),
            *("trajectories", "negatives", "zoo"),
        )
        for row in tables[name].iter_rows()
    }
    for row in tables["lineage"].iter_rows(named=True):
        today = {code_version(group) for group in MADE_BY.get(row["stage"], ())}
        if today and row["code_version"] not in today and row["unit"] in owners:
            table, name = owners[row["unit"]]
            said = f"made by code {row['code_version']}, today's is {', '.join(sorted(today))}"
            yield Defect("outdated", table, name, said)


def verdicts(pairs: pl.DataFrame, said: pl.DataFrame) -> Iterator[Defect]:
    """Steps whose verdict is not that of their pair of programs."""
    columns = [name for name in pairs.columns if name in said.columns]
    other = said.join(pairs.select(columns), on=columns, how="anti", nulls_equal=True)
    for row in other.iter_rows(named=True):
        text = " ".join(f"{name} {row[name]}" for name in _PAIR)
        yield Defect("disagreement", "gpu_verification", row["step_id"], f"verdicts: {text}")
