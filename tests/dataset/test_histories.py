"""What was built before changes no row: strategies come and go, and machines are slow."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steptp_dagster import progress
from steptp_dagster.dataset.config import load
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Origin
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of, translation_row
from steptp_dagster.dataset.schemas import GPU_VERIFICATION, TRAJECTORIES, Row
from steptp_dagster.dataset.stages.judgements import update_judgements
from steptp_dagster.dataset.stages.steps import update_steps
from steptp_dagster.dataset.store import Store
from steptp_dagster.leir.canonical import leir_id
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies import plugins
from steptp_dagster.verify import reasons
from steptp_dagster.verify.record import Verdict, rejection
from tests.support.large import matmul
from tests.support.rows import fill, key, source_row

#: A strategy that does the same as another one, and leaves small programs alone: of its steps
#: alone nothing can be judged on siblings.
SHY = '''
from dataclasses import replace
from steptp_dagster.strategies.operator.loop_reorder import LoopReorder

class ShyReorder(LoopReorder):
    """As loop_reorder, on large programs."""

    name = "shy_reorder"
    version = "1"

    def survey(self, program):
        found = super().survey(program)
        large = any(extent > 64 for v in program.signature.variables for extent in v.shape)
        return found if large else replace(found, sites=())
'''
STRATEGIES = ("loop_reorder", "loop_split", "shy_reorder")
FOLDERS = (
    *("surveys", "transformed_steps", "step_programs"),
    *("verdicts", "gpu_verification", "trajectories", "negatives"),
)


#: Too large to run, with its siblings; and one that is run.
SOURCES = {"large": ((512, 1024, 2048), ((4, 8, 16), (8, 12, 8))), "small": ((6, 8, 10), ())}


class Machine:
    """Judges by what the pair is alone; as often as it is ``slow``, it is not done in time."""

    def __init__(self, slow: float, rng: random.Random) -> None:
        self.slow = slow
        self.rng = rng
        self.asked = 0

    def verify_many(self, pairs: Any) -> Iterator[tuple[Any, Verdict]]:
        for name, original, candidate in pairs:
            self.asked += 1
            yield name, self.verdict(original, candidate)

    def verdict(self, original: SignedProgram, candidate: SignedProgram) -> Verdict:
        if self.rng.random() < self.slow:
            return rejection(reasons.TIMED_OUT, "no verdict in time")
        if max(extent for v in original.signature.variables for extent in v.shape) > 64:
            return rejection(reasons.TOO_LARGE, "the original is not run")
        drawn = int(digest("verdict", leir_id(original), leir_id(candidate))[:8], 16) % 8
        if drawn == 0:
            return rejection(reasons.MATHEMATICS, "they differ")
        return Verdict(True, "exact" if drawn % 2 else "reassociated", True, None)


def translated(folder: Path) -> Store:
    """Stage files of both sources, of one workload."""
    store = Store(folder)
    programs: dict[str, Row] = {}
    translations: list[Row] = []
    for name, (shape, siblings) in SOURCES.items():
        rows = [row_of(matmul(*each)) for each in (shape, *siblings)]
        programs |= {r["leir_id"]: {**r, "unit": key("unit", r["leir_id"])} for r in rows}
        told = [
            {"leir_id": row["leir_id"], "shapes": f'{{"n":{each[1]}}}'}
            for row, each in zip(rows[1:], siblings, strict=True)
        ]
        source = {**source_row("mm", "matmul"), "source_id": key("source", name)}
        known = translation_row(source, leir_id=rows[0]["leir_id"], fidelity=0.0)
        translations.append({**known, "siblings": told, "unit": key("unit", name)})
    tables = {"translations": translations, "leir_programs": [*programs.values()]}
    fill(store, tables, "mm")
    return store


def build(store: Store, names: Sequence[str], machine: Any) -> None:
    """Steps and judgements with these strategies only."""
    tiny = load("tiny")
    plan = replace(
        tiny.steps, sites=2, depth=1, chains=2, chain_sites=1, trajectories=3, negatives=2
    )
    profile = replace(tiny, strategies=tuple(sorted(names)), steps=plan)
    update_steps(store, "mm", profile, Workers(None), Origin(), progress.silent)
    update_judgements(store, "mm", profile, machine, Origin(), progress.silent)


def contents(store: Store) -> dict[str, bytes]:
    return {name: store.part(name, "mm").read_bytes() for name in FOLDERS}


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "shy.py").write_text(SHY, encoding="utf-8")
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "plugins"))


@pytest.mark.usefixtures("plugged")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_strategies_in_any_order_give_what_a_clean_build_gives(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    clean, store = translated(tmp_path / "clean"), translated(tmp_path / "grown")
    build(clean, STRATEGIES, Machine(0.0, rng))
    assert {"sibling", "static"} <= set(clean.read(GPU_VERIFICATION, "mm")["evidence"])
    assert "sibling" in clean.read(TRAJECTORIES, "mm")["evidence"].to_list()
    order = rng.sample(STRATEGIES, len(STRATEGIES))
    for some in (order[:2], order[1:]):
        build(store, some, Machine(0.4, rng))
    build(store, STRATEGIES, Machine(0.0, rng))
    wanted = contents(clean)
    assert {n for n, rows in contents(store).items() if rows != wanted[n]} == set(), order
    again = Machine(0.0, rng)
    build(store, STRATEGIES, again)
    assert again.asked == 0


@pytest.mark.usefixtures("plugged")
def test_a_verdict_on_siblings_rests_on_every_step_that_leads_there(tmp_path: Path) -> None:
    store, machine = translated(tmp_path / "stages"), Machine(0.0, random.Random(0))
    build(store, ["shy_reorder"], machine)
    large = leir_id(matmul(*SOURCES["large"][0]))
    alone = store.read(GPU_VERIFICATION, "mm").filter(parent_leir_id=large)
    assert set(alone["reason"]) == {reasons.TOO_LARGE}
    build(store, ["shy_reorder", "loop_reorder"], machine)
    both = store.read(GPU_VERIFICATION, "mm").filter(parent_leir_id=large)
    assert set(alone["result_leir_id"]) <= set(both["result_leir_id"])
    assert set(both["evidence"]) == {"sibling"}
