"""One HTML page with plots of a data set; it needs no network and is equal for equal data."""

from collections.abc import Callable
from html import escape
from typing import Any, Final, NamedTuple

import duckdb
import plotly.graph_objects as go
import polars as pl
from plotly.offline import get_plotlyjs

from steptp_dagster.dataset.figures import figure
from steptp_dagster.dataset.warehouse import profile_of

_LAYOUT: Final = {
    "template": "plotly_white",
    "margin": {"l": 40, "r": 20, "t": 20, "b": 40},
    "font": {"family": "system-ui, sans-serif", "size": 13},
    "legend": {"orientation": "h", "y": 1.08},
}
_CONFIG: Final = {"displaylogo": False, "responsive": True}
_STYLE: Final = """\
body{font-family:system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:.85rem}td,th{padding:.15rem .6rem;text-align:left}
tr:nth-child(even){background:#f4f4f4}details{margin:.3rem 0 1.5rem}h2{margin-bottom:.2rem}"""
#: Rows of the largest table that is printed below a plot; the warehouse has all.
_SHOWN: Final = 200


class Part(NamedTuple):
    """A section: a heading, what it shows, the query behind it, and how its rows are drawn."""

    title: str
    words: str
    query: str
    draw: Callable[[pl.DataFrame], Any]


def report_html(connection: duckdb.DuckDBPyConnection) -> str:
    """The page of an open warehouse (or of an export's tables).

    Each plot stands above the rows that it is drawn from. A part without rows says so.
    """
    # The profile is in the warehouse alone.
    profile = profile_of(connection)
    sections = [_section(connection, number, part) for number, part in enumerate(PARTS)]
    contents = _table(figure(connection, "contents"))
    title = f"Step-TP data set: profile {escape(profile.name)}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<script>{get_plotlyjs()}</script></head>\n<body>"
        f"<h1>{title}</h1>\n{contents}\n{''.join(sections)}</body></html>\n"
    )


def _section(connection: duckdb.DuckDBPyConnection, number: int, part: Part) -> str:
    rows = connection.sql(part.query).pl()
    if not isinstance(rows, pl.DataFrame):
        raise TypeError(f"duckdb gave {type(rows).__name__}")
    head = f"<h2>{escape(part.title)}</h2>\n<p>{escape(part.words)}</p>\n"
    if not rows.height:
        return f"{head}<p>None.</p>\n"
    plot = part.draw(rows)
    plot.update_layout(**_LAYOUT)
    drawn = plot.to_html(
        full_html=False, include_plotlyjs=False, div_id=f"plot-{number}", config=_CONFIG
    )
    return f"{head}{drawn}\n<details><summary>Figures</summary>{_table(rows)}</details>\n"


def _table(rows: pl.DataFrame) -> str:
    cells = [[*rows.columns], *(["" if v is None else str(v) for v in r] for r in rows.rows())]
    tags = ["th", *["td"] * rows.height]
    lines = [
        f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in line)}</tr>"
        for tag, line in zip(tags, cells[: _SHOWN + 1], strict=False)
    ]
    more = rows.height - _SHOWN
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    return f"<table>{''.join(lines)}</table>{rest}"


def _bars(x: str, *values: str, stacked: bool = False) -> Callable[[pl.DataFrame], Any]:
    """Bars of some columns, lying, in the order of the rows from the top."""

    def draw(rows: pl.DataFrame) -> Any:  # noqa: ANN401 - plotly has no types
        names = [str(name) for name in rows[x].to_list()]
        plot = go.Figure(
            [go.Bar(name=v, y=names, x=rows[v].to_list(), orientation="h") for v in values]
        )
        plot.update_yaxes(autorange="reversed", automargin=True)
        plot.update_layout(
            barmode="stack" if stacked else "group", height=120 + 22 * len(names) * len(values)
        )
        return plot

    return draw


def _groups(x: str, colour: str, value: str) -> Callable[[pl.DataFrame], Any]:
    """Stacked bars of one column, one colour for each value of another."""

    def draw(rows: pl.DataFrame) -> Any:  # noqa: ANN401 - plotly has no types
        names = list(dict.fromkeys(rows[colour].to_list()))
        bars = []
        for name in names:
            chosen = rows.filter(pl.col(colour) == name)
            bars.append(go.Bar(name=str(name), x=chosen[x].to_list(), y=chosen[value].to_list()))
        plot = go.Figure(bars)
        plot.update_layout(barmode="stack", height=380)
        return plot

    return draw


