"""Layouts: each one that writes new subscripts is judged by itself."""

from steptp_dagster.leir.fileform import read
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, steps

#: Four lanes of 8 bytes are more than a vector holds, which the program itself may do.
TOO_WIDE = """# output D i64[8]
L^{2}_{c=0}V^{4}_{a=0}[C^{i64,g}_{c*4+a}=c+1;];
L^{8}_{a=0}[D^{i64,g}_{a}=C^{i64,g}_{a};];
"""


def test_a_split_that_is_refused_does_not_hide_behind_another_one() -> None:
    # By 4, C_{c*4+a} becomes C_{c,a} and the lanes stay in sight; by 2 they do not.
    chosen, program = strategy("set_storage_layout"), read(TOO_WIDE).signed
    found = chosen.survey(program)
    assert [site.describe() for site in found.sites] == [
        "statement 1.1: layout=split, numbers=(0, 2), tensor=C"
    ]
    assert "storage-too-large" in [refusal.reason for refusal in found.refusals]
    assert all(isinstance(step, Step) for step in steps(chosen, program))
