"""What people download."""

import dagster as dg

from assets.common import DUE, OWNERS
from assets.warehouse import warehouse_asset
from resources.warehouse import Warehouse
from steptp_dagster.dataset.exports import export_all, files


@dg.asset(
    deps=[warehouse_asset],
    automation_condition=DUE,
    group_name="dataset",
    kinds={"parquet", "json"},
    owners=OWNERS,
    description="JSONL by split, Parquet of every table, the data set card; replaced as a whole.",
)
def export(warehouse: Warehouse) -> dg.MaterializeResult:
    """Write the export folder from the warehouse, where it changed."""
    with warehouse.read() as connection:
        folder, written = export_all(connection, warehouse.export)
    names = sorted(files(folder))
    card = (folder / "README.md").read_text(encoding="utf-8")
    return dg.MaterializeResult(
        metadata={
            "folder": dg.MetadataValue.path(str(folder)),
            "written": written,
            "files": dg.MetadataValue.json(names),
            "card": dg.MetadataValue.md(card),
        }
    )
