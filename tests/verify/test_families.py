"""Input families: named, seeded, within declared ranges, the same everywhere."""

from pathlib import Path

import numpy as np
import pytest

from steptp_dagster.leir.signature import Signature, Variable
from steptp_dagster.lowering.storage import NUMPY
from steptp_dagster.verify.families import (
    DOMAINS,
    FAMILIES,
    Family,
    inputs,
    masks_alone,
    thresholds_family,
)
from steptp_dagster.verify.seeds import generator

SIGNATURE = Signature(
    (
        Variable("input", "A", "f32", (6, 8)),
        Variable("input", "C", "f16", (9,), 0.1, 0.3),
        Variable("input", "E", "i64", (40,), 2, 11),
        Variable("input", "F", "u8", (40,)),
        Variable("input", "G", "bool", (40,)),
        Variable("input", "H", "bf16", ()),
        Variable("param", "W", "f64", (16, 64)),
        Variable("const", "K", "f32", (), values=(0.5,)),
        Variable("output", "D", "f32", (6, 8)),
    )
)
BY_NAME = {family.name: family for family in FAMILIES}


def test_there_are_enough_plain_families_with_names_of_their_own() -> None:
    assert len(BY_NAME) == len(FAMILIES)
    assert sum(not family.adversarial for family in FAMILIES) >= 12
    assert sum(family.adversarial for family in FAMILIES) >= 8


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_arrays_fit_the_signature(family: Family) -> None:
    for domain in DOMAINS:
        data = inputs(SIGNATURE, family, 4, domain)
        assert list(data) == ["A", "C", "E", "F", "G", "H", "W"]
        for name, array in data.items():
            variable = SIGNATURE.by_name[name]
            assert array.shape == variable.shape
            assert array.dtype == NUMPY[variable.dtype]
            if variable.low is not None and variable.high is not None:
                assert array.min() >= variable.low
                assert array.max() <= variable.high
            if not family.infinite and array.dtype.kind == "f":
                assert np.isfinite(array).all()
        if domain == "positive":
            assert (data["A"] > 0).all()
        if domain == "positive-parameters":
            assert (data["W"] > 0).all()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_a_draw_depends_on_seed_family_and_tensor_only(family: Family) -> None:
    first, again = inputs(SIGNATURE, family, 1), inputs(SIGNATURE, family, 1)
    alone = inputs(Signature((SIGNATURE.variables[0], SIGNATURE.variables[-1])), family, 1)
    assert np.array_equal(first["A"], again["A"])
    assert np.array_equal(first["A"], alone["A"])
    assert not np.array_equal(first["A"], inputs(SIGNATURE, family, 2)["A"])


def test_streams_are_the_same_on_every_machine() -> None:
    drawn = generator(3, "normal", "A").integers(0, 1000, 5).tolist()
    assert drawn == generator(3, "normal", "A").integers(0, 1000, 5).tolist()
    assert drawn != generator(3, "normal", "C").integers(0, 1000, 5).tolist()
    assert drawn == [985, 130, 647, 336, 604]


def test_patterns_are_what_their_names_say() -> None:
    def drawn(name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return inputs(SIGNATURE, BY_NAME[name], 0)["A"]

    assert (drawn("negative") < 0).all()
    assert len(np.unique(drawn("constant"))) == 1
    assert (np.diff(drawn("ramp").reshape(-1)) > 0).all()
    assert (drawn("one-hot").sum(axis=1) == 1).all()
    assert (drawn("peak-first").argmax(axis=1) == 0).all()
    assert (drawn("peak-last").argmax(axis=1) == 7).all()
    assert len(np.unique(drawn("ties"))) <= 5
    assert 0 < (drawn("sparse") == 0).sum() < 48
    assert (drawn("masked") == -np.inf).any()
    assert (drawn("masked-first")[:, -1] > -np.inf).all()
    assert (np.abs(drawn("tiny")) < 2.0**-120).all()
    assert drawn("outlier").max() == 1000


def test_adversarial_rows() -> None:
    def drawn(name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return inputs(SIGNATURE, BY_NAME[name], 0)["A"]

    assert (drawn("far-negative") < -900).all()
    for name, position in (("spike-first", 0), ("spike-last", 7)):
        assert (drawn(name)[:, position] >= 1000).all()
        assert (np.abs(np.delete(drawn(name), position, axis=1)) < 10).all()
    assert [set(row) for row in np.sign(drawn("huge-rows")).tolist()] == [{-1.0}, {1.0}] * 3
    assert np.isneginf(drawn("masked-rows")[::2]).all()
    assert np.isneginf(drawn("masked-rows")[1::2, :-1]).all()
    assert np.isfinite(drawn("masked-rows")[1::2, -1]).all()
    gaps = np.unique(np.abs(np.diff(np.sort(drawn("near-ties").reshape(-1)))))
    assert gaps[gaps > 0].min() <= 2.0**-6


def test_masks_alone_are_in_one_input_and_fill_no_line() -> None:
    shapes = {"A": (6, 8), "C": (2, 4), "E": (9,), "F": (3, 1, 5), "G": (2, 2, 2), "H": ()}
    signature = Signature(
        (
            *(Variable("input", name, "f32", shape) for name, shape in shapes.items()),
            Variable("input", "R", "f32", (4, 4), 0.0, 1.0),
            Variable("param", "W", "f32", (4, 4)),
            Variable("output", "D", "f32", ()),
        )
    )
    families = masks_alone(signature)
    assert [f.name for f in families] == [f"masked-alone {name}" for name in "ACEFG"]
    for family in families:
        for draw in range(6):
            data = inputs(signature, family, 0, draw=draw)
            masked = {name for name, array in data.items() if not np.isfinite(array).all()}
            assert masked == {family.alone}
            infinite = np.isneginf(data[family.alone])
            assert all(infinite.sum(axis=k).max() <= 1 for k in range(infinite.ndim))


def test_integers_without_a_range_are_small_but_in_the_large_family() -> None:
    small = inputs(SIGNATURE, BY_NAME["normal"], 0)["F"]
    assert small.max() <= 8
    assert inputs(SIGNATURE, BY_NAME["large"], 0)["F"].max() > 8


def test_thresholds_are_hit_and_surrounded() -> None:
    family = thresholds_family([0.5, 0.500001])
    values = set(np.unique(family.pattern(generator(0, "x"), (4000,), "f64")).tolist())
    assert {0.5, 0.500001, 0.25, 0.0, 1.0} <= values
    assert any(0.5 < v < 0.500001 for v in values)


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_left_out_where_there_is_room(seed: int) -> None:
    family = thresholds_family([7.03, 7.04])
    values = family.pattern(generator(seed, "x"), (4, 6), "f64")
    assert {7.03, 7.04, (7.03 + 7.04) / 2.0} <= set(values.reshape(-1).tolist())


def test_the_documentation_names_every_family() -> None:
    text = (Path(__file__).parents[2] / "docs" / "verification.md").read_text()
    alone = Family("masked-alone NAME", BY_NAME["normal"].pattern)
    assert [f.name for f in (*FAMILIES, alone) if f"`{f.name}`" not in text] == []
