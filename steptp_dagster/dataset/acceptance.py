"""Which steps are accepted, and which candidates may be called wrong: one rule for all stages."""

from typing import Final

import polars as pl

from steptp_dagster.dataset.schemas import Row
from steptp_dagster.verify import reasons

#: The target without whose acceptance no step counts: it is everywhere, and executes.
DECISIVE: Final = "llvm"
#: Reasons for which a record may call a candidate wrong: what it computes or how it is written.
#: Not the machine's, not too little evidence, no target limit (its values may be right), and no
#: loss of accuracy, of which right programs have come near the bound.
TOLD: Final = (
    reasons.SIGNATURE_CHANGED,
    reasons.INVALID,
    reasons.INPUT_OVERWRITTEN,
    reasons.OUT_OF_BOUNDS,
    reasons.INTEGERS_DIFFER,
    reasons.MATHEMATICS,
    reasons.INFINITY_LOST,
    reasons.NEW_NON_FINITE,
)


def accepted_by_target(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One row per step of ``gpu_verification``: ``step_id, equal_pass, equality``.

    ``equal_pass`` where the decisive target accepted it and none rejected it. A program that was
    only built (null) is neither accepted nor rejected; ``equality`` is the weakest seen.
    """
    decisive = pl.col("equal_pass").filter(pl.col("target") == DECISIVE)
    return verdicts.group_by("step_id").agg(
        decisive.any() & pl.col("equal_pass").all(),
        pl.col("equality").filter(pl.col("equality") != "built").sort().last(),
    )


def accepted_steps(steps: pl.DataFrame, verdicts: pl.DataFrame) -> dict[str, Row]:
    """Grounded steps that are accepted, and every step before them, by id."""
    fine = set(accepted_by_target(verdicts).filter("equal_pass")["step_id"].to_list())
    accepted: dict[str, Row] = {}
    for step in steps.sort("step_depth", "step_id").to_dicts():
        before = step["parent_step_id"]
        sound = step["step_id"] in fine and not step["mismatches"]
        if sound and (before is None or before in accepted):
            accepted[step["step_id"]] = step
    return accepted
