"""CUDA rows beside those of llvm, and rows that siblings stand for."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steptp_dagster.dataset.candidates import select
from steptp_dagster.dataset.config import VerificationPlan, load
from steptp_dagster.dataset.incremental import Origin, Unit, update
from steptp_dagster.dataset.schemas import VERDICTS, Row, frame
from steptp_dagster.dataset.small_chains import NO_SIBLINGS, SmallChains
from steptp_dagster.dataset.stages import verdicts
from steptp_dagster.dataset.stages.steps import parameters
from steptp_dagster.dataset.stages.verdicts import chosen, verdicts_of
from steptp_dagster.dataset.store import Store
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.verify import reasons
from steptp_dagster.verify.record import KernelFigures, Verdict
from steptp_dagster.verify.verdict import verify
from tests.support.large import matmul
from tests.support.rows import all_rows, key, tables

KERNEL = KernelFigures(0, (6, 1, 1), (4, 1, 1), 32, 0, 0, 0, 16, 2, 0.5)
BUILT = Verdict(
    False,
    "built",
    False,
    reasons.NOT_EXECUTED,
    "no GPU that runs sm_90 is here",
    target="cuda:sm_90",
    evidence="built",
    kernels=(KERNEL,),
    original_kernels=(KERNEL, KERNEL),
)


class Pool:
    """Judges in this process, on CUDA targets with one and the same verdict."""

    def __init__(self, told: Verdict = BUILT) -> None:
        self.targets: list[str] = []
        self.told = told

    def verify_many(self, pairs: Any, target: str = "llvm") -> Iterator[tuple[Any, Verdict]]:
        for name, original, candidate in pairs:
            self.targets.append(target)
            yield name, verify(original, candidate) if target == "llvm" else self.told


def only(units: list[Unit], programs: dict[str, SignedProgram], *more: SmallChains) -> list[Row]:
    pool: Any = Pool()
    made = list(verdicts_of(units, programs, pool, *more))
    rows = [{**m.rows["verdicts"][0], "unit": m.unit.key} for m in made]
    VERDICTS.validate(frame(VERDICTS, rows))
    return rows


LARGE = matmul(512, 1024, 2048)
SMALL = {key("one"): matmul(4, 8, 16), key("two"): matmul(3, 12, 8)}


def test_a_pair_that_was_only_built_is_no_acceptance() -> None:
    program = matmul(4, 8, 2)
    units = [Unit(key(t), (key("a"), key("b"), t)) for t in ("llvm", "cuda:sm_90")]
    run, built = only(units, {key("a"): program, key("b"): program})
    assert (run["target"], run["equal_pass"], run["kernels"]) == ("llvm", True, [])
    assert built["target"] == "cuda:sm_90"
    assert built["build_pass"] is True
    assert [built[name] for name in ("exec_pass", "equal_pass", "bitwise")] == [None] * 3
    assert (built["equality"], built["evidence"], built["reason"]) == (
        "built",
        "built",
        "not-executed",
    )
    assert built["kernels"][0]["registers"] == 32
    assert len(built["parent_kernels"]) == 2


A100 = "NVIDIA A100, compute capability 8.0, driver 12080"
H200 = "NVIDIA H200, compute capability 9.0, driver 12080"
EXECUTED = replace(BUILT, accepted=True, equality="exact", bitwise=True, reason=None, message="")
REJECTED = replace(EXECUTED, accepted=False, equality="rejected", reason=reasons.MATHEMATICS)
EXCESSIVE = replace(BUILT, message="the original executes 6000000000 equations")
FAULT = replace(REJECTED, reason=reasons.CRASHED)


@pytest.mark.parametrize(
    ("first", "then", "asked"),
    [
        # Where nothing fits nothing is asked, and where it does only for want of it before.
        (BUILT, [("", BUILT), (A100, BUILT), (H200, EXECUTED), ("", BUILT), (H200, BUILT)], [2]),
        (EXECUTED, [("", BUILT), (A100, BUILT), (H200, BUILT)], []),
        (REJECTED, [("", BUILT), (A100, BUILT), (H200, BUILT)], []),
        (EXCESSIVE, [("", BUILT), (H200, BUILT)], []),
        (FAULT, [("", FAULT), (H200, EXECUTED), ("", BUILT)], [0, 1]),
    ],
    ids=["built", "accepted", "rejected", "too large", "crashed"],
)
def test_what_a_gpu_has_executed_stands_on_every_machine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: Verdict,
    then: list[tuple[str, Verdict]],
    asked: list[int],
) -> None:
    program, targets, store = matmul(4, 8, 2), ("llvm", "cuda:sm_90"), Store(tmp_path)
    programs, seen = {key("a"): program, key("b"): program}, []
    for gpu, told in [("", first), *then]:
        monkeypatch.setattr(verdicts, "gpu_here", partial(str, gpu))
        pool: Any = Pool(told)
        units = [verdicts._unit((key("a"), key("b"), t), 0, NO_SIBLINGS) for t in targets]
        compute = partial(verdicts_of, programs=programs, verifier=pool)
        update(store, verdicts.stage_here(targets), "p", units, compute, origin=Origin())
        seen.append(pool.targets)
    assert seen[0] == ["llvm", "cuda:sm_90"]
    assert seen[1:] == [["cuda:sm_90"] if n in asked else [] for n in range(len(then))]
    held = store.read(VERDICTS, "p").filter(pl.col("target") == "cuda:sm_90")
    (last,) = held["reason"]
    assert last == (then[asked[-1]][1] if asked else first).reason


def stepped(name: str, large: SignedProgram, **wanted: object) -> Step:
    chosen = strategy(name)
    for site in chosen.survey(large).sites:
        if all(site.named[k] == v for k, v in wanted.items()):
            step = take(chosen, large, site)
            assert isinstance(step, Step)
            return step
    raise AssertionError(f"no such site of {name}")


def row_of(step: Step, name: str, after: str, before: str, earlier: str | None = None) -> Row:
    return {
        "step_id": key(name),
        "source_id": key("source"),
        "parent_leir_id": key(before),
        "result_leir_id": key(after),
        "parent_step_id": earlier and key(earlier),
        "strategy": step.strategy,
        "site": json.dumps(step.site.path),
        "parameters": json.dumps(parameters(step.site)),
    }


def chains(rows: list[Row], programs: dict[str, SignedProgram]) -> SmallChains:
    return SmallChains(
        {key("source"): {name: json.dumps({"m": name}) for name in SMALL}},
        {row["step_id"]: row for row in rows},
        {(r["parent_leir_id"], r["result_leir_id"]): [r["step_id"]] for r in rows},
        {**programs, **SMALL},
    )


def test_a_chain_of_large_programs_is_judged_on_siblings() -> None:
    first = stepped("loop_reorder", LARGE)
    second = stepped("loop_split", first.after, tail="exact", loop="a")
    programs = {key("zero"): LARGE, key("one step"): first.after, key("two steps"): second.after}
    rows = [
        row_of(first, "first", "one step", "zero"),
        row_of(second, "second", "two steps", "one step", "first"),
    ]
    units = [
        Unit(key("unit", r["step_id"]), (r["parent_leir_id"], r["result_leir_id"], "llvm"))
        for r in rows
    ]
    for row in only(units, programs, chains(rows, programs)):
        assert (row["evidence"], row["equality"], row["reason"]) == ("sibling", "exact", None)
        assert (row["build_pass"], row["exec_pass"], row["equal_pass"]) == (True, True, True)
        told = json.loads(row["sibling"])
        assert set(told) == set(SMALL)
        assert set(told[key("one")]) == {"shapes", "parameters"}


def test_without_siblings_a_large_pair_stays_too_large() -> None:
    step = stepped("loop_reorder", LARGE)
    programs = {key("zero"): LARGE, key("one step"): step.after}
    rows = [row_of(step, "first", "one step", "zero")]
    units = [Unit(key("unit"), (key("zero"), key("one step"), "llvm"))]
    (row,) = only(units, programs)
    assert (row["evidence"], row["reason"], row["sibling"]) == ("static", "too-large", "{}")
    alone = chains(rows, programs)
    one = replace(alone, siblings={key("source"): {key("one"): "{}"}})
    (row,) = only(units, programs, one)
    assert (row["equal_pass"], row["reason"]) == (False, "too-large")
    assert "of 1 siblings, and 2 are needed" in row["numeric"]


def test_a_wrong_large_result_is_not_what_siblings_stand_for() -> None:
    step = stepped("loop_reorder", LARGE)
    wrong = read(
        "B^{512}_{tx=0}L^{2048}_{c=0}L^{1024}_{a=0}"
        "[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,(a+1)%1024};];",
        inherit=LARGE.signature,
    ).signed
    programs = {key("zero"): LARGE, key("one step"): wrong}
    rows = [row_of(step, "first", "one step", "zero")]
    units = [Unit(key("unit"), (key("zero"), key("one step"), "llvm"))]
    (row,) = only(units, programs, chains(rows, programs))
    assert (row["equal_pass"], row["reason"]) == (False, "too-large")


@pytest.mark.parametrize("share", [0.01, 0.25, 1.0])
def test_a_share_of_the_pairs_is_tried_on_cuda(share: float) -> None:
    plan = VerificationPlan(targets=("llvm", "cuda:sm_90"), cuda_share=share)
    profile = replace(load("tiny"), verification=plan)
    pairs = [(key("a", str(i)), key("b", str(i))) for i in range(1000)]
    found = [pair for pair in pairs if chosen(profile, pair)]
    deviation = (share * (1.0 - share) / len(pairs)) ** 0.5
    assert abs(len(found) / len(pairs) - share) <= 4.0 * deviation
    assert found == [pair for pair in pairs if chosen(profile, pair)]


def test_records_need_an_acceptance_and_no_rejection() -> None:
    rows = all_rows()
    before = [c.step_id for c in select(tables(rows)).candidates]
    more = [
        {
            **row,
            "target": "cuda:sm_90",
            "exec_pass": None,
            "equal_pass": None,
            "bitwise": None,
            "equality": "built",
            "evidence": "built",
            "unit": key("cuda", row["unit"]),
        }
        for row in rows["gpu_verification"]
    ]
    own = rows["gpu_verification"]
    rows["gpu_verification"] = [*own, *more]
    found = select(tables(rows)).candidates
    assert [c.step_id for c in found] == before
    assert {c.equality for c in found} == {"exact"}
    rows["gpu_verification"] = more
    assert select(tables(rows)).candidates == ()
    refused = {**more[0], "equal_pass": False, "equality": "rejected", "build_pass": False}
    rows["gpu_verification"] = [*own, refused]
    assert refused["step_id"] not in [c.step_id for c in select(tables(rows)).candidates]
