"""The page of plots."""

import dagster as dg

from assets.common import DUE, OWNERS
from assets.warehouse import warehouse_asset
from resources.warehouse import Warehouse
from steptp_dagster.dataset.report_file import update_report


@dg.asset(
    deps=[warehouse_asset],
    automation_condition=DUE,
    group_name="dataset",
    kinds={"html", "plotly"},
    owners=OWNERS,
    description="One HTML page with plots of strategies, families, pass rates, refusals and "
    "tokens, each above the rows it is drawn from; it needs no network.",
)
def report(warehouse: Warehouse) -> dg.MaterializeResult:
    """Draw the page from the warehouse, where it changed."""
    with warehouse.read() as connection:
        page = update_report(connection, warehouse.report)
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.path(str(warehouse.report)),
            "written": page.written,
            "bytes": page.size,
            "contents": dg.MetadataValue.md(page.contents),
        }
    )
