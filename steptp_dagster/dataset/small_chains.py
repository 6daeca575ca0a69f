"""The steps of large programs repeated on their siblings, chain by chain, from the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import loads
from typing import Any, Final

import polars as pl

from steptp_dagster.dataset.ids import Json, canonical_json
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.siblings import SmallStep, small_steps
from steptp_dagster.dataset.structure import NEEDED
from steptp_dagster.dataset.versions import strategy_version
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.registry import strategies


@dataclass(frozen=True, slots=True)
class SmallPair:
    """Two programs of a sibling: its name (id of its source program), and what it is, as JSON."""

    name: str
    before: SignedProgram
    after: SignedProgram
    told: str


@dataclass(slots=True)
class SmallChains:
    """Finds for steps of large programs the same steps of their siblings.

    ``siblings`` has, by source id, shapes of siblings by the id of their LEIR program; sources
    that are small enough to run have none.
    """

    siblings: Mapping[str, Mapping[str, str]]
    steps: Mapping[str, Row]
    by_pair: Mapping[tuple[str, str], Sequence[str]]
    programs: Mapping[str, SignedProgram]
    _found: dict[str, dict[str, SmallStep] | str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        translations: pl.DataFrame,
        steps: pl.DataFrame,
        programs: Mapping[str, SignedProgram],
    ) -> "SmallChains":
        """From the rows of one workload."""
        siblings = siblings_of(translations)
        chosen = steps.filter(pl.col("source_id").is_in(sorted(siblings))).sort("step_id")
        rows = {row["step_id"]: row for row in chosen.to_dicts()}
        by_pair: dict[tuple[str, str], list[str]] = {}
        for name, row in rows.items():
            by_pair.setdefault((row["parent_leir_id"], row["result_leir_id"]), []).append(name)
        return cls(siblings, rows, by_pair, programs)

    def stand_for(self, parent: str, result: str) -> bool:
        """Whether a pair is of a large source, so that siblings may stand for it."""
        return (parent, result) in self.by_pair

    def basis(self, parent: str, result: str) -> list[Json]:
        """All that the verdict of a pair rests on beside the pair, if siblings stand for it.

        Of each step from one program to the other: ``chain_basis``. Empty: the pair is not of a
        large source.
        """
        return [self.chain_basis(self._chain(s)) for s in self.by_pair.get((parent, result), ())]

    def chain_basis(self, chain: Sequence[Row]) -> Json:
        """What repeating steps on siblings rests on: the siblings, every step with its code.

        Nothing for steps of a source that is small enough to run. A step's id says where and with
        which parameters.
        """
        own = self.siblings.get(chain[0]["source_id"], {})
        known = strategies()
        steps = [
            (row["step_id"], strategy_version(row["strategy"]) if row["strategy"] in known else "")
            for row in chain
        ]
        return [list(own.items()), steps] if own else []

    def _chain(self, step: str) -> list[Row]:
        """The steps from the source to a step, itself included."""
        chain = [self.steps[step]]
        while (before := chain[0]["parent_step_id"]) is not None:
            chain.insert(0, self.steps[before])
        return chain

    def pairs(self, parent: str, result: str) -> tuple[SmallPair, ...] | str:
        """The pairs of siblings that stand for a pair; in words why there are none.

        Where several steps lead from one program to the other, the first that is found counts.
        """
        words = ""
        for name in self.by_pair.get((parent, result), ()):
            found = self.step(name)
            if not isinstance(found, str):
                own = self._own(self.steps[name])
                return tuple(
                    SmallPair(n, s.before, s.after, _told(own[n], s))
                    for n, s in list(found.items())[:NEEDED]
                )
            words = words or found
        return words or "no sibling is known"

    def ends(self, first: str, last: str) -> tuple[SmallPair, ...] | str:
        """The pairs of siblings that stand for a chain: before its first step, after its last."""
        begun, done = self.step(first), self.step(last)
        if isinstance(begun, str):
            return begun
        if isinstance(done, str):
            return done
        own = self._own(self.steps[first])
        names = [name for name in done if name in begun][:NEEDED]
        return tuple(
            SmallPair(n, begun[n].before, done[n].after, canonical_json({"shapes": loads(own[n])}))
            for n in names
        )

    def step(self, name: str) -> dict[str, SmallStep] | str:
        """A step on every sibling that it can be repeated on; or why on too few, in words."""
        if name not in self._found:
            self._found[name] = self._repeated(self.steps[name])
        return self._found[name]

    def _own(self, row: Row) -> Mapping[str, str]:
        return self.siblings[row["source_id"]]

    def _repeated(self, row: Row) -> dict[str, SmallStep] | str:
        chosen = strategies().get(row["strategy"])
        if chosen is None:
            return f"there is no strategy {row['strategy']} any more"
        before: dict[str, SignedProgram]
        if row["parent_step_id"] is None:
            before = {name: self.programs[name] for name in self._own(row)}
        else:
            earlier = self.step(row["parent_step_id"])
            if isinstance(earlier, str):
                return f"an earlier step: {earlier}"
            before = {name: step.after for name, step in earlier.items()}
        large = self.programs[row["parent_leir_id"]], self.programs[row["result_leir_id"]]
        path = tuple(loads(row["site"]))
        return small_steps(chosen, path, loads(row["parameters"]), large, before)


def siblings_of(translations: pl.DataFrame) -> dict[str, dict[str, str]]:
    """By the id of every source that is too large to run: its siblings, as ``SmallChains`` has."""
    return {
        row["source_id"]: {s["leir_id"]: s["shapes"] for s in row["siblings"]}
        for row in translations.filter(pl.col("siblings").list.len() > 0).to_dicts()
    }


def _told(shapes: str, step: SmallStep) -> str:
    parameters: dict[str, Any] = dict(step.site.parameters)
    return canonical_json({"shapes": loads(shapes), "parameters": parameters})


#: Of workloads whose programs all are small enough to run.
NO_SIBLINGS: Final = SmallChains({}, {}, {}, {})
