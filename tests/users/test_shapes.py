"""Extents of samples: the constants of a file, other values for them, and which are tried."""

import random

import pytest

from steptp_dagster.users.constants import constants, substituted
from steptp_dagster.users.shapes import ROWS, candidates

TEXT = """
# größe
rows, width = 4, 2 * 8
kernel: int = 3
shape = (5, 7)
again = 1
again = 2
a = b = 9
scale = 0.5
flag = True
def f():
    inner = 3
"""


def test_whole_numbers_at_the_top_are_constants() -> None:
    found = {"rows": 4, "width": 16, "kernel": 3, "shape[0]": 5, "shape[1]": 7}
    assert constants(TEXT) == found
    for name in found:
        changed = substituted(TEXT, {name: 11})
        assert constants(changed) == {**found, name: 11}
        assert changed.count("\n") == TEXT.count("\n")


def test_a_number_on_several_lines_keeps_the_lines() -> None:
    text = "n = (2 *\n     8)\nm = 'é', n\nk = 'é'; z = 3\n"
    changed = substituted(text, {"n": 5, "z": 4})
    names: dict[str, object] = {}
    exec(changed, names)
    assert (names["n"], names["z"]) == (5, 4)
    assert changed.splitlines()[2:] == ["m = 'é', n", "k = 'é'; z = 4"]


@pytest.mark.parametrize("text", ["def (", "n = 1\x0cm = 2", "\0", "n = 2 ** 9999"])
def test_text_that_is_odd_has_no_constants(text: str) -> None:
    assert constants(text) == {}


def test_unknown_constants_cannot_be_set() -> None:
    with pytest.raises(KeyError):
        substituted("n = 1", {"m": 2})


def test_large_extents_shrink_and_structure_stays_at_first() -> None:
    given = {"batch": 4096, "channels": 64, "groups": 8, "kernel": 3}
    first = next(candidates(given, None, random.Random(0)))
    assert first == {"batch": 8, "channels": 8, "groups": 8, "kernel": 3}
    every = list(candidates(given, None, random.Random(0)))
    assert all(shape["batch"] <= 64 for shape in every)
    assert any(shape["batch"] == 1 for shape in every)
    assert every == list(candidates(given, None, random.Random(0)))
    assert len({tuple(shape.items()) for shape in every}) == len(every)


def test_without_constants_rows_are_left_out() -> None:
    assert [s[ROWS] for s in candidates({}, 6, random.Random(0))] == [3, 2, 5, 1, 4]
    assert list(candidates({}, 1, random.Random(0))) == []
    assert list(candidates({}, None, random.Random(0))) == []
