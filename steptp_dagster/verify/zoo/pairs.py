"""The form of the zoo's entries: an original and what is made of it."""

from dataclasses import dataclass

from steptp_dagster.leir.fileform import program_text, read
from steptp_dagster.leir.signature import SignedProgram


@dataclass(frozen=True, slots=True)
class Pair:
    """A candidate beside its original, both as ``.leir`` text. ``kind`` groups mistakes."""

    kind: str
    name: str
    original: str
    candidate: str

    def programs(self) -> tuple[SignedProgram, SignedProgram]:
        """Both programs; a candidate without a header inherits the original's signature."""
        original = read(self.original).signed
        return original, read(self.candidate, inherit=original.signature).signed


def edited(kind: str, name: str, original: str, *edits: tuple[str, str]) -> Pair:
    """A pair whose candidate is the original with texts replaced.

    Raises ValueError where a text to replace does not occur, so that no pair is silently right.
    """
    text = original
    for old, new in edits:
        if old not in text:
            raise ValueError(f"{kind}, {name}: {old!r} does not occur")
        text = text.replace(old, new)
    return Pair(kind, name, original, text)


def rewritten(kind: str, name: str, original: str, *nests: str) -> Pair:
    """A pair whose candidate has the original's signature and these nests."""
    return Pair(kind, name, original, "\n".join(nests))


def nests_of(original: str) -> list[str]:
    """The nests of a text that holds one per line, header lines left out."""
    return [line for line in program_text(original).splitlines() if line.strip()]
