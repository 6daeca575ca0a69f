"""Which steps count as accepted, and what makes their strategies' versions."""

import polars as pl
import pytest

from steptp_dagster.dataset.acceptance import accepted_by_target
from steptp_dagster.dataset.versions import _homes, _used
from steptp_dagster.strategies.registry import strategies

Verdict = tuple[str, bool | None, str]
LLVM: Verdict = ("llvm", True, "exact")


@pytest.mark.parametrize(
    ("verdicts", "accepted", "equality"),
    [
        ([LLVM], True, "exact"),
        ([("llvm", False, "rejected")], False, "rejected"),
        ([LLVM, ("cuda:sm_90", None, "built")], True, "exact"),
        ([LLVM, ("cuda:sm_90", True, "reassociated")], True, "reassociated"),
        ([LLVM, ("cuda:sm_90", False, "rejected")], False, "rejected"),
        ([("cuda:sm_90", True, "exact")], False, "exact"),
        ([("cuda:sm_90", None, "built")], False, None),
    ],
)
def test_llvm_accepts_and_nobody_rejects(
    verdicts: list[Verdict], accepted: bool, equality: str
) -> None:
    rows = [{"step_id": "a", **dict(zip(COLUMNS, v, strict=True))} for v in verdicts]
    frame = pl.DataFrame(rows, schema={"step_id": pl.String, **COLUMNS})
    (found,) = accepted_by_target(frame).to_dicts()
    assert (found["equal_pass"], found["equality"]) == (accepted, equality)


COLUMNS = {"target": pl.String(), "equal_pass": pl.Boolean(), "equality": pl.String()}


def test_a_strategy_depends_on_those_that_it_imports() -> None:
    homes = _homes(tuple(strategies()))
    split, factor = (
        homes[name] for name in ("tensor_split_to_decouple_operators", "reduction_factorization")
    )
    every = set(homes.values())
    assert _used(split, every) == {split, factor}
    assert _used(factor, every) == {factor}
