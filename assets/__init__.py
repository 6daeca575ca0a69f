"""Dagster assets and asset checks, one module per stage: fetch, call the library, write, report."""
