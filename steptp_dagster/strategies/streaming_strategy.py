"""What the streaming strategies have in common: from matches and misses to sites and refusals."""

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Generic, TypeVar

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.legality import Fault, fault
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.remembered import PerProgram

Match = TypeVar("Match")


class StreamingStrategy(Strategy, Generic[Match]):
    """A strategy whose sites are matches of one pattern, each in one variant or in several.

    The pattern's finder is the judge of legality; what it cannot know (target limits, loop kinds
    of the result) is asked of the checker.
    """

    @abstractmethod
    def candidates(self, program: SignedProgram) -> Iterable[Match | Miss]:
        """Every match and every near miss, in the order in which they are listed."""

    @abstractmethod
    def sites_of(self, found: Match) -> tuple[Site, ...]:
        """The site of a match, or one for each variant of the step."""

    @abstractmethod
    def rewritten(self, program: SignedProgram, found: Match, site: Site) -> SignedProgram:
        """The program after the step."""

    def objection(self, program: SignedProgram, found: Match, site: Site) -> Fault:
        """Why the match is no site in this variant: a precondition and words, or None.

        By default the checker's objection to the result, which ``apply`` remembers.
        """
        return fault(self.apply(program, site))

    def survey(self, program: SignedProgram) -> Survey:
        """Every match that can be rewritten, and every near miss, in the finder's order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for found in self._candidates(program):
            if isinstance(found, Miss):
                refusals.append(Refusal(self.name, found.path, found.reason, found.message))
                continue
            for site in self.sites_of(found):
                broken = self.objection(program, found, site)
                if broken is None:
                    sites.append(site)
                else:
                    refusals.append(Refusal(self.name, site.path, *broken))
        return Survey(tuple(sites), tuple(refusals))

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Rewrite the match that the site names."""
        return self.rewritten(program, self.found_at(program, site), site)

    @cached_property
    def _candidates(self) -> PerProgram[tuple[Match | Miss, ...]]:
        """``candidates``, remembered.

        Matches are used by their paths, loops and names, never as objects of one analysis, which
        may have been forgotten meanwhile.
        """
        return PerProgram(lambda program: tuple(self.candidates(program)))

    def found_at(self, program: SignedProgram, site: Site) -> Match:
        """The match that a site of this program names. Raises ValueError where there is none."""
        for found in self._candidates(program):
            if not isinstance(found, Miss) and site in self.sites_of(found):
                return found
        raise ValueError(f"no such site in this program: {site.describe()}")
