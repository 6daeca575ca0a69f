"""The DuckDB file, with the checks that look across tables."""

import dagster as dg

from assets.common import DUE, OWNERS, Metadata
from assets.statistics import statistics
from resources.build import Build
from resources.store import ParquetStore
from resources.warehouse import Warehouse
from steptp_dagster.dataset.integrity import CHECKS, Finding


@dg.asset(
    name="warehouse",
    deps=[statistics],
    automation_condition=DUE,
    group_name="dataset",
    kinds={"duckdb"},
    owners=OWNERS,
    check_specs=[
        dg.AssetCheckSpec(name, asset="warehouse", blocking=True, description=meaning)
        for name, (meaning, _) in CHECKS.items()
    ],
    description="Every table in one DuckDB file, built aside; it appears if all checks hold.",
)
def warehouse_asset(
    store: ParquetStore, build: Build, warehouse: Warehouse
) -> dg.MaterializeResult:
    """Load stage files where they changed, check integrity, move into place."""
    loaded = warehouse.load(store.files, build.profile)
    metadata: Metadata = {
        "file": dg.MetadataValue.path(str(warehouse.path)),
        "built": loaded.built,
        **{f"rows of {name}": rows for name, rows in loaded.rows.items()},
    }
    checks = [check_result(finding) for finding in loaded.findings]
    return dg.MaterializeResult(metadata=metadata, check_results=checks)


def check_result(finding: Finding) -> dg.AssetCheckResult:
    """A finding as the UI shows it."""
    return dg.AssetCheckResult(
        passed=finding.holds,
        check_name=finding.check,
        description=finding.meaning,
        metadata={
            "rows that break it": finding.broken,
            "first of them": dg.MetadataValue.json(list(finding.first)),
        },
    )
