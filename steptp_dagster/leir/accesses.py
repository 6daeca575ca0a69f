"""Every read and write of a program: the uses of its nests (``uses``), put together.

This is the common ground of shapes, updates, dependences and validity.
"""

from itertools import chain

from steptp_dagster.leir.conversion import Converter
from steptp_dagster.leir.lazy import lazy
from steptp_dagster.leir.nest_memory import KnownNest, NestFacts, known_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.tables import Table, Tables
from steptp_dagster.leir.uses import (
    Chain,
    LoopRef,
    NestUses,
    Role,
    Statement,
    Use,
    common_loops,
    private_coordinates,
)
from steptp_dagster.leir.walk import Path

__all__ = [
    "Accesses",
    "Chain",
    "LoopRef",
    "Role",
    "Statement",
    "Use",
    "common_loops",
    "private_coordinates",
]


class Accesses:
    """All statements and uses of a program, in text order.

    Nothing is worked out before it is asked for; what belongs to one nest is shared with other
    programs that have the nest at the same place.
    """

    def __init__(self, signed: SignedProgram) -> None:
        self.signed = signed
        self.known: tuple[KnownNest, ...] = tuple(map(known_nest, signed.program.nests))
        self._parts: dict[int, NestUses] = {}

    @lazy
    def tables(self) -> Tables:
        """The values of integer tensors."""
        wanted = {name for known in self.known for name in known.outline.tables}
        makers = [
            nest
            for nest, known in zip(self.signed.program.nests, self.known, strict=True)
            if not wanted.isdisjoint(known.outline.written)
        ]
        return Tables(self.signed.signature, makers)

    @lazy
    def facts(self) -> tuple[NestFacts, ...]:
        """What is remembered of each nest."""
        return tuple(known.facts(self._tables_of(known)) for known in self.known)

    def _tables_of(self, known: KnownNest) -> tuple[Table, ...]:
        return tuple([self.tables.known(name) for name in known.outline.tables])

    def part(self, i: int) -> NestUses:
        """The uses of top-level nest ``i``."""
        found = self._parts.get(i)
        if found is None:
            found = self._parts[i] = self.facts[i].uses(self.signed.program.nests[i], i)
        return found

    def unplaced(self, i: int) -> NestUses:
        """The uses of top-level nest ``i``, whose paths may be those of another program."""
        found = self._parts.get(i)
        return self.facts[i].somewhere(self.signed.program.nests[i], i) if found is None else found

    @lazy
    def parts(self) -> tuple[NestUses, ...]:
        """The uses of all nests."""
        return tuple(self.part(i) for i in range(len(self.known)))

    @lazy
    def writers(self) -> dict[str, tuple[int, ...]]:
        """Which top-level nests write each tensor that is written, in text order."""
        found: dict[str, list[int]] = {}
        for i, known in enumerate(self.known):
            for name in known.outline.written:
                found.setdefault(name, []).append(i)
        return {name: tuple(nests) for name, nests in found.items()}

    def writes_until(self, tensor: str, i: int) -> list[Use]:
        """Writes of a tensor by the nests up to and including nest ``i``, in text order."""
        nests = self.writers.get(tensor, ())
        return [w for j in nests if j <= i for w in self.part(j).writes[tensor]]

    @lazy
    def statements(self) -> list[Statement]:
        """All statements."""
        return [s for part in self.parts for s in part.statements]

    @lazy
    def uses(self) -> list[Use]:
        """All uses."""
        return [u for part in self.parts for u in part.uses]

    @lazy
    def loops_of(self) -> dict[Path, Chain]:
        """The loops of each nest, by the nest's path."""
        return {path: refs for part in self.parts for path, refs in part.loops_of.items()}

    @lazy
    def by_tensor(self) -> dict[str, list[Use]]:
        """Uses of each tensor."""
        found: dict[str, list[Use]] = {}
        for use in self.uses:
            found.setdefault(use.access.name, []).append(use)
        return found

    @lazy
    def writes(self) -> dict[str, list[Use]]:
        """Writes of each tensor."""
        return {name: [u for u in uses if u.write] for name, uses in self.by_tensor.items()}

    @lazy
    def by_statement(self) -> dict[Path, list[Use]]:
        """Uses of each equation: the target first, then reads from left to right."""
        parts = (part.by_statement.items() for part in self.parts)
        return dict(chain.from_iterable(parts))

    @lazy
    def statement_at(self) -> dict[Path, Statement]:
        """Statements by path."""
        return {s.path: s for s in self.statements}

    def converter(self, path: Path) -> Converter:
        """Converts expressions that stand where the equation at ``path`` stands."""
        statement = next(s for s in self.part(path[0]).statements if s.path == path)
        return Converter(statement.bounds, self.tables.read)

    def under(self, path: Path) -> list[Use]:
        """Uses by the equations at or below ``path``; of the whole program for ``()``."""
        return self.part(path[0]).under(path) if path else list(self.uses)

    def touching(self, path: Path) -> list[Use]:
        """The same, without those that add no conflict (``NestUses.touching``)."""
        if path:
            return self.part(path[0]).touching(path)
        return [u for part in self.parts for u in part.touching((part.place,))]
