"""Matches are found where they are, whatever the heads that rules declare."""

from dataclasses import replace

import pytest

from steptp_dagster.leir.ast import Nest
from steptp_dagster.strategies.algebra.places import Matcher
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.registry import strategies
from tests.support.strategy_cases import all_cases

ALGEBRAIC = {n: s for n, s in strategies().items() if isinstance(s, AlgebraicStrategy)}


@pytest.fixture(scope="module")
def nests() -> tuple[Nest, ...]:
    """The nests of all cases of algebraic strategies, as they are before a step."""
    cases = [case for case in all_cases() if case.strategy in ALGEBRAIC]
    return tuple(dict.fromkeys(nest for case in cases for nest in case.before.program.nests))


@pytest.mark.parametrize("name", sorted(ALGEBRAIC))
def test_rules_match_at_their_heads_only(name: str, nests: tuple[Nest, ...]) -> None:
    rules = ALGEBRAIC[name].rules
    declared = Matcher(rules)
    anywhere = Matcher(tuple(replace(rule, heads=()) for rule in rules))
    found = 0
    for nest in nests:
        wanted = {path: own for path, own in anywhere(nest).items() if own}
        here = {path: own for path, own in declared(nest).items() if own}
        assert here.keys() == wanted.keys()
        for path, own in here.items():
            assert [(f.rule.name, f.place, f.match) for f in own] == [
                (f.rule.name, f.place, f.match) for f in wanted[path]
            ]
            found += len(own)
    assert found or not any(rule.heads for rule in rules)
