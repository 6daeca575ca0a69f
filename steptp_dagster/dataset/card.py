"""The data set card (``README.md`` of the export), made from the data alone."""

import polars as pl

from steptp_dagster.dataset import statistics as st
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.schemas import SPLITS, STABLE


def card(profile: Profile, statistics: pl.DataFrame, records: pl.DataFrame) -> str:
    """Markdown: what is in it, how it was made and verified, how to load it, one record."""
    total = {
        name: st.total(statistics, name)
        for name in ("sources", "steps", "verified", "accepted", "exact", "reassociated", "records")
    }
    parts = [
        "# Step-TP: steps of tensor-program optimization\n",
        f"Profile `{profile.name}`, seed {profile.seed}; programs "
        f"{', '.join(profile.program_names)}; dtypes {', '.join(profile.dtypes)}.\n",
        "## What is in it\n",
        markdown(
            pl.DataFrame({"what": list(total), "rows": list(total.values())}),
        ),
        f"Accepted by the verifier: {percent(total['accepted'], total['verified'])} of the "
        f"verified steps; rejected ones are in `tables/gpu_verification.parquet` with their "
        "reasons.\n",
        "## Splits\n",
        "Whole families of programs are assigned to a split; no family and no program structure "
        "stands in two.\n",
        markdown(_splits(records)),
        "## Strategies\n",
        markdown(_strategies(statistics)),
        "## Files\n",
        *(
            f"- `{split}.jsonl`: chat records of the split, one JSON object a line"
            for split in SPLITS
        ),
        *(f"- `tables/{name}.parquet`: {table.description}" for name, table in STABLE.items()),
        "- `manifest.json`: digests of all files\n",
        "## Loading\n",
        "```python\nimport polars as pl\n\n"
        'train = pl.read_ndjson("train.jsonl")\n'
        'steps = pl.read_parquet("tables/transformed_steps.parquet")\n```\n',
    ]
    if records.height:
        shortest = records.sort("answer_tokens", "record_id").row(0, named=True)
        parts += ["## A record\n", sample(shortest)]
    return "\n".join(parts).rstrip() + "\n"


def sample(record: dict[str, object]) -> str:
    """One record as Markdown."""
    messages = record["messages"]
    if not isinstance(messages, list):
        raise TypeError("a record has a list of messages")
    head = (
        f"`{record['record_id']}`: {record['strategy']} on {record['program']} "
        f"({record['dtype']}), {record['equality']}\n"
    )
    shown = [f"**{m['role']}**\n\n````text\n{m['content']}\n````\n" for m in messages]
    return "\n".join([head, *shown])


def percent(part: int, whole: int) -> str:
    """A share in words; ``-`` of nothing.

    >>> percent(1, 8)
    '12.5 %'
    """
    return f"{100 * part / whole:.1f} %" if whole else "-"


def markdown(frame: pl.DataFrame) -> str:
    """A frame as a Markdown table."""
    head = "| " + " | ".join(frame.columns) + " |"
    rule = "|" + "---|" * frame.width
    rows = ["| " + " | ".join("" if v is None else str(v) for v in r) + " |" for r in frame.rows()]
    return "\n".join([head, rule, *rows]) + "\n"


def _splits(records: pl.DataFrame) -> pl.DataFrame:
    rows = []
    for split in SPLITS:
        chosen = records.filter(pl.col("split") == split)
        tokens = chosen.select(
            pl.col("prompt_tokens") + pl.col("reasoning_tokens") + pl.col("answer_tokens")
        ).to_series()
        families = ", ".join(sorted(set(chosen["family"].to_list())))
        rows.append(
            {
                "split": split,
                "records": chosen.height,
                "tokens": int(tokens.sum()),
                "families": families or "-",
            }
        )
    return pl.DataFrame(rows)


def _strategies(statistics: pl.DataFrame) -> pl.DataFrame:
    metrics = ("sites", "steps", "accepted", "exact", "reassociated", "rejected", "records")
    counted = {metric: st.by(statistics, metric, "strategy") for metric in metrics}
    names = sorted({n for c in counted.values() for n in c})
    return pl.DataFrame(
        [{"strategy": n, **{m: counted[m].get(n, 0) for m in metrics}} for n in names],
        schema={"strategy": pl.String, **dict.fromkeys(metrics, pl.Int64)},
    )
