"""Leakage: is a program of evaluation, or a near copy of one, in the training split?

Two workloads are the same where programs of theirs have one structural hash (names and the order
of operands aside), and near copies where sources of theirs share at least the part ``near`` of
their nests (``likeness``). ``splits`` keeps both together; this module says so afterwards, from
what the records show, and compares the training split with programs from outside.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from steptp_dagster.dataset.candidates import Selection, Tables
from steptp_dagster.dataset.likeness import Likeness, nearest, nest_forms, share
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.splits import Member
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.signature import SignedProgram


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload: structures of all its programs, and the different forms of its sources."""

    program: str
    family: str
    structures: frozenset[str]
    forms: tuple[Counter[str], ...]


@dataclass(frozen=True, slots=True)
class Match:
    """What of the training split is most like a program from outside.

    ``same`` names the workloads that have its very structure.
    """

    same: tuple[str, ...]
    nearest: Likeness | None
    near: bool

    @property
    def leaks(self) -> bool:
        """Whether the training split has the program or a near copy of it."""
        return bool(self.same) or self.near


def workloads(selection: Selection, tables: Tables) -> tuple[Workload, ...]:
    """The workloads that have candidates, by name."""
    families: dict[str, str] = {}
    structures: dict[str, set[str]] = {}
    sources: dict[str, str] = {}
    for c in selection.candidates:
        families[c.origin.program] = c.origin.family
        sources[c.origin.source_id] = c.origin.program
        found = structures.setdefault(c.origin.program, set())
        found.update((c.structural_hash, c.result_structural_hash))
    return tuple(
        Workload(name, families[name], frozenset(structures[name]), forms)
        for name, forms in source_forms(sources, tables).items()
    )


def source_forms(sources: Mapping[str, str], tables: Tables) -> dict[str, tuple[Counter[str], ...]]:
    """The different forms of the translated sources of each workload, from source id -> workload.

    By name; forms in the order of the sources' ids.
    """
    texts = {r["leir_id"]: (r["signature"], r["text"]) for r in tables.leir_programs.to_dicts()}
    translated = tables.translations.sort("source_id").select("source_id", "leir_id").rows()
    known: dict[str, Counter[str]] = {}
    found: dict[str, dict[tuple[tuple[str, int], ...], Counter[str]]] = {
        name: {} for name in sorted(set(sources.values()))
    }
    for source, leir in translated:
        if source in sources and leir is not None:
            if leir not in known:
                known[leir] = nest_forms(signed_of(*texts[leir]))
            forms = known[leir]
            found[sources[source]].setdefault(tuple(sorted(forms.items())), forms)
    return {name: tuple(forms.values()) for name, forms in found.items()}


def members(workloads: Sequence[Workload], near: float) -> list[Member]:
    """What must stay together: near copies have a tie of their own, beside shared structures."""
    ties = {w.program: set(w.structures) for w in workloads}
    for left, right in combinations(workloads, 2):
        if any(share(a, b) >= near for a in left.forms for b in right.forms):
            tie = f"near copies {left.program} {right.program}"
            ties[left.program].add(tie)
            ties[right.program].add(tie)
    return [Member(w.program, w.family, frozenset(ties[w.program])) for w in workloads]


def leakage(
    workloads: Sequence[Workload], split_of: Mapping[str, str], near: float
) -> tuple[Row, ...]:
    """Rows of the table ``leakage``: every workload outside the training split, by name."""
    training = {w.program: w.forms for w in workloads if split_of[w.program] == "train"}
    known = frozenset().union(*(w.structures for w in workloads if w.program in training))
    rows = []
    for workload in sorted(workloads, key=lambda w: w.program):
        if workload.program in training:
            continue
        found = nearest(workload.forms, training)
        rows.append(
            {
                "program": workload.program,
                "split": split_of[workload.program],
                "structures": len(workload.structures),
                "shared": len(workload.structures & known),
                "nearest": found.name if found is not None and found.share > 0 else None,
                "likeness": found.share if found is not None else 0.0,
                "near": found is not None and found.share >= near,
            }
        )
    return tuple(rows)


def compared(problem: SignedProgram, training: Iterable[Workload], near: float) -> Match:
    """What of the training split is most like a program from outside."""
    workloads = list(training)
    structure = structural_hash(problem)
    found = nearest([nest_forms(problem)], {w.program: w.forms for w in workloads})
    return Match(
        same=tuple(sorted(w.program for w in workloads if structure in w.structures)),
        nearest=found,
        near=found is not None and found.share >= near,
    )
