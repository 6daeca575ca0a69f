"""What is remembered of top-level nests, so that programs that share nests share the work.

A step changes one or two nests of a program, and many programs in a survey differ in one nest
alone. What is found out about a nest depends on the nest, on what is known of the integer tensors
that it reads (``NestFacts``), and on whatever else the question names in its key. Nests are
recognised by identity, else by value, and get a serial number that stands for them in keys.

Nothing here changes an answer: every entry is a function of its key, and forgetting costs time
only. Positions in the text take no part in a nest's value, so what carries positions or paths is
kept per nest object and place (uses), or not at all (violations).
"""

import itertools
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import Final, TypeVar

from steptp_dagster.leir.affine import Interval
from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.outline import Outline, outline_of
from steptp_dagster.leir.tables import KnownTables, Table
from steptp_dagster.leir.uses import NestUses

#: Nests, clean checks per nest, and objects and places per nest that are remembered.
NESTS: Final = 2048
ANSWERS: Final = 256
PLACES: Final = 8

_SERIALS = itertools.count()
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
_Found = TypeVar("_Found")
#: Tensor -> rank -> one more than the highest subscript written, per dimension.
Extents = dict[str, dict[int, tuple[int, ...]]]


def remember(memory: dict[_Key, _Value], key: _Key, value: _Value, most: int) -> _Value:
    """Put a value into a memory of bounded size; the older half goes when it is full."""
    if len(memory) >= most:
        for old in list(itertools.islice(memory, max(1, most // 2))):
            memory.pop(old, None)
    memory[key] = value
    return value


class NestFacts:
    """What is known of a nest where its integer tensors have the given values.

    ``serial`` is equal for equal nests with equal tables, as long as they are remembered.
    """

    __slots__ = ("_clean", "_placed", "_tables", "boxes", "extents", "outline", "serial")

    def __init__(self, outline: Outline, tables: tuple[Table, ...]) -> None:
        self.serial = next(_SERIALS)
        self.outline = outline
        self._tables = KnownTables(tables)
        self._clean: dict[Hashable, None] = {}
        #: Per tensor and rank how far the nest writes it (``shapes``); None where not asked.
        self.extents: Extents | None = None
        #: Per tensor the boxes that the nest writes completely (``elements``).
        self.boxes: dict[str, tuple[tuple[Interval, ...], ...]] = {}
        self._placed: dict[tuple[int, int], NestUses] = {}

    def uses(self, nest: Nest, place: int) -> NestUses:
        """The uses of this very nest object as top-level nest number ``place``."""
        key = (id(nest), place)
        found = self._placed.get(key)
        if found is None or found.nest is not nest:
            made = NestUses(nest, place, self._tables.read)
            found = remember(self._placed, key, made, PLACES)
        return found

    def somewhere(self, nest: Nest, place: int) -> NestUses:
        """The uses of the nest wherever it stood, for questions that paths take no part in."""
        for found in self._placed.values():
            return found
        return self.uses(nest, place)

    def found(self, key: Hashable, check: Callable[[], Sequence[_Found]]) -> Sequence[_Found]:
        """What ``check`` finds wrong, where that depends on this nest and on ``key`` alone.

        A check that found nothing is not run again.
        """
        if key in self._clean:
            return ()
        found = check()
        if not found:
            remember(self._clean, key, None, ANSWERS)
        return found

    def all_clean(self, keys: tuple[_Key, ...], check: Callable[[_Key], Sequence[_Found]]) -> bool:
        """Whether the checks under all of ``keys`` find nothing, which is remembered as a whole."""
        if keys in self._clean:
            return True
        for key in keys:
            if key not in self._clean:
                if check(key):
                    return False
                remember(self._clean, key, None, ANSWERS)
        remember(self._clean, keys, None, ANSWERS)
        return True


class KnownNest:
    """A nest, up to equality. ``serial`` is equal for equal nests while they are remembered.

    ``figures`` holds what functions of the nest alone gave (``per_nest``).
    """

    __slots__ = ("_facts", "_plain", "figures", "outline", "serial")

    def __init__(self, nest: Nest) -> None:
        self.serial = next(_SERIALS)
        self.outline = outline_of(nest)
        self.figures: dict[Callable[[Nest], object], object] = {}
        self._plain = NestFacts(self.outline, ())
        self._facts: dict[tuple[Table, ...], NestFacts] = {}

    def facts(self, tables: tuple[Table, ...]) -> NestFacts:
        """What is known of the nest; ``tables`` has an entry for each of its tables, in order."""
        if not tables:
            return self._plain
        found = self._facts.get(tables)
        if found is None:
            made = NestFacts(self.outline, tables)
            found = remember(self._facts, tables, made, PLACES)
        return found


class _ByValue:
    """A nest as a key; a hash of a nest looks at every node, so it is worked out once."""

    __slots__ = ("_hash", "_nest")

    def __init__(self, nest: Nest) -> None:
        self._nest = nest
        self._hash = hash(nest)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByValue) and self._nest == other._nest


_BY_IDENTITY: Final[dict[int, tuple[Nest, KnownNest]]] = {}
_BY_VALUE: Final[dict[_ByValue, KnownNest]] = {}


def known_nest(nest: Nest) -> KnownNest:
    """The nest as it is remembered, whatever object it is."""
    found = _BY_IDENTITY.get(id(nest))
    if found is not None and found[0] is nest:
        return found[1]
    value = _ByValue(nest)
    known = _BY_VALUE.get(value)
    if known is None:
        known = remember(_BY_VALUE, value, KnownNest(nest), NESTS)
    return remember(_BY_IDENTITY, id(nest), (nest, known), NESTS)[1]


def per_nest(function: Callable[[Nest], _Value]) -> Callable[[Nest], _Value]:
    """Remember a function of the nest alone; its results hold no positions in the text."""

    @wraps(function)
    def remembered(nest: Nest) -> _Value:
        figures = known_nest(nest).figures
        if function not in figures:
            figures[function] = function(nest)
        return figures[function]  # type: ignore[return-value]  # what this function gave

    return remembered


def forget() -> None:
    """Forget all nests; the next questions cost what first questions cost."""
    _BY_IDENTITY.clear()
    _BY_VALUE.clear()
