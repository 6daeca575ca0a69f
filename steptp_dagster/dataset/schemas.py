"""The tables: one pandera schema each, from which everything else about them is derived.

Every stage row carries ``unit``, the key of the unit of work that made it (what it was made from
and by which version of the code); ``lineage`` and ``timings`` say of each unit when, where and in
which run it was done. Nested values that only people and replays read are canonical JSON text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandera.polars as pa
import polars as pl

Row = dict[str, Any]

_STRINGS = pl.List(pl.String)
_COMPARISON = pl.Struct(
    {
        "family": pl.String,
        "evaluator": pl.String,
        "difference": pl.Float64,
        "usable": pl.Boolean,
    }
)
_ROUNDING = pl.Struct(
    {"family": pl.String, "pytorch": pl.Float64, "leir": pl.Float64, "predicted": pl.Float64}
)
_SIBLING = pl.Struct({"shapes": pl.String, "leir_id": pl.String})
_KERNEL = pl.Struct(
    {
        "nest": pl.Int64,
        "grid": pl.List(pl.Int64),
        "block": pl.List(pl.Int64),
        "registers": pl.Int64,
        "stack_bytes": pl.Int64,
        "spill_stores": pl.Int64,
        "spill_loads": pl.Int64,
        "shared_bytes": pl.Int64,
        "barriers": pl.Int64,
        "occupancy": pl.Float64,
    }
)
_MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})


def _id(description: str, *, unique: bool = False, nullable: bool = False) -> pa.Column:
    check = pa.Check.str_matches(r"^[0-9a-f]{32}$", name="id")
    return pa.Column(pl.String, check, description=description, unique=unique, nullable=nullable)


def _text(description: str, *, nullable: bool = False, values: Sequence[str] = ()) -> pa.Column:
    checks = [pa.Check.isin(list(values), name="known")] if values else []
    return pa.Column(pl.String, checks, description=description, nullable=nullable)


def _count(description: str, *, low: int = 0) -> pa.Column:
    return pa.Column(pl.Int64, pa.Check.ge(low, name=f"at least {low}"), description=description)


def _flag(description: str, *, nullable: bool = False) -> pa.Column:
    return pa.Column(pl.Boolean, description=description, nullable=nullable)


def _real(description: str, *, nullable: bool = False) -> pa.Column:
    return pa.Column(pl.Float64, description=description, nullable=nullable)


def _table(name: str, description: str, columns: Mapping[str, pa.Column]) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(dict(columns), name=name, description=description, strict=True)


LEVELS = ("graph", "operator", "memory", "math")
DTYPE_NAMES = ("f16", "bf16", "f32", "f64")
FORMS = ("composed", "naive", "inlined", "dead-code", "repeated-code")
EQUALITIES = ("exact", "reassociated", "rejected")
#: Labels of verdicts: ``built`` is compiled for a GPU that was not there.
LABELS = (*EQUALITIES, "built")
EVIDENCE = ("static", "built", "executed", "sibling")
SPLITS = ("train", "validation", "test")
#: What a record asks: one step; several steps of one program; a chain of steps; why a candidate
#: was rejected.
TASKS = ("single", "multi", "trajectory", "negative")
#: What the balance counts records by.
DIMENSIONS = ("class", "strategy", "family", "program", "dtype", "equality")
_UNIT = "key of the unit of work that made the row; joins lineage and timings"

SOURCE_PROGRAMS = _table(
    "source_programs",
    "One row per program, shape sample, dtype and form.",
    {
        "source_id": _id("content id", unique=True),
        "program": _text("name of the workload"),
        "workload_level": _count("level of the workload in the published list"),
        "family": _text("family of the workload; splits never cut one"),
        "code": _text("PyTorch source text"),
        "code_hash": _text("digest of the code"),
        "inputs": _text("JSON: name, shape, dtype and value range of every input"),
        "params": _text("JSON: arguments of the module by name"),
        "dtype": _text("working precision", values=DTYPE_NAMES),
        "shapes": _text("JSON: named extents of the sample"),
        "seed": pa.Column(pl.Int64, description="seed of the shape sample"),
        "form": _text(
            "how it is translated, and what was put in",
            values=FORMS,
        ),
        "unit": _id(_UNIT),
    },
)
USER_PROGRAMS = _table(
    "user_programs",
    "One row per program in users' files, and per file that gives none, with the reason.",
    {
        "file": _text("name of the file in its folder"),
        "program": _text("name in the data set; of a file without programs, its partition"),
        "form": _text("how the file gives it; null: it gives none", nullable=True),
        "code_hash": _text("digest of the file; null: it cannot be read", nullable=True),
        "samples": _count("rows of source_programs"),
        "reason": _text("named reason why it has no samples", nullable=True),
        "message": _text("the reason in words: where, what, what to do", nullable=True),
        "unit": _id(_UNIT),
    },
)
TRANSLATIONS = _table(
    "translations",
    "One row per source program: the LEIR it became, or why it did not.",
    {
        "source_id": _id("-> source_programs", unique=True),
        "leir_id": _id("-> leir_programs; null when refused", nullable=True),
        "refusal": _text("operator or rule that refused", nullable=True),
        "message": _text("the refusal in words, with the source line", nullable=True),
        "fidelity": _real("largest normalised error against PyTorch in float64", nullable=True),
        "comparisons": pa.Column(
            pl.List(_COMPARISON),
            description="PyTorch and LEIR in float64: normalised error by family and evaluator; "
            "unusable where the data proves nothing",
        ),
        "roundings": pa.Column(
            pl.List(_ROUNDING),
            description="working precision: errors of PyTorch and of the LEIR in epsilons, and "
            "the predicted one, by family",
        ),
        "interpreted": _text(
            "what the interpreter ran", values=("program", "sibling", "nothing"), nullable=True
        ),
        "screens": pa.Column(
            _STRINGS, description="why no step is taken from it (constant output ...); empty: fine"
        ),
        "siblings": pa.Column(
            pl.List(_SIBLING),
            description="of a program too large to run: small programs of the same structure",
        ),
        "unit": _id(_UNIT),
    },
)
_MEASURES = {
    "nests": _count("top-level nests", low=1),
    "loops": _count("loops", low=1),
    "equations": _count("equations", low=1),
    "loop_depth": _count("deepest nesting", low=1),
    "flops": _count("arithmetic operations on data"),
    "bytes": _count("bytes read and written in global memory"),
    "bytes_shared": _count("bytes read and written in shared memory"),
    "bytes_local": _count("bytes read and written in local memory"),
    "iterations": _count("executed instances of equations", low=1),
    "tokens": _count("tokens of the text", low=1),
}
LEIR_PROGRAMS = _table(
    "leir_programs",
    "One row per distinct LEIR program: translated sources and results of steps.",
    {
        "leir_id": _id("digest of canonical text, signature and constants"),
        "text": _text("canonical LEIR"),
        "signature": _text("header lines of the file form"),
        "structural_hash": _text("digest that renaming does not change"),
        **_MEASURES,
        "unit": _id(_UNIT),
    },
)
SURVEYS = _table(
    "surveys",
    "One row per LEIR program and strategy: what the strategy found there.",
    {
        "survey_id": _id("content id", unique=True),
        "source_id": _id("-> source_programs"),
        "parent_leir_id": _id("-> leir_programs"),
        "parent_step_id": _id("-> transformed_steps; null: the source itself", nullable=True),
        "strategy": _text("name of the strategy"),
        "sites": _count("legal sites with all parameters"),
        "taken": _count("steps taken here"),
        "refusals": pa.Column(
            pl.List(pl.Struct({"reason": pl.String, "message": pl.String, "count": pl.Int64})),
            description="named reasons with one message and how often each",
        ),
        "unit": _id(_UNIT),
    },
)
TRANSFORMED_STEPS = _table(
    "transformed_steps",
    "One row per strategy applied at a site of a LEIR program.",
    {
        "step_id": _id("content id", unique=True),
        "source_id": _id("-> source_programs"),
        "parent_leir_id": _id("-> leir_programs"),
        "parent_step_id": _id("-> transformed_steps; null: the source itself", nullable=True),
        "strategy": _text("name of the strategy"),
        "strategy_level": _text("level of the strategy", values=LEVELS),
        "strategy_version": _text("its version"),
        "site": _text("JSON: path of the statement"),
        "parameters": _text("JSON: parameters by name"),
        "result_leir_id": _id("-> leir_programs"),
        "step_depth": _count("steps between the source and the parent"),
        "numerics": _text("what the strategy promises", values=("exact", "reassociated")),
        "reasoning": _text("JSON: the structured chain of thought"),
        "reasoning_text": _text("the chain of thought in words"),
        "mismatches": pa.Column(
            _STRINGS, description="claims of the reasoning that the IR does not bear out"
        ),
        "unit": _id(_UNIT),
    },
)
GPU_VERIFICATION = _table(
    "gpu_verification",
    "One row per step and target: the verdict with its evidence.",
    {
        "step_id": _id("-> transformed_steps"),
        "target": _text("llvm, cuda:sm_90 ..."),
        "parent_leir_id": _id("-> leir_programs"),
        "result_leir_id": _id("-> leir_programs"),
        "build_pass": _flag("both programs compiled"),
        "exec_pass": _flag("both programs ran; null: only built", nullable=True),
        "equal_pass": _flag("the verdict accepted the step; null: only built", nullable=True),
        "bitwise": _flag("all outputs equal bit for bit; null: only built", nullable=True),
        "equality": _text("label of the verdict", values=LABELS),
        "evidence": _text("what the verdict rests on", values=EVIDENCE),
        "sibling": _text("JSON: what ran in place of programs too large to run; {}: nothing did"),
        "kernels": pa.Column(
            pl.List(_KERNEL), description="CUDA kernels of the result: geometry and what they take"
        ),
        "parent_kernels": pa.Column(
            pl.List(_KERNEL), description="CUDA kernels of the parent, as those of the result"
        ),
        "reason": _text("named reason of a rejection", nullable=True),
        "static": _text("JSON: violations found without running"),
        "numeric": _text("JSON: differences and errors by input family"),
        "margins": _text("JSON: distance of the outputs to the trivial ones"),
        "seeds": _text("JSON: seeds of the input families"),
        "toolchain": _text("JSON: releases of what compiled and ran"),
        "unit": _id(_UNIT),
    },
)
VERDICTS = _table(
    "verdicts",
    "One row per pair of programs and target: what ``gpu_verification`` says of each step.",
    {name: column for name, column in GPU_VERIFICATION.columns.items() if name != "step_id"},
)
_JUDGED = {
    name: column
    for name, column in VERDICTS.columns.items()
    if name not in ("parent_leir_id", "result_leir_id", "unit")
}
TRAJECTORIES = _table(
    "trajectories",
    "One row per chain of accepted steps from a source: its first program and its last, judged as "
    "one pair.",
    {
        "trajectory_id": _id("content id", unique=True),
        "source_id": _id("-> source_programs"),
        "step_ids": pa.Column(_STRINGS, description="-> transformed_steps, in order"),
        "strategies": pa.Column(_STRINGS, description="their strategies"),
        "length": _count("number of steps", low=2),
        "first_leir_id": _id("-> leir_programs: where it starts"),
        "last_leir_id": _id("-> leir_programs: where it ends"),
        **_JUDGED,
        "unit": _id(_UNIT),
    },
)
NEGATIVES = _table(
    "negatives",
    "One row per candidate with a mistake put in, and what the verdict said; those that it "
    "accepted, and those that it could not judge, are told apart by `equal_pass` and `usable`.",
    {
        "negative_id": _id("content id", unique=True),
        "source_id": _id("-> source_programs"),
        "step_id": _id("-> transformed_steps: the right step that the candidate was made from"),
        "parent_leir_id": _id("-> leir_programs"),
        "strategy": _text("name of the strategy that the candidate claims"),
        "kind": _text("kind of mistake"),
        "change": _text("the mistake in words: where, and what stands instead of what"),
        "candidate": _text("LEIR text of the candidate; may be invalid"),
        "candidate_hash": _id("structural hash of the candidate"),
        "usable": _flag("rejected for what it is, not for want of time, memory or evidence"),
        **_JUDGED,
        "unit": _id(_UNIT),
    },
)
FILTERED_DATASET = _table(
    "filtered_dataset",
    "One row per record kept for training or evaluation.",
    {
        "record_id": _id("content id", unique=True),
        "task": _text("what is asked", values=TASKS),
        "step_ids": pa.Column(
            _STRINGS,
            description="-> transformed_steps: the steps shown, in order; of a negative record the "
            "right step that its candidate was made from",
        ),
        "trajectory_id": _id("-> trajectories; null: another task", nullable=True),
        "negative_id": _id("-> negatives; null: another task", nullable=True),
        "source_id": _id("-> source_programs"),
        "program": _text("name of the workload"),
        "family": _text("family of the workload"),
        "dtype": _text("working precision", values=DTYPE_NAMES),
        "strategies": pa.Column(_STRINGS, description="strategies of the steps, in order"),
        "strategy": _text("strategy that the record counts for: the hardest, of equals the last"),
        "strategy_level": _text("its level", values=LEVELS),
        "equality": _text(
            "weakest label of the verdicts; of a negative record `rejected`", values=EQUALITIES
        ),
        "split": _text("part of the data set", values=SPLITS),
        "difficulty": _text("class of the strategy, as the profile's balance defines it"),
        "size": _text("class by tokens, as the profile's balance defines it"),
        "structural_hash": _text("of the program that the prompt shows"),
        "messages": pa.Column(pl.List(_MESSAGE), description="chat messages"),
        "weights": pa.Column(pl.List(pl.Float64), description="loss weight of each message"),
        "prompt_tokens": _count("tokens of the messages before the answer", low=1),
        "reasoning_tokens": _count("tokens of the reasoning; 0: a data set without"),
        "answer_tokens": _count("tokens of the answer after the reasoning", low=1),
        "unit": _id(_UNIT),
    },
)
EXCLUSIONS = _table(
    "exclusions",
    "One row per step that is no single-answer record, with the reason.",
    {
        "step_id": _id("-> transformed_steps", unique=True),
        "reason": _text("named reason"),
    },
)
RENDERINGS = _table(
    "renderings",
    "One row per program in the language of the records, where that is not LEIR.",
    {
        "program_key": _id("digest of header and LEIR text", unique=True),
        "language": _text("tir or cuda"),
        "text": _text("the program; null: the language refuses it", nullable=True),
        "unit": _id(_UNIT),
    },
)
BALANCE = _table(
    "balance",
    "One row per task and value of what records are counted by: how many before and after the "
    "balance, and why the others went.",
    {
        "task": _text("what is asked", values=TASKS),
        "dimension": _text("what is counted by", values=DIMENSIONS),
        "name": _text("class, strategy, family ...; null: the dimension as a whole", nullable=True),
        "before": _count("records that could be made"),
        "after": _count("records kept"),
        "dropped": _text("JSON: reason -> how many"),
        "entropy_before": _real("bits, of the dimension as a whole", nullable=True),
        "entropy_after": _real("bits, of the dimension as a whole", nullable=True),
    },
)
LEAKAGE = _table(
    "leakage",
    "One row per workload outside the training split: what of the training split is most like it.",
    {
        "program": _text("name of the workload"),
        "split": _text("its split", values=SPLITS),
        "structures": _count("distinct structures of its LEIR programs"),
        "shared": _count("of these, how many are in the training split too; must be 0"),
        "nearest": _text("workload of the training split most like it; null: none", nullable=True),
        "likeness": _real("share of nests that the two have in common, extents and dtypes aside"),
        "near": _flag("whether that is a near copy; must be false"),
    },
)
TOKEN_COUNTS = _table(
    "token_counts",
    "One row per LEIR program: tokens of its text in each language (`dataset/token_counts.py`).",
    {
        "leir_id": _id("-> leir_programs", unique=True),
        "sampled": _flag("whether it is counted in other languages than LEIR"),
        "leir": _count("in the paper's spelling, without header lines", low=1),
        "compact": _count("in the compact spelling", low=1),
        **{
            name: pa.Column(pl.Int64, description=text, nullable=True)
            for name, text in {
                "tir_blocks": "TVM's script with blocks, as its schedules print it",
                "tir_loops": "TVM's script of plain loops",
                "tir_exact": "TVM's script of what verification runs, rounding spelled out",
                "tvm_file": "the whole CUDA file that TVM makes of it",
                "tvm_kernels": "the kernels in that file alone",
                "cuda_file": "the whole CUDA file of `lowering.cuda`",
                "cuda_kernels": "the kernels in that file alone",
            }.items()
        },
        "refusals": pa.Column(
            _STRINGS, description="who refused to write it, and the kind of error"
        ),
        "unit": _id(_UNIT),
    },
)
STATISTICS = _table(
    "statistics",
    "One row per metric and combination of what it is broken down by.",
    {
        "metric": _text("what is counted or measured"),
        "strategy": _text("name, or null: all", nullable=True),
        "strategy_level": _text("level, or null: all", nullable=True),
        "family": _text("family, or null: all", nullable=True),
        "dtype": _text("dtype, or null: all", nullable=True),
        "split": _text("split, or null: all", nullable=True),
        "reason": _text("named reason of a refusal or rejection", nullable=True),
        "value": _real("count or mean"),
    },
)
ZOO = _table(
    "zoo",
    "One row per known pair that the verifier was tried on.",
    {
        "pair": _text("name of the pair"),
        "kind": _text("kind of mistake, or of legal rewrite"),
        "wrong": _flag("whether the pair is wrong"),
        "accepted": _flag("what the verifier said"),
        "reason": _text("its reason", nullable=True),
        "published_rule": pa.Column(
            pl.Boolean,
            description="whether a published tolerance would accept; null: it cannot run the pair",
            nullable=True,
        ),
        "unit": _id(_UNIT),
    },
)
LINEAGE = _table(
    "lineage",
    "One row per unit of work: the run that did it first. Differs from build to build.",
    {
        "unit": _id("-> unit of any table", unique=True),
        "stage": _text("which stage"),
        "program": _text("partition, or `all`"),
        "run_id": _text("Dagster run, or `direct`"),
        "code_version": _text("version of the code that did it"),
        "created_at": _text("UTC, ISO 8601"),
    },
)
TIMINGS = _table(
    "timings",
    "One row per unit of work: how long it took. Differs from build to build.",
    {
        "unit": _id("-> unit of any table", unique=True),
        "stage": _text("which stage"),
        "seconds": _real("wall clock of the unit; of verdicts: since the result before"),
        "host": _text("name of the machine"),
    },
)
RUNS = _table(
    "runs",
    "One row per Dagster run that made rows. Differs from build to build.",
    {
        "run_id": _text("Dagster run; `lineage` names it"),
        "started_at": _text("UTC, ISO 8601: when it first made a row"),
        "job": _text("name of the job"),
        "profile": _text("name of the profile"),
        "revision": _text("git commit of the project, `+` where files differ from it; or empty"),
        "releases": _text("JSON: releases of Python and of the packages that take part"),
    },
)

#: Tables that are equal, byte for byte, in every build of the same code and profile.
STABLE: dict[str, pa.DataFrameSchema] = {
    t.name: t
    for t in (
        SOURCE_PROGRAMS,
        USER_PROGRAMS,
        TRANSLATIONS,
        LEIR_PROGRAMS,
        SURVEYS,
        TRANSFORMED_STEPS,
        GPU_VERIFICATION,
        TRAJECTORIES,
        NEGATIVES,
        FILTERED_DATASET,
        EXCLUSIONS,
        BALANCE,
        LEAKAGE,
        TOKEN_COUNTS,
        STATISTICS,
        ZOO,
    )
}
TABLES: dict[str, pa.DataFrameSchema] = {
    **STABLE,
    "lineage": LINEAGE,
    "timings": TIMINGS,
    "runs": RUNS,
}


def polars_schema(table: pa.DataFrameSchema) -> pl.Schema:
    """Column names and polars dtypes of a table, in order."""
    return pl.Schema({name: column.dtype.type for name, column in table.columns.items()})


def frame(table: pa.DataFrameSchema, rows: Sequence[Row]) -> pl.DataFrame:
    """Rows as a frame of the table's types; raises where a row has other columns."""
    schema = polars_schema(table)
    for row in rows:
        if row.keys() != schema.keys():
            odd = sorted(row.keys() ^ schema.keys())
            raise ValueError(f"{table.name}: missing or unknown columns: {', '.join(odd)}")
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def empty(table: pa.DataFrameSchema) -> pl.DataFrame:
    """The table without rows."""
    return pl.DataFrame(schema=polars_schema(table))
