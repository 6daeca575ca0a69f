"""TVM's default pipeline gives the same verdicts, and takes over where our form is not taken."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.lowering import build, library
from steptp_dagster.lowering.library import Library
from steptp_dagster.verify import original as originals_module
from steptp_dagster.verify.batch import verify_batch
from steptp_dagster.verify.engine import DEFAULTS, LLVM
from steptp_dagster.verify.verdict import numeric
from steptp_dagster.verify.zoo import originals

ORIGINAL = read(originals.SCALE_ADD).signed
RIGHT = "L^{20}_{a=0}[D^{f32,g}_{a}=5*A^{f32,g}_{a}/2-C^{f32,g}_{a};];"
WRONG = "L^{20}_{a=0}[D^{f32,g}_{a}=2.5*A^{f32,g}_{a}+C^{f32,g}_{a};];"
PAIRS = [(ORIGINAL, read(text, inherit=ORIGINAL.signature).signed) for text in (RIGHT, WRONG)]


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No code and no results of earlier tests."""
    monkeypatch.setattr(build, "_library", Library(64))
    monkeypatch.setattr(build, "_programs", type(build._programs)())
    originals_module._kept.clear()


def test_tvms_defaults_give_the_same_verdicts() -> None:
    quick = [numeric(*pair, 5, LLVM) for pair in PAIRS]
    originals_module._kept.clear()
    assert [numeric(*pair, 5, DEFAULTS) for pair in PAIRS] == quick
    assert [verdict.accepted for verdict in quick] == [True, False]


@pytest.mark.parametrize("failure", [AttributeError("moved"), RuntimeError("std::bad_alloc")])
def test_defaults_take_over_where_tvms_internals_moved(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    expected = verify_batch(PAIRS, seed=5)
    originals_module._kept.clear()
    asked: list[int] = []

    def moved(*_: object) -> None:
        asked.append(1)
        raise failure

    monkeypatch.setattr(library, "compile_functions", moved)
    monkeypatch.setattr(build, "_library", Library(64))
    monkeypatch.setattr(build, "_programs", type(build._programs)())
    assert verify_batch(PAIRS, seed=5) == expected
    assert asked


def test_a_lack_of_memory_is_told_not_evaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(library, "compile_functions", exhausted)
    with pytest.raises(MemoryError):
        verify_batch(PAIRS, seed=5)
