"""Somebody edits a file of the library: what is made again is what it decides, and no more.

The library is copied, and each build is a process that runs the copy.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steptp_dagster.dataset.store import Store

ROOT = Path(__file__).parents[2]
PROGRAMS = ("GELU", "softmax")
STRATEGIES = ("loop_reorder", "loop_split", "loop_tiling", "loop_unrolling")
#: From sources to verdicts, with a judge that agrees; prints what each stage made by program.
BUILD = """
import json, sys
from dataclasses import replace
from pathlib import Path
from steptp_dagster import progress
from steptp_dagster.dataset.config import load
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.stages.leir import update_leir
from steptp_dagster.dataset.stages.sources import update_sources
from steptp_dagster.dataset.stages.steps import update_steps
from steptp_dagster.dataset.stages.verdicts import update_verdicts
from steptp_dagster.dataset.store import Store
from tests.support.small_build import Agreeable, origin

stages, run, programs, strategies = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]
store, tiny = Store(Path(stages)), load("tiny")
plan = replace(tiny.steps, sites=8, depth=0)
profile = replace(tiny, strategies=tuple(strategies.split(",")), steps=plan)
judge, told, here = Agreeable(), {}, Workers(None)
for name in programs.split(","):
    made = {}
    made["sources"] = update_sources(store, name, profile, origin("sources", run), progress.silent)
    made["leir"] = update_leir(store, name, here, origin("leir", run), progress.silent)
    made["steps"] = update_steps(store, name, profile, here, origin("steps", run), progress.silent)
    made["verdicts"] = update_verdicts(
        store, name, profile, judge, origin("verdicts", run), progress.silent
    )
    told[name] = {stage: report.new for stage, report in made.items()}
print(json.dumps(told))
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A copy of the library, and the stage files that it makes."""

    root: Path
    store: Store

    def build(self, run: str) -> dict[str, dict[str, int]]:
        """Units computed, by program and stage."""
        names = (",".join(PROGRAMS), ",".join(STRATEGIES))
        command = [sys.executable, "-c", BUILD, str(self.store.root), run, *names]
        environment = os.environ | {"PYTHONPATH": str(self.root), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, dict[str, int]] = json.loads(done.stdout)
        return found

    def edit(self, file: str, old: str, new: str) -> None:
        """Change the one place of a file where ``old`` stands."""
        path = self.root / "steptp_dagster" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} reads otherwise now: this test must follow it"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def rows(self, table: str, program: str) -> list[dict[str, Any]]:
        path = self.store.part(table, program)
        return pl.read_parquet(path, hive_partitioning=False).to_dicts()

    def run_of(self, stage: str, program: str) -> dict[str, str]:
        """Unit -> the run that made it."""
        return {row["unit"]: row["run_id"] for row in self.rows(f"lineage-{stage}", program)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy that has built everything."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("steptp_dagster", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    made = Checkout(folder, Store(folder / "stages"))
    first = made.build("first")
    assert all(count > 0 for stages in first.values() for count in stages.values())
    return made


@pytest.fixture
def checkout(built: Checkout, tmp_path: Path) -> Checkout:
    """Another copy, to be edited."""
    shutil.copytree(built.root, tmp_path / "copy")
    return Checkout(tmp_path / "copy", Store(tmp_path / "copy" / "stages"))


@pytest.mark.slow
def test_the_body_of_a_strategy_decides_its_own_rows_only(
    checkout: Checkout, built: Checkout
) -> None:
    """Not its version: the rows carry the same one."""
    file = "strategies/operator/loop_unrolling.py"
    checkout.edit(file, 'if loop.kind != "L":', 'if loop.kind != "L" or loop.extent > 4:')
    made = checkout.build("second")
    fewer = 0
    for program in PROGRAMS:
        assert (made[program]["sources"], made[program]["leir"]) == (0, 0)
        runs = checkout.run_of("steps", program)
        surveys = checkout.rows("surveys", program)
        again = {row["strategy"] for row in surveys if runs[row["unit"]] == "second"}
        kept = {row["strategy"] for row in surveys if runs[row["unit"]] == "first"}
        assert again == {"loop_unrolling"}
        assert kept == {*STRATEGIES} - again
        assert made[program]["steps"] == sum(row["strategy"] in again for row in surveys)
        before, after = (c.rows("transformed_steps", program) for c in (built, checkout))
        others = [[r for r in rows if r["strategy"] not in again] for rows in (before, after)]
        assert others[0] == others[1]
        fewer += len(before) - len(after)
        # Pairs that are still there have their verdict; no step is new, so nobody was asked.
        assert made[program]["verdicts"] == 0
        known = {(r["parent_leir_id"], r["result_leir_id"]) for r in after}
        judged = checkout.rows("verdicts", program)
        assert {(r["parent_leir_id"], r["result_leir_id"]) for r in judged} == known
    assert fewer > 0
    assert checkout.build("third") == dict.fromkeys(
        PROGRAMS, dict.fromkeys(("sources", "leir", "steps", "verdicts"), 0)
    )


@pytest.mark.slow
def test_an_operator_decides_translations_and_steps_of_those_that_changed(
    checkout: Checkout, built: Checkout
) -> None:
    """GELU comes out otherwise, and softmax, which is translated again too, as before."""
    old = 'return mul(half, add(ONE, call("erf", div(a, call("sqrt", literal(2))))))'
    new = 'return mul(add(ONE, call("erf", div(a, call("sqrt", literal(2))))), half)'
    checkout.edit("translate/ops_elementwise.py", old, new)
    made = checkout.build("second")
    assert {program: stages["sources"] for program, stages in made.items()} == dict.fromkeys(
        PROGRAMS, 0
    )
    assert all(made[program]["leir"] > 0 for program in PROGRAMS)
    assert made["softmax"] | {"leir": 0} == dict.fromkeys(made["softmax"], 0)
    assert made["GELU"]["steps"] == len(STRATEGIES)
    assert made["GELU"]["verdicts"] > 0
    assert set(checkout.run_of("steps", "GELU").values()) == {"second"}
    assert set(checkout.run_of("steps", "softmax").values()) == {"first"}
    same = [c.rows("transformed_steps", "softmax") for c in (built, checkout)]
    assert same[0] == same[1]
