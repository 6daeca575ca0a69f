"""Which steps count as accepted."""

import polars as pl
import pytest

from steptp_dagster.dataset.acceptance import accepted_by_target

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
