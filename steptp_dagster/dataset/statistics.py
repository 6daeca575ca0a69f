"""Counts and means, broken down; one tall table, so that a new breakdown needs no new column."""

import polars as pl

from steptp_dagster.dataset.candidates import Tables
from steptp_dagster.dataset.schemas import STATISTICS, empty, polars_schema

BREAKDOWNS = ("strategy", "strategy_level", "family", "dtype", "split", "reason")


def statistics(
    tables: Tables, surveys: pl.DataFrame, records: pl.DataFrame, exclusions: pl.DataFrame
) -> pl.DataFrame:
    """The table ``statistics``, sorted, from the frames of the other tables."""
    sources = tables.source_programs.select("source_id", "family", "dtype")
    translations = tables.translations.join(sources, on="source_id")
    steps = tables.transformed_steps.join(sources, on="source_id")
    # The target that decides; on the others steps may only be built.
    decisive = tables.gpu_verification.filter(pl.col("target") == "llvm")
    verdicts = steps.join(
        decisive.select("step_id", "equal_pass", "bitwise", "equality", "reason"),
        on="step_id",
    )
    surveyed = surveys.join(sources, on="source_id")
    refusals = (
        surveyed.explode("refusals")
        .drop_nulls("refusals")
        .unnest("refusals")
        .select("strategy", "family", "dtype", "reason", value=pl.col("count").cast(pl.Float64))
    )
    dropped = steps.join(exclusions, on="step_id")
    by_step = ("strategy", "strategy_level", "family", "dtype")
    by_source = ("family", "dtype")
    accepted = verdicts.filter("equal_pass")
    parts = [
        _counted("sources", sources, by_source),
        _counted("translated", translations.filter(pl.col("refusal").is_null()), by_source),
        _counted(
            "translation_refused",
            translations.filter(pl.col("refusal").is_not_null()).rename({"refusal": "why"}),
            by_source,
        ),
        _summed("sites", surveyed, ("strategy", "family", "dtype"), "sites"),
        _summed("refused", refusals, ("strategy", "family", "dtype", "reason"), "value"),
        _counted("steps", steps, by_step),
        _counted("verified", verdicts, by_step),
        _counted("accepted", accepted, by_step),
        _counted("exact", accepted.filter(pl.col("equality") == "exact"), by_step),
        _counted("reassociated", accepted.filter(pl.col("equality") == "reassociated"), by_step),
        _counted("bitwise", verdicts.filter("bitwise"), by_step),
        _counted("rejected", verdicts.filter(~pl.col("equal_pass")), (*by_step, "reason")),
        _counted("excluded", dropped, (*by_step, "reason")),
        _counted("records", records, (*by_step, "split")),
        *(
            _mean(column, records, ("split",))
            for column in ("prompt_tokens", "reasoning_tokens", "answer_tokens")
        ),
    ]
    whole = pl.concat([empty(STATISTICS), *parts])
    return whole.sort("metric", *BREAKDOWNS, nulls_last=False)


def total(table: pl.DataFrame, metric: str) -> int:
    """The sum of a counted metric over everything."""
    return int(table.filter(pl.col("metric") == metric)["value"].sum())


def by(table: pl.DataFrame, metric: str, column: str) -> dict[str, int]:
    """A counted metric by one breakdown, in the order of its values."""
    found = (
        table.filter(pl.col("metric") == metric)
        .group_by(column)
        .agg(pl.col("value").sum())
        .sort(column)
    )
    return {row[column]: int(row["value"]) for row in found.to_dicts()}


def _shaped(metric: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of the table, those that the frame lacks as nulls."""
    schema = polars_schema(STATISTICS)
    columns = [
        pl.col(name).cast(dtype)
        if name in frame.columns
        else pl.lit(metric if name == "metric" else None, dtype=dtype).alias(name)
        for name, dtype in schema.items()
    ]
    return frame.select(columns)


def _counted(metric: str, frame: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    return _shaped(metric, frame.group_by(keys).agg(value=pl.len()))


def _summed(metric: str, frame: pl.DataFrame, keys: tuple[str, ...], column: str) -> pl.DataFrame:
    return _shaped(metric, frame.group_by(keys).agg(value=pl.col(column).sum()))


def _mean(column: str, frame: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    # Rounded: a mean's last bits depend on the order of the additions.
    return _shaped(f"mean_{column}", frame.group_by(keys).agg(value=pl.col(column).mean().round(3)))
