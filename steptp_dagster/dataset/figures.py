"""Every figure of the card, and the SQL that gives it: over the warehouse, or over an export.

``over_export`` opens an export's Parquet tables under the warehouse's names, so anyone can ask
the same questions of the files that were downloaded::

    import duckdb
    from steptp_dagster.dataset.figures import FIGURES, over_export
    with over_export(Path("data/export")) as connection:
        connection.sql(FIGURES["splits"])
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import polars as pl

from steptp_dagster.dataset.schemas import STABLE, TABLES, empty

VIEWS: Final = Path(__file__).with_name("views.sql")

#: Name -> a query whose rows the card shows as a table, column names as its heads.
FIGURES: Final[dict[str, str]] = {
    "contents": """
        select what, rows from (
            select 1 as n, 'source programs' as what, count(*) as rows from source_programs
            union all
            select 2, 'of these, translated', count(leir_id) from translations union all
            select 3, 'distinct LEIR programs', count(*) from leir_programs union all
            select 4, 'steps', count(*) from transformed_steps union all
            select 5, 'verdicts', count(*) from gpu_verification union all
            select 6, 'accepted', count(*) filter (equal_pass) from gpu_verification union all
            select 7, 'trajectories', count(*) from trajectories union all
            select 8, 'negatives', count(*) from negatives union all
            select 9, 'records', count(*) from filtered_dataset
        ) order by n""",
    "splits": """
        select
            split, count(*) as records, count(distinct program) as programs,
            sum(prompt_tokens + reasoning_tokens + answer_tokens)::bigint as tokens,
            string_agg(distinct family, ', ' order by family) as families
        from filtered_dataset group by split
        order by list_position(['train', 'validation', 'test'], split)""",
    "tasks": """
        select task, split, count(*) as records from filtered_dataset group by task, split
        order by list_position(['single', 'multi', 'trajectory', 'negative'], task),
            list_position(['train', 'validation', 'test'], split)""",
    "levels": """
        select strategy_level as level, count(distinct strategy) as strategies, count(*) as records
        from filtered_dataset group by all order by all""",
    "strategies": """
        select
            strategy, strategy_level as level, steps, accepted, exact, reassociated,
            coalesce(records, 0) as records
        from (
            select
                strategy, strategy_level, count(*) as steps,
                count(*) filter (accepted) as accepted,
                count(*) filter (equality = 'exact') as exact,
                count(*) filter (equality = 'reassociated') as reassociated
            from transformed_steps
            left join (
                select step_id, equal_pass as accepted, equality
                from gpu_verification where target = 'llvm'
            ) using (step_id)
            group by all
        )
        left join (
            select strategy, count(*) as records from filtered_dataset group by all
        ) using (strategy)
        order by strategy""",
    "families": """
        select family, count(distinct program) as programs, count(*) as records
        from filtered_dataset group by all order by all""",
    "dtypes": """
        select dtype, count(*) as records from filtered_dataset group by dtype
        order by list_position(['f16', 'bf16', 'f32', 'f64'], dtype)""",
    "equalities": """
        select equality, count(*) as records from filtered_dataset group by all order by all""",
    "lengths": """
        select
            part, min(n) as shortest, median(n)::bigint as median, max(n) as longest,
            sum(n)::bigint as total
        from (
            select 1 as o, 'prompt' as part, prompt_tokens as n from filtered_dataset union all
            select 2, 'reasoning', reasoning_tokens from filtered_dataset union all
            select 3, 'answer', answer_tokens from filtered_dataset
        ) group by part, o order by o""",
    "token_savings": """
        select
            language, programs, tokens, leir_tokens,
            round(100 * leir_saves, 1) as leir_saves_percent,
            round(100 * compact_saves, 1) as compact_saves_percent
        from token_savings
        order by list_position(['leir', 'tir_blocks', 'tir_loops', 'tir_exact', 'tvm_file',
            'tvm_kernels', 'cuda_file', 'cuda_kernels'], language)""",
    "token_savings_by_dtype": """
        select
            coalesce(programs, 'all') as programs, coalesce(dtype, 'all') as dtype, counted,
            leir_tokens, round(100 * columns(* exclude (programs, dtype, counted, leir_tokens)), 1)
        from token_savings_by_dtype
        order by list_position(['originals', 'results', 'all'], programs),
            list_position(['f16', 'bf16', 'f32', 'f64', 'all'], dtype)""",
    "verdicts": """
        select
            target, count(*) as verified, count(*) filter (build_pass) as built,
            count(*) filter (exec_pass) as executed, count(*) filter (equal_pass) as accepted,
            count(*) filter (bitwise) as bitwise,
            round(100 * count(*) filter (equal_pass) / count(*), 1) as accepted_percent
        from gpu_verification group by all order by all""",
    "rejections": """
        select reason, count(*) as steps from gpu_verification
        where reason is not null group by all order by steps desc, reason""",
    "exclusions": """
        select reason, count(*) as steps from exclusions
        group by all order by steps desc, reason""",
    "zoo": """
        select
            case when wrong then 'wrong pairs' else 'right pairs' end as pairs,
            count(*) as pairs_tried,
            count(*) filter (accepted != wrong) as judged_right,
            round(100 * count(*) filter (accepted != wrong) / count(*), 1) as score_percent,
            count(*) filter (published_rule != wrong) as by_a_published_tolerance
        from zoo group by wrong order by wrong desc""",
    "trajectories": """
        select length, trajectories, accepted, sources from trajectory_lengths""",
    "toolchains": """
        select distinct target, toolchain from gpu_verification order by all""",
}


def figure(connection: duckdb.DuckDBPyConnection, name: str) -> pl.DataFrame:
    """The rows of a figure."""
    found = connection.sql(FIGURES[name]).pl()
    if not isinstance(found, pl.DataFrame):
        raise TypeError(f"duckdb gave {type(found).__name__} for {name}")
    return found


@contextmanager
def over_export(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables and views of an export; tables that differ from build to build are empty."""
    with duckdb.connect() as connection:
        for name, schema in TABLES.items():
            if name in STABLE:
                path = str(folder / "tables" / f"{name}.parquet").replace("'", "''")
                connection.execute(f"create view {name} as from read_parquet('{path}')")
            else:
                connection.register(name, empty(schema).to_arrow())
        connection.execute(VIEWS.read_text(encoding="utf-8"))
        yield connection
