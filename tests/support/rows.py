"""A small data set by hand: rows that fit all tables, for tests of what comes after the stages."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from steptp_dagster.dataset.candidates import Tables
from steptp_dagster.dataset.ids import canonical_json, digest
from steptp_dagster.dataset.incremental import Made, Origin, Stage, Unit, update
from steptp_dagster.dataset.schemas import (
    GPU_VERIFICATION,
    LEIR_PROGRAMS,
    NEGATIVES,
    SOURCE_PROGRAMS,
    SURVEYS,
    TRAJECTORIES,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    ZOO,
    Row,
    frame,
)
from steptp_dagster.dataset.store import Store

HEADER = "# input A f32[4]\n# output D f32[4]\n"
SOURCE_TEXT = "B^{4}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}+1.0;];"
#: Sources that are no near copies of each other.
SOURCE_TEXTS = {
    "Matmul3D": SOURCE_TEXT,
    "softmax": SOURCE_TEXT.replace("+", "*"),
    "GELU": SOURCE_TEXT.replace("+", "-"),
}
PROGRAMS = (("Matmul3D", "matmul"), ("softmax", "softmax"), ("GELU", "activation"))
COMPARISON = {"family": "normal", "evaluator": "tvm", "difference": 1e-16, "usable": True}
STRATEGY_LEVELS = {"loop_split": "operator", "compute_inline": "graph"}


def key(*parts: str | int) -> str:
    """An id for a test."""
    return digest("test", *parts)


def source_row(program: str, family: str, dtype: str = "f32") -> Row:
    """A row of ``source_programs``."""
    return {
        "source_id": key("source", program, dtype),
        "program": program,
        "workload_level": 1,
        "family": family,
        "code": "class Model: ...",
        "code_hash": "c0de",
        "inputs": "[]",
        "params": "{}",
        "dtype": dtype,
        "shapes": '{"n":4}',
        "seed": 1,
        "form": "composed",
        "unit": key("unit source", program, dtype),
    }


def leir_row(name: str, text: str = SOURCE_TEXT) -> Row:
    """A row of ``leir_programs``."""
    sizes = dict.fromkeys(("flops", "bytes", "bytes_shared", "bytes_local"), 4)
    shape = dict.fromkeys(("nests", "loops", "equations", "loop_depth", "iterations"), 1)
    return {
        "leir_id": key("leir", name),
        "text": text,
        "signature": HEADER,
        "structural_hash": key("structure", name),
        **shape,
        **sizes,
        "tokens": 40,
        "unit": key("unit leir", name),
    }


def step_row(program: str, strategy: str, number: int, parent: Row | None = None) -> Row:
    """A row of ``transformed_steps``; from the source, or from the result of ``parent``."""
    name = f"{program}/{strategy}/{number}"
    return {
        "step_id": key("step", name),
        "source_id": key("source", program, "f32"),
        "parent_leir_id": parent["result_leir_id"] if parent else key("leir", program),
        "parent_step_id": parent["step_id"] if parent else None,
        "strategy": strategy,
        "strategy_level": STRATEGY_LEVELS[strategy],
        "strategy_version": "1",
        "site": "[0]",
        "parameters": '{"factor":2}',
        "result_leir_id": key("leir", name),
        "step_depth": 1 if parent else 0,
        "numerics": "exact",
        "reasoning": "{}",
        "reasoning_text": f"The loop tx of {name} has extent 4.",
        "mismatches": [],
        "unit": key("unit step", name),
    }


def verdict_row(step: Row, accepted: bool = True) -> Row:
    """A row of ``gpu_verification``."""
    return {
        "step_id": step["step_id"],
        "target": "llvm",
        "parent_leir_id": step["parent_leir_id"],
        "result_leir_id": step["result_leir_id"],
        "build_pass": True,
        "exec_pass": True,
        "equal_pass": accepted,
        "bitwise": accepted,
        "equality": "exact" if accepted else "rejected",
        "evidence": "executed",
        "sibling": "{}",
        "kernels": [],
        "parent_kernels": [],
        "reason": None if accepted else "values-differ",
        "static": "[]",
        "numeric": "{}",
        "margins": "{}",
        "seeds": "[0]",
        "toolchain": "{}",
        "unit": key("unit verdict", step["step_id"]),
    }


def trajectory_row(*steps: Row) -> Row:
    """A row of ``trajectories``: the steps one after the other, accepted as a whole."""
    name = steps[-1]["step_id"]
    return {
        "trajectory_id": key("trajectory", name),
        "source_id": steps[0]["source_id"],
        "step_ids": [step["step_id"] for step in steps],
        "strategies": [step["strategy"] for step in steps],
        "length": len(steps),
        "first_leir_id": steps[0]["parent_leir_id"],
        "last_leir_id": steps[-1]["result_leir_id"],
        **_judged(steps[-1], accepted=True),
        "unit": key("unit trajectory", name),
    }


def negative_row(step: Row) -> Row:
    """A row of ``negatives``: the result of a step with a mistake put in, rejected."""
    name = step["step_id"]
    family: Row = {"family": "normal", "failure": "different-mathematics", "difference": 0.25}
    return {
        "negative_id": key("negative", name),
        "source_id": step["source_id"],
        "step_id": name,
        "parent_leir_id": step["parent_leir_id"],
        "strategy": step["strategy"],
        "kind": "operator-changed",
        "change": "statement 1.1 has `-` in place of `+`",
        "candidate": SOURCE_TEXT.replace("+", "-"),
        "candidate_hash": key("structure", "negative", name),
        "usable": True,
        **_judged(step, accepted=False),
        "reason": "different-mathematics",
        "numeric": canonical_json({"families": [family], "message": ""}),
        "unit": key("unit negative", name),
    }


def _judged(step: Row, accepted: bool) -> Row:
    apart = ("step_id", "parent_leir_id", "result_leir_id", "unit")
    return {k: v for k, v in verdict_row(step, accepted).items() if k not in apart}


def survey_row(program: str, strategy: str, sites: int, taken: int) -> Row:
    """A row of ``surveys`` with one refusal."""
    return {
        "survey_id": key("survey", program, strategy),
        "source_id": key("source", program, "f32"),
        "parent_leir_id": key("leir", program),
        "parent_step_id": None,
        "strategy": strategy,
        "sites": sites,
        "taken": taken,
        "refusals": [{"reason": "unit-extent", "message": "extent 1", "count": 2}],
        "unit": key("unit survey", program, strategy),
    }


def all_rows(wrong: int = 0) -> dict[str, list[Row]]:
    """Rows of every stage table: 3 programs x 2 strategies x 2 steps, and one chained step each.

    The verdicts of the first ``wrong`` steps reject them.
    """
    rows: dict[str, list[Row]] = {t: [] for t in _TABLES}
    for program, family in PROGRAMS:
        rows["source_programs"].append(source_row(program, family))
        rows["leir_programs"].append(leir_row(program, SOURCE_TEXTS[program]))
        rows["translations"].append(
            {
                "source_id": key("source", program, "f32"),
                "leir_id": key("leir", program),
                "refusal": None,
                "message": None,
                "fidelity": 1e-16,
                "comparisons": [COMPARISON],
                "roundings": [],
                "interpreted": "program",
                "screens": [],
                "siblings": [],
                "unit": key("unit translation", program),
            }
        )
        for strategy in STRATEGY_LEVELS:
            steps = [step_row(program, strategy, n) for n in range(2)]
            steps.append(step_row(program, strategy, 2, parent=steps[0]))
            rows["transformed_steps"] += steps
            rows["surveys"].append(survey_row(program, strategy, 5, 2))
            rows["leir_programs"] += [leir_row(f"{program}/{strategy}/{n}") for n in range(3)]
        firsts = [
            s for s in rows["transformed_steps"] if s["source_id"] == key("source", program, "f32")
        ]
        rows["trajectories"].append(trajectory_row(firsts[0], firsts[2]))
        rows["negatives"].append(negative_row(firsts[1]))
    for number, step in enumerate(rows["transformed_steps"]):
        rows["gpu_verification"].append(verdict_row(step, accepted=number >= wrong))
    for name, is_wrong in (("dropped-tail", True), ("tiled", False)):
        rows["zoo"].append(
            {
                "pair": name,
                "kind": "bounds",
                "wrong": is_wrong,
                "accepted": not is_wrong,
                "reason": "values-differ" if is_wrong else None,
                "published_rule": None,
                "unit": key("unit zoo", name),
            }
        )
    return rows


_TABLES = {
    t.name: t
    for t in (
        SOURCE_PROGRAMS,
        TRANSLATIONS,
        LEIR_PROGRAMS,
        SURVEYS,
        TRANSFORMED_STEPS,
        GPU_VERIFICATION,
        TRAJECTORIES,
        NEGATIVES,
        ZOO,
    )
}


def frames(rows: Mapping[str, list[Row]]) -> dict[str, pl.DataFrame]:
    """The rows as frames."""
    return {name: frame(table, rows[name]) for name, table in _TABLES.items()}


def tables(rows: Mapping[str, list[Row]]) -> Tables:
    """The frames that the selection reads."""
    made = frames(rows)
    return Tables(
        **{
            name: made[name]
            for name in (
                "source_programs",
                "translations",
                "leir_programs",
                "transformed_steps",
                "gpu_verification",
                "trajectories",
                "negatives",
            )
        }
    )


def fill(store: Store, rows: Mapping[str, list[Row]], program: str = "all") -> None:
    """Write the rows as stage files, with lineage, each table as a stage of its own."""
    stages = {
        "source_programs": "sources",
        "translations": "leir",
        "leir_programs": "leir-extra",
        "surveys": "steps-extra",
        "transformed_steps": "steps",
        "gpu_verification": "verdicts",
        "trajectories": "trajectories",
        "negatives": "negatives",
        "zoo": "zoo",
    }
    for name, stage_name in stages.items():
        stage = Stage(stage_name, {name: _TABLES[name]}, {})
        units = [Unit(row["unit"], row) for row in rows.get(name, ())]

        def compute(missing: Sequence[Unit], folder: str = name) -> Iterator[Made]:
            for unit in missing:
                row = {k: v for k, v in unit.payload.items() if k != "unit"}
                yield Made(unit, {folder: [row]}, 0.0)

        update(store, stage, program, units, compute, origin=Origin("run-1", "v1"))
