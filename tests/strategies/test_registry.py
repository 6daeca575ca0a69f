"""The registry, the files, the fixtures and the documentation list the same strategies."""

import re
from pathlib import Path

import pytest

from steptp_dagster.strategies.registry import strategies, strategy
from tests.support.strategy_cases import FOLDER, cases_of, refusals_of

ROOT = Path(__file__).parents[2]
#: Shown as evidence, but a survey never proposes anything else: names are fresh, nests adjacent,
#: and the other needs of the laws bound what is new.
HOLDS_BY_CONSTRUCTION = {
    ("additive_split", "value-may-overflow"),
    ("common_subexpression_elimination", "type-changes"),
    ("expand_log", "value-may-overflow"),
    ("expand_powsimp", "value-may-overflow"),
    ("exponential_split", "exponents-of-unknown-size"),
    ("exponential_split", "value-may-overflow"),
    ("expression_splitting", "type-changes"),
    ("logsimp", "value-may-overflow"),
    ("loop_split", "index-name-taken"),
    ("operator_fusion", "not-adjacent"),
}
CLASS = re.compile(r"^class \w+\(\w*Strategy(\[\w+\])?\):", re.MULTILINE)
LEVELS = ("graph", "operator", "memory", "math")


def test_sorted_by_name() -> None:
    assert list(strategies()) == sorted(strategies())


def test_each_stands_in_the_file_of_its_name_and_level() -> None:
    for name, found in strategies().items():
        module = type(found).__module__
        assert module == f"steptp_dagster.strategies.{found.level}.{name}"


def test_every_strategy_class_in_a_file_is_registered() -> None:
    folder = ROOT / "steptp_dagster" / "strategies"
    files = {
        path.stem
        for level in LEVELS
        for path in (folder / level).glob("*.py")
        if CLASS.search(path.read_text(encoding="utf-8"))
    }
    assert files == set(strategies())


def test_every_strategy_has_fixtures() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(strategies())


def test_the_documentation_lists_every_strategy() -> None:
    page = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert listed == set(strategies())


def test_each_says_what_it_is() -> None:
    for found in strategies().values():
        assert found.summary.endswith(".")
        assert found.version
        assert found.origin
        assert len(set(found.preconditions)) == len(found.preconditions)
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", p) for p in found.preconditions)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"one of \w+, \w+, \w+"):
        strategy("loop_rotation")


def test_every_precondition_is_refused_in_some_fixture() -> None:
    for name, found in strategies().items():
        reasons = {
            reason for case in cases_of(name) for _, reason in refusals_of(found, case.before)
        }
        missing = {(name, p) for p in found.preconditions if p not in reasons}
        assert missing <= HOLDS_BY_CONSTRUCTION
