"""The stage that translates: real programs, one of each form, and what refuses them."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from steptp_dagster import progress
from steptp_dagster.dataset.config import Form, ProgramPlan, load
from steptp_dagster.dataset.incremental import Origin
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, SOURCE_PROGRAMS, TRANSLATIONS
from steptp_dagster.dataset.stages.leir import update_leir
from steptp_dagster.dataset.stages.sources import update_sources
from steptp_dagster.dataset.store import Store
from steptp_dagster.translate.translate import SAME_AS_COMPOSED

INLINE = Workers(None)


def stages(folder: Path, program: str, *forms: Form) -> tuple[Store, pl.DataFrame]:
    """The store after both stages, and sources joined with their translations."""
    store = Store(folder)
    profile = replace(load("tiny"), programs=(ProgramPlan(program, forms=forms),))
    update_sources(store, program, profile, Origin(), progress.silent)
    update_leir(store, program, INLINE, Origin(), progress.silent)
    sources, made = store.read(SOURCE_PROGRAMS, program), store.read(TRANSLATIONS, program)
    return store, sources.drop("unit").join(made.drop("unit"), on="source_id").sort("form")


def test_both_forms_are_sources_of_their_own(tmp_path: Path) -> None:
    store, rows = stages(tmp_path, "Matmul_with_transposed_B", "composed", "naive")
    assert rows["form"].to_list() == ["composed", "naive"]
    assert rows["source_id"].n_unique() == rows["leir_id"].n_unique() == 2
    assert rows["code_hash"].n_unique() == 1
    nests = store.read(LEIR_PROGRAMS, "Matmul_with_transposed_B").join(rows, on="leir_id")
    assert nests.sort("form")["nests"].to_list() == [1, 2]
    assert all(error <= 1e-15 for error in rows["fidelity"])


def test_what_speaks_for_a_translation_is_stored(tmp_path: Path) -> None:
    _, rows = stages(tmp_path, "softmax", "composed")
    (row,) = rows.to_dicts()
    tried = {(c["evaluator"], c["family"]) for c in row["comparisons"] if c["usable"]}
    assert {("tvm", "given"), ("tvm", "ties"), ("interpreter", "masked")} <= tried
    assert row["fidelity"] == max(c["difference"] for c in row["comparisons"])
    assert row["interpreted"] == "program"
    assert {"normal", "sparse", "negative"} <= {r["family"] for r in row["roundings"]}
    assert all(0 <= r["pytorch"] < 16 for r in row["roundings"])


def test_injected_code_is_a_source_of_its_own_and_faithful(tmp_path: Path) -> None:
    store, rows = stages(tmp_path, "softmax", "composed", "dead-code", "repeated-code")
    assert rows["form"].to_list() == ["composed", "dead-code", "repeated-code"]
    assert rows["refusal"].to_list() == [None] * 3
    assert rows["screens"].to_list() == [[]] * 3
    assert all(error <= 1e-15 for error in rows["fidelity"])
    nests = store.read(LEIR_PROGRAMS, "softmax").join(rows, on="leir_id").sort("form")["nests"]
    assert nests[1] == nests[0] + 2
    assert nests[2] == nests[0] + 1


def test_nothing_to_inject_is_a_refusal_in_words(tmp_path: Path) -> None:
    _, rows = stages(tmp_path, "ReLU", "repeated-code")
    (row,) = rows.to_dicts()
    assert row["leir_id"] is None
    assert row["refusal"] == "nothing-to-inject"
    assert "no tensor" in row["message"]


def test_a_form_that_is_the_other_is_no_second_source(tmp_path: Path) -> None:
    _, rows = stages(tmp_path / "both", "ReLU", "composed", "naive")
    assert rows["refusal"].to_list() == [None, "same-as-composed"]
    assert rows["message"][1] == SAME_AS_COMPOSED.message
    _, rows = stages(tmp_path / "alone", "ReLU", "naive")
    assert rows["refusal"].to_list() == [None]
