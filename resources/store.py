"""The stage files as a Dagster resource."""

from pathlib import Path

import dagster as dg

from steptp_dagster.dataset.store import Store


class ParquetStore(dg.ConfigurableResource[Store]):
    """Where stages write: ``<data>/stages``, one Parquet file per table and program."""

    data: str

    @property
    def files(self) -> Store:
        """The store itself."""
        return Store(Path(self.data) / "stages")
