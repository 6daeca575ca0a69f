"""Dagster resources: the Parquet store, the warehouse, the tokenizer, the TVM executor."""
