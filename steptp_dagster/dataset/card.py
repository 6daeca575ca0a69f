"""The data set card (``README.md`` of the export): made from the data, by queries alone.

Each table below a heading is the result of the query of that name in ``figures.FIGURES``, each
figure in a sentence a cell of one; a test asks the exported files the same and compares.
"""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import duckdb
import polars as pl
import yaml

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.figures import FIGURES, figure
from steptp_dagster.dataset.formats import RECORD_COLUMNS
from steptp_dagster.dataset.schemas import FILTERED_DATASET, SPLITS, STABLE
from steptp_dagster.leir.compact import Spelling

TITLE = "Step-TP: steps of tensor-program optimization"
#: Records of at most so many make the size class of the front matter.
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
_LANGUAGES = """\
`leir` is the paper's spelling, `compact` saves as the last column says. `tir_blocks`: TVM's
script with blocks, as its schedules print it; `tir_loops`: TVM's script of plain loops;
`tir_exact`: TVM's script of what verification runs; `tvm_file`: the whole CUDA file that TVM
makes, `tvm_kernels` the kernels in it; `cuda_file`, `cuda_kernels`: those of this project's
lowering. All but `leir` and `compact` are counted for the translated sources and a sample of
results. TVM's CUDA writes unrolled loops out, so a few results with them may weigh much there.
Savings are shares of the totals."""
_BY_DTYPE = """\
What `leir` saves of each, in percent, of translated sources (`originals`) and of results of
steps, by dtype. In f16 the file of TVM begins with definitions of halves, in f32 with none, so the
share of the whole file depends on the dtype, and on how long programs are; that of the kernels
on neither, but on how many subscripts a tensor has: CUDA computes addresses from each."""
_VERIFIED = """\
Nothing is believed on one voice. Each step's result is checked statically (it is valid LEIR
within the limits of the target, with the same known variables); then both programs run, compiled
by TVM, on named families of inputs: in binary64 they agree up to rounding (mathematics), in the
working precision the result is no less accurate than the original and gives no new infinity or
NaN (stability). `exact` means that all values are equal on all families, `reassociated` that
they are up to the rounding of another order. `bitwise` counts outputs equal in every bit. Large
programs are judged on a small sibling with the same structure. Every claim of the reasoning is
derived again from the two programs. Records come from accepted steps only, but for the task
`negative`, which shows rejected ones."""
_LIMITS = """\
- Verdicts come from the targets in the table above; where none of them is a GPU, no kernel was
  run on one, and nothing here says how fast a program is.
- Numerical evidence is evidence on families of inputs, not a proof; the score above says how
  well it tells wrong pairs from right ones.
- NaN inputs, and the sign of zero, are outside the contract of equality.
- Programs come from a library of workloads at sampled shapes; dtypes are those in the table.
- Savings in tokens depend on the tokenizer (Qwen's), and on what the other language is: see
  above."""


def card(
    connection: duckdb.DuckDBPyConnection,
    profile: Profile,
    records: pl.DataFrame,
    spelling: Spelling = "paper",
) -> str:
    """The card's text.

    ``records`` are the rows of ``filtered_dataset`` as they are exported.
    """
    found = {name: figure(connection, name) for name in FIGURES if name != "toolchains"}
    splits = [split for split in SPLITS if (records["split"] == split).any()]
    tables = {name: markdown(frame) for name, frame in found.items()}
    parts = [
        front_matter(records, splits, profile),
        f"# {TITLE}\n",
        f"Chat records that teach a language model to optimize tensor programs step by step, each "
        f"step verified. Profile `{profile.name}`, seed {profile.seed}; built by "
        f"steptp-dagster {version('steptp-dagster')}; programs in the {spelling} spelling of "
        "LEIR.\n",
        "## Contents\n",
        tables["contents"],
        "### Splits\n",
        "Families of programs, and near copies of programs, are never cut: no family and no "
        "program structure stands in two splits.\n",
        tables["splits"],
        *_sections(tables, "tasks", "levels", "strategies", "families", "dtypes", "equalities"),
        "## Fields\n",
        fields(),
        "## Tokens\n",
        "Counted with Qwen's tokenizer.\n",
        tables["lengths"],
        "### Languages\n",
        tables["token_savings"],
        f"{_LANGUAGES}\n",
        f"{_BY_DTYPE}\n",
        tables["token_savings_by_dtype"],
        "## How it was verified\n",
        f"{_VERIFIED}\n",
        tables["verdicts"],
        *_sections(tables, "rejections", "exclusions", "trajectories"),
        "### Mutation score\n",
        "The verifier was tried on pairs whose answer is known:\n",
        tables["zoo"],
        "## Known limits\n",
        f"{_LIMITS}\n",
        "## Files and loading\n",
        *_files(splits),
        loading(splits),
        "## Versions\n",
        markdown(_versions(figure(connection, "toolchains"))),
        "## Licence and citation\n",
        "Apache-2.0, programs and texts alike.\n",
        _citation(),
    ]
    if records.height:
        # A step where there is one: answers on rejected candidates are always shorter.
        steps = records.sort(pl.col("task") != "single", "answer_tokens", "record_id")
        parts += ["## A record\n", sample(steps.row(0, named=True))]
    return "\n".join(parts).rstrip() + "\n"


