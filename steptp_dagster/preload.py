"""Imported once by Dagster's fork server, so that step processes start with it in memory."""

import duckdb
import pandera.polars
import polars

__all__ = ["duckdb", "pandera", "polars"]
