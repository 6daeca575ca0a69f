"""The table of programs with a site: what the naive form adds to the composed one."""

import pytest

from benchmarks.bench_sites import PUBLISHED, WORKLOADS, survey
from steptp_dagster.strategies.registry import strategies


def test_every_published_figure_belongs_to_a_strategy() -> None:
    assert len(PUBLISHED) == 43
    assert set(PUBLISHED) <= set(strategies())
    assert len(WORKLOADS) == 202


@pytest.mark.parametrize(
    ("program", "strategy"),
    [
        ("Tanh", "expression_reorder"),
        ("LayerNorm", "expression_reorder"),
        ("BatchNorm", "expression_reorder"),
        ("cumsum_exclusive", "dead_code_elimination"),
        ("cumsum", "cache_read_write"),
    ],
)
def test_only_the_naive_form_has_a_site(program: str, strategy: str) -> None:
    wanted = [strategies()[strategy]]
    assert survey([program], "composed", wanted) == {}
    assert survey([program], "naive", wanted) == {(strategy, "naive"): {program}}


def test_after_a_fusion_there_is_a_tensor_to_move() -> None:
    wanted = [strategies()["set_storage_scope"]]
    found = survey(["Softsign"], "composed", wanted)
    assert found == {("set_storage_scope", "composed after fusion"): {"Softsign"}}