def front_matter(records: pl.DataFrame, splits: list[str], profile: Profile) -> str:
    """The YAML head that data set hubs and ``datasets.load_dataset`` read."""
    size = next((name for most, name in _SIZES if records.height < most), "n>10M")
    files = [{"split": split, "path": f"data/{split}-*.parquet"} for split in splits]
    data: dict[str, Any] = {
        "pretty_name": TITLE,
        "license": "apache-2.0",
        "language": ["en"],
        "task_categories": ["text-generation"],
        "size_categories": [size],
        "tags": ["code", "tensor-programs", "compilers", "optimization", f"steptp-{profile.name}"],
        "configs": [
            {"config_name": "default", "data_files": files},
        ],
    }
    return f"---\n{yaml.safe_dump(data, sort_keys=False)}---\n"


def fields() -> str:
    """Columns of the records with their types and meaning."""
    columns = FILTERED_DATASET.columns
    rows = [
        {
            "field": f"`{name}`",
            "type": str(columns[name].dtype),
            "meaning": columns[name].description or "",
        }
        for name in RECORD_COLUMNS
    ]
    return markdown(pl.DataFrame(rows))


def loading(splits: list[str]) -> str:
    """How to read it."""
    first = splits[0] if splits else "train"
    return (
        "```python\n"
        "from datasets import load_dataset\n\n"
        f'records = load_dataset(".", split="{first}")  # Parquet, all columns\n'
        f'records = load_dataset("json", data_files="{first}.jsonl", split="train")  # the same\n\n'
        "import polars as pl\n\n"
        'steps = pl.read_parquet("tables/transformed_steps.parquet")\n'
        "```\n\n"
        "`messages` of the JSON lines are training input of TRL (`SFTTrainer`) and of ms-swift "
        f"(`swift sft --dataset {first}.jsonl`) as they are; `steptp export --format trl --format "
        "swift` also writes prompt-completion pairs and messages with `loss`.\n"
    )


def sample(record: Mapping[str, object]) -> str:
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
    """A frame as a Markdown table; ``none`` where it has no rows."""
    if not frame.height:
        return "none\n"
    head = "| " + " | ".join(frame.columns) + " |"
    rule = "|" + "---|" * frame.width
    rows = ["| " + " | ".join(_cell(v) for v in r) + " |" for r in frame.rows()]
    return "\n".join([head, rule, *rows]) + "\n"


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


def _sections(tables: Mapping[str, str], *names: str) -> list[str]:
    return [part for name in names for part in (f"### {name.capitalize()}\n", tables[name])]


def _files(splits: list[str]) -> list[str]:
    return [
        *(
            f"- `data/{split}-*.parquet`, `{split}.jsonl`: the records of the split"
            for split in splits
        ),
        *(f"- `tables/{name}.parquet`: {table.description}" for name, table in STABLE.items()),
        "- `manifest.json`: digests of all files\n",
    ]


def _versions(toolchains: pl.DataFrame) -> pl.DataFrame:
    rows = [
        {"target": target, "what": name, "release": str(release)}
        for target, told in toolchains.rows()
        for name, release in sorted(json.loads(told).items())
    ]
    schema = {"target": pl.String, "what": pl.String, "release": pl.String}
    return pl.DataFrame(rows, schema=schema).unique(maintain_order=True)


def _citation() -> str:
    return (
        "```bibtex\n"
        "@misc{steptp_dagster,\n"
        f"  title = {{{TITLE}}},\n"
        "  author = {{The Step-TP on Dagster contributors}},\n"
        f"  note = {{Version {version('steptp-dagster')}}},\n"
        "}\n"
        "```\n"
    )
