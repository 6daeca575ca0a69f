"""The steps of large programs repeated on their siblings, chain by chain, from the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import loads
from typing import Any, Final

import polars as pl

from steptp_dagster.dataset.ids import canonical_json
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.siblings import NEEDED, SmallStep, small_steps
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
    programs: dict[str, SignedProgram]
    _found: dict[str, dict[str, SmallStep] | str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        translations: pl.DataFrame,
        steps: pl.DataFrame,
        programs: dict[str, SignedProgram],
    ) -> "SmallChains":
        """From the rows of one workload."""
        siblings = {
            row["source_id"]: {s["leir_id"]: s["shapes"] for s in row["siblings"]}
            for row in translations.filter(pl.col("siblings").list.len() > 0).to_dicts()
        }
        chosen = steps.filter(pl.col("source_id").is_in(sorted(siblings))).sort("step_id")
        rows = {row["step_id"]: row for row in chosen.to_dicts()}
        by_pair: dict[tuple[str, str], list[str]] = {}
        for name, row in rows.items():
            by_pair.setdefault((row["parent_leir_id"], row["result_leir_id"]), []).append(name)
        return cls(siblings, rows, by_pair, programs)

    def names(self, parent: str, result: str) -> tuple[str, ...]:
        """The siblings that a pair could be judged on; none: it is not of a large source."""
        steps = self.by_pair.get((parent, result), ())
        return tuple(dict.fromkeys(n for s in steps for n in self._own(self.steps[s])))

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


def _told(shapes: str, step: SmallStep) -> str:
    parameters: dict[str, Any] = dict(step.site.parameters)
    return canonical_json({"shapes": loads(shapes), "parameters": parameters})


#: Of workloads whose programs all are small enough to run.
NO_SIBLINGS: Final = SmallChains({}, {}, {}, {})
