"""How much a text says of what an explanation holds, and in which of several wordings."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.facts import Explanation


@dataclass(frozen=True, slots=True)
class Style:
    """A length of text.

    ``conditions`` preconditions are argued, ``lessons`` of them say what would follow otherwise,
    and ``named`` of the others are named. The state is told by at most ``facts`` facts, a law by
    what ``letters`` of it stand for, decision, soundness and each argued condition by ``proofs``,
    the effect by as many changed ``figures``. Changed nests are quoted if all of them together
    have at most ``quoted``
    characters. ``unchanged`` figures are told, or a choice that was none. The structured
    explanation holds everything in every style.
    """

    name: str
    conditions: int
    named: int
    facts: int
    letters: int
    proofs: int
    lessons: int
    quoted: int
    figures: int
    unchanged: bool


#: For training contexts: half of the texts have about 320 tokens.
BRIEF: Final = Style(
    "brief",
    conditions=2,
    named=2,
    facts=3,
    letters=4,
    proofs=2,
    lessons=1,
    quoted=0,
    figures=3,
    unchanged=False,
)
#: Everything, for reading.
FULL: Final = Style(
    "full",
    conditions=99,
    named=99,
    facts=99,
    letters=99,
    proofs=99,
    lessons=99,
    quoted=100_000,
    figures=99,
    unchanged=True,
)
STYLES: Final = {style.name: style for style in (BRIEF, FULL)}

OPENINGS: Final = (
    "What the program shows:",
    "Look at what is there:",
    "The relevant part:",
    "Observe:",
    "First, the facts:",
    "Reading the program:",
    "Where things stand:",
)
QUESTIONS: Final = (
    "Does {name} apply at {place}?",
    "Rule out what would make {name} illegal at {place}.",
    "Is {name} legal at {place}?",
    "May {name} be used at {place}? What could forbid it:",
    "What {name} needs at {place}:",
    "Consider {name} at {place}.",
)
OTHERS: Final = (
    "The rest holds as well:",
    "Nothing else stands against it:",
    "Also checked:",
    "The other conditions hold too:",
    "Besides,",
)
DECISIONS: Final = (
    "Decision: apply {name} at {place}{chosen}.",
    "So apply {name} at {place}{chosen}.",
    "The step: {name} at {place}{chosen}.",
    "Take {name} at {place}{chosen}.",
)
MEANINGS: Final = (
    "Why the meaning stays:",
    "Why this computes the same:",
    "Why the result stays the same:",
    "Why it is correct:",
    "Equivalence:",
)
EFFECTS: Final = (
    "Expected effect (guards true):",
    "What it brings (guards true):",
    "In figures (guards true):",
    "Before and after (guards true):",
)


class Chooser:
    """Picks among equivalent wordings, always alike for one explanation at one site."""

    def __init__(self, site: Site, explanation: Explanation) -> None:
        seen = repr((explanation.state, explanation.effect))
        self._state = zlib.crc32(f"{site.strategy} {site.describe()} {seen}".encode())

    def pick(self, choices: Sequence[str]) -> str:
        """One of the choices; the next call picks anew."""
        return choices[self.number(len(choices))]

    def number(self, below: int) -> int:
        """A number from 0 to below ``below``."""
        self._state = zlib.crc32(self._state.to_bytes(4, "big"))
        return self._state % below
