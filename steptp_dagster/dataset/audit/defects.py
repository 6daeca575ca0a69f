"""A finding of an audit, and how many of one kind are kept apart."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

#: Kind -> what it means and what to do about it.
KINDS: Final[dict[str, str]] = {
    "unreadable-file": "A finished file is cut short or no Parquet; `steptp build` makes it again.",
    "other-columns": "A finished file has columns of other code; `steptp build` makes it again.",
    "changed-file": "A finished file was changed after its stage wrote it; a build makes it again.",
    "missing-file": "A stage writes files together, and one is gone; a build makes it again.",
    "schema": "A row does not fit its table's schema; remove the file, then build.",
    "unknown-file": "A file that no stage writes; move it elsewhere.",
    "unknown-table": "A table of the DuckDB file that no build makes.",
    "unfinished": "Batches of a build that was stopped; `steptp build` goes on from them.",
    "wrong-id": "An id is not the digest of what the row holds: the row was changed; remove "
    "the file, then build.",
    "unparsable": "Text that does not parse, or is not in canonical form; remove the file, then "
    "build.",
    "wrong-measure": "A number that the program's text does not give; remove the file, then build.",
    "wrong-answer": "A record shows something else than its step; remove its file, then build.",
    "unknown-strategy": "A step of a strategy that is not registered.",
    "outdated-strategy": "A step of another version of its strategy; a build makes it again.",
    "outdated": "Made by other code than today's; `steptp build` makes it again.",
    "not-derived": "Records, reports or statistics that the tables they are made from do not give; "
    "remove the file, then build.",
    "disagreement": "Two tables, or two columns, say different things of the same pair; remove "
    "their files, then build.",
    "no-lineage": "A row that no run made: its unit has no lineage.",
    "no-run": "Lineage names a run that no table knows.",
    "references": "A row names an id that does not exist.",
    "ids_unique": "An id names several rows.",
    "no_wrong_pair": "A record shows a step that was rejected or never verified.",
    "splits_disjoint": "A family or a program structure stands in two splits.",
    "records_have_lineage": "A record leads to no source program or run.",
    "grounding": "A record's reasoning makes claims that the IR does not bear out.",
    "zoo": "The verifier accepted a wrong pair, refused a right one, or was not tried.",
    "integrity": "Another check of `dataset/integrity.py` finds rows.",
    "warehouse": "The DuckDB file is missing, unreadable, or was made from other stage files.",
    "warehouse-rows": "The DuckDB file has other rows or views than the stage files give; "
    "remove it, then build.",
    "export": "The export folder is not what the warehouse gives; remove it, then build.",
}
#: Kinds that tell of unfinished or superfluous things and not of wrong ones.
NOTES: Final = frozenset({"unfinished", "unknown-file", "unknown-table"})


@dataclass(frozen=True, slots=True)
class Defect:
    """One finding: its kind (a key of ``KINDS``), the file or table, the row, what was found."""

    kind: str
    where: str
    id: str
    message: str

    @property
    def grave(self) -> bool:
        """Whether the data set must not be used with it."""
        return self.kind not in NOTES

    def to_json(self) -> dict[str, str | bool]:
        """As plain values."""
        return {**asdict(self), "grave": self.grave, "meaning": KINDS[self.kind]}


def first_of(found: Iterable[Defect], most: int) -> Iterator[Defect]:
    """At most ``most`` of each kind and place, then one line that says how many more."""
    counted: dict[tuple[str, str], int] = {}
    for defect in found:
        key = (defect.kind, defect.where)
        counted[key] = counted.get(key, 0) + 1
        if counted[key] <= most:
            yield defect
    for (kind, where), count in counted.items():
        if count > most:
            yield Defect(kind, where, "", f"and {count - most} more")