def _heat(x: str, y: str, value: str) -> Callable[[pl.DataFrame], Any]:
    """A cell for each pair of values of two columns."""

    def draw(rows: pl.DataFrame) -> Any:  # noqa: ANN401 - plotly has no types
        across, down = (sorted(set(rows[name].to_list())) for name in (x, y))
        known = {(a, b): v for a, b, v in rows.select(x, y, value).rows()}
        cells = [[known.get((a, b)) for a in across] for b in down]
        plot = go.Figure(go.Heatmap(x=across, y=down, z=cells, zmin=0, zmax=1, colorscale="RdYlGn"))
        plot.update_yaxes(autorange="reversed", automargin=True)
        plot.update_layout(height=160 + 20 * len(down))
        return plot

    return draw


PARTS: Final = (
    Part(
        "Strategies",
        "Steps that were taken, and records that show them.",
        "select strategy, steps, records from strategy_distribution order by strategy",
        _bars("strategy", "steps", "records"),
    ),
    Part(
        "Records by task and split",
        "One step, several steps of one program, chains of steps, and rejected candidates.",
        """select task, split, count(*) as records from filtered_dataset group by task, split
        order by list_position(['single', 'multi', 'trajectory', 'negative'], task),
            list_position(['train', 'validation', 'test'], split)""",
        _groups("task", "split", "records"),
    ),
    Part(
        "Records by family and level",
        "Families of source programs, and the level of the strategy.",
        """select family, strategy_level as level, count(*) as records from filtered_dataset
        group by all order by all""",
        _groups("family", "level", "records"),
    ),
    Part(
        "Pass rates",
        "Share of verified steps that the verdict accepted, over all dtypes and targets.",
        """select strategy, family, sum(verified)::bigint as verified,
            sum(accepted)::bigint as accepted, round(sum(accepted) / sum(verified), 4) as pass_rate
        from pass_rates group by all order by all""",
        _heat("family", "strategy", "pass_rate"),
    ),
    Part(
        "Refusals",
        "Why strategies did not apply: named reasons, over all places where they were asked.",
        """select reason, sum(count)::bigint as refused from refusals group by all
        order by refused desc, reason limit 40""",
        _bars("reason", "refused"),
    ),
    Part(
        "Left out",
        "Why steps are no records of their own.",
        "select reason, count(*) as steps from exclusions group by all order by steps desc, reason",
        _bars("reason", "steps"),
    ),
    Part(
        "Balance",
        "Records that could be made and those that were kept, by difficulty class.",
        """select name as class, sum(before)::bigint as before, sum("after")::bigint as kept
        from balance where dimension = 'class' and name is not null group by all order by all""",
        _bars("class", "before", "kept"),
    ),
    Part(
        "Lengths of records",
        "Records by tokens of prompt and answer together, in classes of 250.",
        """select
            task, 250 * ((prompt_tokens + reasoning_tokens + answer_tokens) // 250) as tokens,
            count(*) as records
        from filtered_dataset group by all order by tokens, task""",
        _groups("tokens", "task", "records"),
    ),
    Part(
        "Tokens of languages",
        "Share of tokens that the two spellings of LEIR save against other languages.",
        """select language, programs, leir_saves, compact_saves from token_savings
        where language != 'leir' order by language""",
        _bars("language", "leir_saves", "compact_saves"),
    ),
    Part(
        "Trajectories",
        "Chains of steps by length.",
        "select length, trajectories, accepted from trajectory_lengths",
        _bars("length", "trajectories", "accepted"),
    ),
    Part(
        "Known pairs",
        "The verifier on pairs whose answer is known, by kind of mistake or of legal rewrite.",
        """select
            kind, count(*) filter (wrong and not accepted) as wrong_rejected,
            count(*) filter (wrong and accepted) as wrong_accepted,
            count(*) filter (not wrong and accepted) as right_accepted,
            count(*) filter (not wrong and not accepted) as right_rejected
        from zoo group by all order by all""",
        _bars(
            "kind",
            "wrong_rejected",
            "wrong_accepted",
            "right_accepted",
            "right_rejected",
            stacked=True,
        ),
    ),
)
