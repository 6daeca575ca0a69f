"""Wrong programs from right ones, chosen by a seed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from steptp_dagster.leir.ast import Program
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.verify.mutation.catalogue import KINDS
from steptp_dagster.verify.mutation.edits import Change, Kind

#: How many changes are checked for each that is wanted.
_LOOKED_AT: Final = 8


@dataclass(frozen=True, slots=True)
class Base:
    """A right program to be spoilt: ``form`` is right for ``original``, often the same program."""

    name: str
    original: SignedProgram
    form: SignedProgram

    @classmethod
    def of(cls, name: str, original: str, form: str = "") -> "Base":
        """From ``.leir`` texts; without ``form`` the original itself is spoilt."""
        signed = read(original).signed
        return cls(name, signed, read(form, inherit=signed.signature).signed if form else signed)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong program beside the original of its base."""

    base: str
    kind: str
    place: str
    original: SignedProgram
    candidate: SignedProgram


def mutants(
    base: Base, seed: int, per_kind: int, kinds: Mapping[str, Kind] = KINDS
) -> Iterator[Mutant]:
    """Mutants of every kind, chosen by ``seed``, kinds in their order.

    At most ``per_kind`` of each that are valid programs, which have to be run to be found out, and
    as many that are not. No two are the same program, and none is the base or its original. The
    choice depends on the base's name and on the place of the mistake alone.
    """
    seen = {base.original.program, base.form.program}
    for kind, make in kinds.items():
        fresh: dict[Program, Change] = {}
        for change in make(base.form):
            if change.program not in seen:
                fresh.setdefault(change.program, change)
        seen |= fresh.keys()
        ranked = sorted(fresh.values(), key=lambda c: _rank(seed, base.name, kind, c.place))
        for change, candidate in _chosen(base, ranked, per_kind):
            yield Mutant(base.name, kind, change.place, base.original, candidate)


def _chosen(
    base: Base, ranked: Sequence[Change], per_kind: int
) -> Iterator[tuple[Change, SignedProgram]]:
    """The first valid and the first invalid ones, among as many as are worth checking."""
    left = {True: per_kind, False: per_kind}
    for change in ranked[: _LOOKED_AT * per_kind]:
        candidate = SignedProgram(change.program, base.original.signature)
        valid = not check(candidate)
        if left[valid] > 0:
            left[valid] -= 1
            yield change, candidate


def _rank(seed: int, *names: str) -> str:
    text = "\0".join((str(seed), *names))
    return blake2b(text.encode(), digest_size=16).hexdigest()
