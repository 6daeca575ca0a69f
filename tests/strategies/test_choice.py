"""The policy that chooses among sites: it spreads, repeats, and leaves nothing out."""

import random
from hashlib import blake2b

from hypothesis import given, settings
from hypothesis import strategies as st

from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.choice import features, spread


def rank(site: Site) -> str:
    return blake2b(repr(site).encode(), digest_size=8).hexdigest()


def splits(nests: int) -> list[Site]:
    """A survey as a loop strategy gives it: many factors of the first nest, few of the others."""
    return [
        Site.of("loop_split", (nest,), loop=loop, factor=factor)
        for nest in range(nests)
        for loop in "acd"
        for factor in ((2, 4, 8, 16, 32) if nest == 0 else (2,))
    ]


def test_as_many_nests_and_loops_as_are_taken() -> None:
    taken = [site for site, _ in zip(spread(splits(3), rank), range(3), strict=False)]
    assert {site.path for site in taken} == {(0,), (1,), (2,)}
    assert {site.text("loop") for site in taken} == {"a", "c", "d"}


def test_factors_are_spread_within_one_nest() -> None:
    taken = [site for site, _ in zip(spread(splits(1), rank), range(5), strict=False)]
    assert {site.integer("factor") for site in taken} == {2, 4, 8, 16, 32}


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_every_site_once_whatever_the_order(nests: int, shuffled: random.Random) -> None:
    sites = splits(nests)
    expected = list(spread(sites, rank))
    assert sorted(map(repr, expected)) == sorted(map(repr, sites))
    shuffled.shuffle(sites)
    assert list(spread(sites, rank)) == expected


def test_a_site_of_a_whole_program_has_features() -> None:
    assert features(Site.of("dead_code_elimination", ())) == (("", 0),)
