"""YAML read strictly: what people write by mistake is said, and nothing runs away."""

import pytest

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.mapping import BadMapping, build
from steptp_dagster.dataset.yaml_text import plain_data

#: Each list holds the one before it nine times: a few lines that stand for gigabytes.
BOMB = "name: &a [x, x]\n" + "".join(
    f"k{n}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
    for n, (a, b) in enumerate(zip("abcdefghi", "bcdefghij", strict=True))
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 7\nname: a\nseed: 8\n", "'seed' is said in line 1 and again in 3"),
        ("steps: {sites: 1, sites: 2}", "'sites' is said in line 1 and again in 1"),
        ("a:\n  - {b: 1}\n  - b: 1\n    b: 1\n", "'b' is said in line 3 and again in 4"),
        ("[" * 5000, "nested too deeply"),
        ("seed: 2026-13-45", "a value that cannot be: month must be in"),
        ("seed: " + "9" * 5000, "a value that cannot be: Exceeds the limit"),
        ("name: [tiny", "not YAML: while parsing a flow sequence"),
        ("name: !!python/object:os.system x", "not YAML: could not determine a constructor"),
        ("? [a]\n: 1\n", "not YAML: while constructing a mapping"),
        ("a: 1\n---\na: 2\n", "not YAML: expected a single document"),
        ("name: a\0b", "not YAML: unacceptable character"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadMapping) as caught:
        plain_data(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n", "\ufeff"])
def test_nothing_is_none(text: str) -> None:
    assert plain_data(text) is None


def test_what_is_shared_may_be_replaced() -> None:
    """The keys that ``<<`` brings are none that are said twice."""
    text = "base: &b {sites: 1, depth: 2}\nsteps:\n  <<: *b\n  depth: 3\n"
    assert plain_data(text) == {
        "base": {"sites": 1, "depth": 2},
        "steps": {"sites": 1, "depth": 3},
    }


def test_a_value_that_unfolds_without_end_is_shown_in_short() -> None:
    data = plain_data(BOMB)
    assert isinstance(data, dict)
    with pytest.raises(BadMapping) as caught:
        build(Profile, {"name": data["k8"], "seed": 1, "dtypes": ["f32"]})
    assert len(str(caught.value)) < 10_000
    assert str(caught.value).startswith("name: expected a text, found [[")
