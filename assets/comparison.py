"""Checks of the statistics: every strategy is there, and the distribution did not drift."""

from typing import Final

import dagster as dg
import duckdb
import polars as pl

from assets.common import share
from assets.statistics import statistics
from resources.build import Build, fraction
from resources.store import ParquetStore
from resources.warehouse import Warehouse
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.schemas import STATISTICS
from steptp_dagster.dataset.statistics import by
from steptp_dagster.dataset.store import WHOLE
from steptp_dagster.dataset.warehouse import NoWarehouse, profile_of

#: Profiles in which every registered strategy must have at least one record.
COMPLETE: Final = ("default", "full")
#: Environment variable: the largest drift that does not stop a build.
DRIFT_VARIABLE: Final = "STEPTP_DRIFT"
LIMIT: Final = 0.5
_MOST: Final = fraction(DRIFT_VARIABLE, LIMIT)
#: From here on a drift is a warning.
NOTEWORTHY: Final = 0.1
DIMENSIONS: Final = ("strategy", "family", "dtype", "split")


@dg.asset_check(
    asset=statistics,
    blocking=True,
    description="Every published strategy has records; one without stops a build of the profiles "
    "`default` and `full`, fewer than the balance's minimum are a warning.",
)
def strategies_present(store: ParquetStore, build: Build) -> dg.AssetCheckResult:
    """Count records by strategy against the profile's minimum."""
    from steptp_dagster.strategies.registry import strategies

    profile = build.profile
    wanted = max(1, profile.balance.minimum)
    published = [name for name, found in strategies().items() if found.origin == "published"]
    known = sorted(profile.strategies or published)
    counted = by(store.files.read(STATISTICS, WHOLE), "records", "strategy")
    lacking = {name: counted.get(name, 0) for name in known if counted.get(name, 0) < wanted}
    table = pl.DataFrame({"strategy": list(lacking), "records": list(lacking.values())})
    stops = profile.name in COMPLETE and 0 in lacking.values()
    return dg.AssetCheckResult(
        passed=not lacking,
        severity=dg.AssetCheckSeverity.ERROR if stops else dg.AssetCheckSeverity.WARN,
        description=f"{len(known) - len(lacking)} of {len(known)} have at least {wanted}",
        metadata={"strategies": len(known), "lacking": dg.MetadataValue.md(markdown(table))},
    )


@dg.asset_check(
    asset=statistics,
    blocking=True,
    description="Records are distributed as in the last build of the same profile; blocks where "
    f"more than {LIMIT:.0%} of them would have to move (`STEPTP_DRIFT` is another share).",
)
def drift(store: ParquetStore, build: Build, warehouse: Warehouse) -> dg.AssetCheckResult:
    """Compare the statistics with those in the warehouse, which is still that of the last build."""
    try:
        with warehouse.read() as connection:
            same = profile_of(connection).settings() == build.profile.settings()
            last = connection.sql("from statistics").pl()
    except (NoWarehouse, duckdb.Error, ValueError) as error:
        return dg.AssetCheckResult(passed=True, description=f"nothing to compare with: {error}")
    if not same:
        return dg.AssetCheckResult(passed=True, description="the last build had another profile")
    now = store.files.read(STATISTICS, WHOLE)
    moved = {name: distance(last, now, name) for name in DIMENSIONS}
    most, limit = max(moved.values()), _MOST
    grave = most > limit
    return dg.AssetCheckResult(
        passed=most <= min(NOTEWORTHY, limit),
        severity=dg.AssetCheckSeverity.ERROR if grave else dg.AssetCheckSeverity.WARN,
        description=f"{most:.1%} of the records would have to move; {limit:.0%} stops a build",
        metadata={f"drift by {name}": value for name, value in moved.items()},
    )


def distance(last: pl.DataFrame, now: pl.DataFrame, column: str) -> float:
    """Total variation distance of the records' distributions, 0 (same) to 1 (nothing in common)."""
    old, new = by(last, "records", column), by(now, "records", column)
    totals = sum(old.values()), sum(new.values())
    names = sorted({*old, *new})
    moved = (abs(share(old.get(n, 0), totals[0]) - share(new.get(n, 0), totals[1])) for n in names)
    return round(sum(moved) / 2, 4)
