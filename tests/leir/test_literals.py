"""Decimal literals: exact values, one spelling."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.leir.ast import InvalidNode, Real
from steptp_dagster.leir.literals import shortest, spell


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.5", "0.5"),
        ("1.", "1.0"),
        ("1.0", "1.0"),
        ("1e0", "1.0"),
        ("00.50", "0.5"),
        ("0.0", "0.0"),
        ("0e7", "0.0"),
        ("0.01", "0.01"),
        ("0.001", "1e-3"),
        ("1.0e-5", "1e-5"),
        ("1E-05", "1e-5"),
        ("10.0", "1e1"),
        ("12.0", "12.0"),
        ("120.0", "12e1"),
        ("1.25e7", "125e5"),
        ("0.044715", "0.044715"),
        ("0.7978845608028654", "0.7978845608028654"),
        ("1e+10", "1e10"),
        ("3.4028234663852886e38", "34028234663852886e22"),
    ],
)
def test_shortest_spelling(text: str, canonical: str) -> None:
    assert shortest(text) == canonical
    assert shortest(canonical) == canonical
    assert Decimal(canonical) == Decimal(text.rstrip("."))


@pytest.mark.parametrize(
    "text",
    ["", "-1.0", ".5", "1e", "1e400", "1e-400", "1e999999999", "1e9999999999", "x", "9" * 401],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"literal|range"):
        shortest(text)


@given(st.from_regex(r"[0-9]{1,8}(\.[0-9]{0,8})?([eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_exact_and_never_longer(text: str) -> None:
    canonical = shortest(text)
    assert Decimal(canonical) == Decimal(text.replace(".e", "e").replace(".E", "E").rstrip("."))
    assert len(canonical) <= max(3, len(text) + 2)
    assert shortest(canonical) == canonical
    assert "." in canonical or "e" in canonical


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_floats_survive(value: float) -> None:
    assert float(spell(value)) == value


def test_nodes_refuse_other_spellings() -> None:
    assert Real("0.5").value == 0.5
    for text in ("0.50", "1", "-0.5", "abc"):
        with pytest.raises(InvalidNode):
            Real(text)


def test_decimals_are_spelled_exactly() -> None:
    assert spell(Decimal("0.1000000000000000000001")) == "0.1000000000000000000001"
    assert spell(Decimal(3)) == "3.0"
