"""Looking for garbage rarely: once per process, and nobody's own choice is overruled."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from steptp_dagster.leir.collector import YOUNG, collect_rarely


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class _Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.own = self


def test_the_young_are_looked_at_rarely_and_imports_never() -> None:
    gc.set_threshold(700, 10, 10)
    collect_rarely()
    assert gc.get_threshold() == (YOUNG, 10, 10)
    assert gc.get_freeze_count() > 0


@pytest.mark.parametrize("own", [0, YOUNG + 1])
def test_another_choice_stays(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    frozen = gc.get_freeze_count()
    collect_rarely()
    assert gc.get_threshold()[0] == own
    assert gc.get_freeze_count() == frozen


def test_cycles_still_go() -> None:
    gc.set_threshold(700, 10, 10)
    collect_rarely()
    knot = weakref.ref(_Knot())
    kept = [[i] for i in range(4 * YOUNG)]
    assert knot() is None
    assert len(kept) == 4 * YOUNG
