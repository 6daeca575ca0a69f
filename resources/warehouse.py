"""The DuckDB file and the export folder as a Dagster resource."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import duckdb

from steptp_dagster.dataset import warehouse
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.store import Store, explained


class Warehouse(dg.ConfigurableResource[str]):
    """``<data>/steptp.duckdb``: built aside and moved into place; read-only for all readers."""

    data: str

    @property
    def path(self) -> Path:
        """The database file."""
        return Path(self.data) / "steptp.duckdb"

    @property
    def export(self) -> Path:
        """The folder that people download."""
        return Path(self.data) / "export"

    @property
    def report(self) -> Path:
        """The page of plots."""
        return Path(self.data) / "report.html"

    def load(self, store: Store, profile: Profile) -> warehouse.Loaded:
        """Build the file from stage files where they changed, and check it. Raises NotWritten."""
        with explained(self.path):
            try:
                return warehouse.load(store, profile, self.path)
            except duckdb.IOException as error:
                raise OSError(str(error)) from error

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection. Raises NoWarehouse."""
        with warehouse.connect(self.path) as connection:
            yield connection
