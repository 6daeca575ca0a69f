"""How a stage is run by an asset: by program or as a whole, what is said, what is tried again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Final

import dagster as dg
import pandera.polars as pa

from assets.display import Metadata
from assets.partitions import DATA_VERSION
from resources.build import on_console
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import NOTHING, BadRows, Report
from steptp_dagster.dataset.parallel import side_by_side
from steptp_dagster.dataset.store import WHOLE, PartitionBusy, Store

Result = Iterator[dg.MaterializeResult | dg.AssetMaterialization]
#: Seconds before an asset whose files another run writes is tried again, and how often.
BUSY_WAIT: Final = 20
BUSY_TRIES: Final = 30
#: Tables that an asset makes beside its own, by the name of that.
BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"gpu_verification": ("trajectories", "negatives")}


def schema_spec(table: pa.DataFrameSchema) -> dg.AssetCheckSpec:
    """The blocking check that every row fits the table; it runs before rows are written."""
    return dg.AssetCheckSpec(
        "schema",
        asset=str(table.name),
        blocking=True,
        description="Every row fits the table's schema; nothing else is written.",
    )


class WorkerDied(RuntimeError):
    """A process of a build ended before its work did."""

    def __init__(self) -> None:
        """The words are the same for all: nobody knows which unit it was at."""
        super().__init__(
            "a worker process died (killed, or out of memory); what was finished is kept, run "
            "again, with fewer STEPTP_WORKERS where memory is short"
        )


@contextmanager
def tried_again(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Ask for another try where one helps: a partition in use, a worker process that died.

    A build of the command line says so and stops instead: somebody is there to decide.
    """
    try:
        yield
    except PartitionBusy as error:
        if on_console(context):
            raise
        context.log.warning(f"{error}; trying again in {BUSY_WAIT} s")
        raise dg.RetryRequested(max_retries=BUSY_TRIES, seconds_to_wait=BUSY_WAIT) from error
    except BrokenProcessPool as error:
        if on_console(context):
            raise WorkerDied from None
        context.log.warning(f"a worker process died ({error}); trying once more")
        raise dg.RetryRequested(max_retries=1, seconds_to_wait=1) from error


def by_program(
    context: dg.AssetExecutionContext,
    store: Store,
    table: pa.DataFrameSchema,
    update: Callable[[str], Report],
    describe: Callable[[Sequence[str]], Metadata] = lambda _: {},
    workers: int = 1,
    stop: Callable[[], None] = lambda: None,
) -> Result:
    """Run a stage for every partition of the run, and report counts.

    With several ``workers`` that the updates share, some partitions are updated side by side;
    ``stop`` stops those workers when an update fails or the run is interrupted.
    """
    programs = list(context.partition_keys)
    total = NOTHING
    rows: dict[str, int] = {}
    try:
        with tried_again(context):
            reports = side_by_side(update, programs, workers, stop)
            for program, report in zip(programs, reports, strict=True):
                total += report
                # Of the file: what a part writes beside its stages' tables is in no report.
                rows[program] = store.read(table, program, columns=["unit"]).height
                told = {"dagster/partition_row_count": rows[program]}
                context.add_asset_metadata(told, partition_key=program)
    except BadRows as error:
        yield refused(error)
        return
    metadata = {**counts(total), **describe(programs)}
    # With the last partition only: each has an event of its own, which lies in Dagster's database.
    context.add_asset_metadata(metadata, partition_key=programs[-1])
    yield accepted(store, table, programs, {})
    if len(programs) > 1:
        yield from partition_versions(context, store, table, rows, metadata)


def partition_versions(
    context: dg.AssetExecutionContext,
    store: Store,
    table: pa.DataFrameSchema,
    rows: Mapping[str, int],
    metadata: Metadata,
) -> Iterator[dg.AssetMaterialization]:
    """Say of each partition which data it has.

    A result has one data version for all partitions of its run, so a later run of one of them
    would seem to have changed it. The events that follow it count instead, and have their own. The
    last of them is what the asset's page shows, so it has the metadata of the run again.
    """
    last_program = list(rows)[-1]
    last = context.instance.get_latest_materialization_event(context.asset_key)
    event = None if last is None else last.asset_materialization
    tags = {} if event is None or event.tags is None else dict(event.tags)
    for program, count in rows.items():
        yield dg.AssetMaterialization(
            context.asset_key,
            partition=program,
            metadata={
                **(metadata if program == last_program else {}),
                "dagster/partition_row_count": count,
            },
            tags={**tags, DATA_VERSION: version(store, table, [program])},
        )


def whole(
    context: dg.AssetExecutionContext,
    store: Store,
    table: pa.DataFrameSchema,
    update: Callable[[], Metadata],
) -> dg.MaterializeResult:
    """Run a stage that looks at all programs together."""
    try:
        with tried_again(context):
            metadata = update()
    except BadRows as error:
        return refused(error)
    return accepted(store, table, [WHOLE], metadata)


def counts(report: Report) -> dict[str, int]:
    """A report as metadata."""
    rows = {f"rows of {name}": n for name, n in report.rows.items()}
    return {
        "units computed": report.new,
        "units kept": report.kept,
        "units dropped": report.dropped,
        **({"units to be tried again": report.unsettled} if report.unsettled else {}),
        **rows,
    }


def version(store: Store, table: pa.DataFrameSchema, programs: Sequence[str]) -> str:
    """The data version of a table: the digest of its finished files and those made with it."""
    names = (str(table.name), *BESIDE.get(str(table.name), ()))
    return digest("version", *store.contents([(name, p) for p in programs for name in names]))


def accepted(
    store: Store, table: pa.DataFrameSchema, programs: Sequence[str], metadata: Metadata
) -> dg.MaterializeResult:
    """The result of a stage that wrote."""
    return dg.MaterializeResult(
        metadata=metadata,
        check_results=[dg.AssetCheckResult(passed=True, check_name="schema")],
        data_version=dg.DataVersion(version(store, table, programs)),
    )


def refused(error: BadRows) -> dg.MaterializeResult:
    """The result of a stage whose rows its schema refused: the failing cases, nothing written."""
    first = error.cases.head(10)
    records = [
        dg.TableRecord({name: str(value) for name, value in row.items()})
        for row in first.to_dicts()
    ]
    check = dg.AssetCheckResult(
        passed=False,
        check_name="schema",
        description=str(error),
        metadata={
            "failing cases": error.cases.height,
            "first failing cases": dg.MetadataValue.table(
                records, schema=dg.TableSchema([dg.TableColumn(c) for c in first.columns])
            ),
        },
    )
    return dg.MaterializeResult(check_results=[check], metadata={"written": False})
