"""A small data folder whose ids are real: stages run on three programs, verdicts given."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steptp_dagster import progress
from steptp_dagster.dataset.config import Profile, load
from steptp_dagster.dataset.exports import export_all
from steptp_dagster.dataset.incremental import Made, Origin, Report, Unit, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of, translation_row
from steptp_dagster.dataset.schemas import SOURCE_PROGRAMS, Row
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.stages import translated, zoo
from steptp_dagster.dataset.stages.records import update_records, update_statistics
from steptp_dagster.dataset.stages.sources import update_sources
from steptp_dagster.dataset.stages.steps import update_steps
from steptp_dagster.dataset.stages.verdicts import update_verdicts
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.dataset.warehouse import connect
from steptp_dagster.dataset.warehouse import load as load_warehouse
from steptp_dagster.verify.record import Verdict

HEADER = "# input A f32[4,{n}]\n# output D f32[4]\n"
BODY = "B^{{4}}_{{tx=0}}L^{{{n}}}_{{a=0}}[D^{{f32,g}}_{{tx}}=D^{{f32,g}}_{{tx}}+{value};];"
ACCESS = "A^{f32,g}_{tx,a}"
#: What stands for the translation of each program of the profile.
PROGRAMS = {
    "Matmul3D": (6, ACCESS),
    "softmax": (8, f"exp({ACCESS})"),
    "GELU": (10, f"{ACCESS}*{ACCESS}"),
}
RUN_ID = "00000000-0000-0000-0000-000000000001"


def profile(**changes: Any) -> Profile:
    """Two strategies, one chained step."""
    return replace(load("tiny"), strategies=("loop_split", "reduction_factorization"), **changes)


def origin(group: str, run_id: str = RUN_ID) -> Origin:
    """What the lineage of a stage's rows says; the run gets its row."""
    return Origin(run_id, code_version(group), describe)


def describe() -> Row:
    """The row of the run."""
    return {
        "started_at": "2026-01-01T00:00:00+00:00",
        "job": "build",
        "profile": "tiny",
        "revision": "",
        "releases": "{}",
    }


class Agreeable:
    """A verifier that accepts everything and counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def verify_many(self, pairs: Any) -> Iterator[tuple[Unit, Verdict]]:
        for unit, *_ in pairs:
            self.asked += 1
            yield unit, Verdict(True, "exact", True, None)


def translate(store: Store, program: str, run: Origin) -> Report:
    """Translations by hand, one a source."""
    n, value = PROGRAMS[program]
    signed = signed_of(HEADER.format(n=n), BODY.format(n=n, value=value))
    row = row_of(signed)

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        for unit in missing:
            told = translation_row(unit.payload, leir_id=row["leir_id"], fidelity=0.0)
            yield Made(unit, {"translations": [told], "leir_programs": [row]}, 0.0)

    sources = store.read(SOURCE_PROGRAMS, program).to_dicts()
    units = [Unit(row["source_id"], row) for row in sources]
    return update(store, translated.STAGE, program, units, compute, origin=run)


def tried_zoo(store: Store) -> None:
    """One wrong pair that was refused, one right one that was accepted."""
    pairs = [("dropped-tail", True, False, "values-differ"), ("tiled", False, True, None)]

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        names = ("pair", "wrong", "accepted", "reason")
        rows = [dict(zip(names, pair, strict=True)) for pair in pairs]
        filled = [{"kind": "bounds", "published_rule": None, **row} for row in rows]
        return (Made(unit, {"zoo": filled}, 0.0) for unit in missing)

    units = [Unit("0" * 32, None)]
    update(store, zoo.STAGE, WHOLE, units, compute, origin=origin("zoo"))


def build(
    data: Path,
    chosen: Profile | None = None,
    run_id: str = RUN_ID,
    store: Store | None = None,
) -> Agreeable:
    """Everything from sources to export into ``data``; what is there is kept."""
    chosen, store, judge = chosen or profile(), store or Store(data / "stages"), Agreeable()
    verifier: Any = judge
    for program in chosen.program_names:
        update_sources(store, program, chosen, origin("sources", run_id), progress.silent)
        translate(store, program, origin("leir", run_id))
        steps = origin("steps", run_id)
        update_steps(store, program, chosen, Workers(None), steps, progress.silent)
        verdicts = origin("verdicts", run_id)
        update_verdicts(store, program, chosen, verifier, verdicts, progress.silent)
    tried_zoo(store)
    update_records(store, chosen, origin("records", run_id))
    update_statistics(store, chosen)
    loaded = load_warehouse(store, chosen, data / "steptp.duckdb")
    assert loaded.sound, [finding for finding in loaded.findings if not finding.holds]
    with connect(data / "steptp.duckdb") as connection:
        export_all(connection, data / "export")
    return judge
