"""LEIR of the source programs."""

from collections.abc import Sequence
from functools import partial

import dagster as dg
import polars as pl

from assets.common import (
    BACKFILL,
    DUE,
    OWNERS,
    PROGRAMS,
    Metadata,
    Result,
    by_program,
    schema_spec,
    shown,
    tally,
)
from assets.source_programs import source_programs
from resources.build import Build
from resources.store import ParquetStore
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.parts import LEIR
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, TRANSLATIONS
from steptp_dagster.dataset.seals import Seals
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version


@dg.asset(
    deps=[source_programs],
    partitions_def=PROGRAMS,
    backfill_policy=BACKFILL,
    automation_condition=DUE,
    group_name="programs",
    kinds={"pytorch", "parquet"},
    owners=OWNERS,
    code_version=code_version("leir"),
    check_specs=[schema_spec(LEIR_PROGRAMS)],
    metadata=shown(LEIR_PROGRAMS),
    description="One row per distinct translated program; results of steps join in the warehouse.",
)
def leir_programs(context: dg.AssetExecutionContext, store: ParquetStore, build: Build) -> Result:
    """Sources translated, checked, compared with PyTorch in float64, and screened."""
    from steptp_dagster.dataset.stages.leir import update_leir
    from steptp_dagster.dataset.stages.user_leir import update_user_leir

    files, profile, progress = store.files, build.profile, build.progress(context)
    origin, users = build.origin(context, "leir"), build.origin(context, "user_leir")
    seals = Seals.of(files, profile)
    with build.workers() as pool:

        def update(program: str) -> Report:
            if file := profile.user_file(program):
                return update_user_leir(files, file, profile, pool, users, progress)
            return update_leir(files, program, pool, origin, progress)

        def one(program: str) -> Report:
            return seals.update(LEIR, partial(update, program), program)

        told = partial(translated, files)
        yield from by_program(context, files, LEIR_PROGRAMS, one, told, pool.count, pool.stop)


def translated(store: Store, programs: Sequence[str]) -> Metadata:
    """How many were translated, how faithfully, and what was refused or screened."""
    columns = ("refusal", "screens", "fidelity")
    rows = store.read_all(TRANSLATIONS, programs, columns=columns)
    refused = rows.filter(pl.col("refusal").is_not_null())
    screened = rows.filter(pl.col("screens").list.len() > 0).explode("screens")
    worst = rows["fidelity"].max()
    return {
        "translated": rows.height - refused.height,
        "refused": refused.height,
        "refusals": tally(refused, "refusal"),
        "screens": tally(screened, "screens"),
        "largest difference from PyTorch": float(worst) if isinstance(worst, float) else 0.0,
    }
