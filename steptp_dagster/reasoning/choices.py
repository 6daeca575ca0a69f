"""Derivations of what there was to choose from (``strategies.alternatives``)."""

from collections.abc import Mapping
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.reasoning.kinds import Derivation, DerivationError, name_of, path_of
from steptp_dagster.strategies.alternatives import surveyed
from steptp_dagster.strategies.base import Strategy
from steptp_dagster.strategies.evidence import figures
from steptp_dagster.strategies.facts import Value
from steptp_dagster.strategies.registry import strategies


def sites(signed: SignedProgram, strategy: Value) -> int:
    """How many sites a strategy lists."""
    return len(surveyed(_strategy(strategy), signed).sites)


def alternative(
    signed: SignedProgram,
    strategy: Value,
    path: Value,
    parameters: Value,
    different: Value,
    figure: Value,
) -> int:
    """A figure of ``leir.cost`` after the strategy's step at another site; 0 without a figure."""
    chosen = _strategy(strategy)
    found = [
        s
        for s in surveyed(chosen, signed).sites
        if s.path == path_of(path) and s.parameters == parameters
    ]
    if not found or not isinstance(different, tuple):
        raise DerivationError(f"{chosen.name} has no such site")
    if not set(different) <= set(found[0].parameters):
        raise DerivationError(f"the other site of {chosen.name} has no such parameters")
    if figure == "":
        return 0
    values = figures(chosen.apply(signed, found[0]))
    name = name_of(figure)
    if name not in values:
        raise DerivationError(f"no cost figure {figure!r}")
    return values[name]


def _strategy(name: Value) -> Strategy:
    known = strategies()
    if name not in known:
        raise DerivationError(f"no strategy {name!r}")
    return known[name_of(name)]


KINDS: Final[Mapping[str, Derivation]] = {"sites": sites, "alternative": alternative}
