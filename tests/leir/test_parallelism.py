"""Launches, parallel instances and barriers of small programs."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.parallelism import Parallelism, parallelism

HEADER = "# input A f32[8,8]\n# output D f32[8,8]\n"
BODY = "[D^{f32,g}_{0,0}=A^{f32,g}_{0,0};]"
SYNCED = (
    "B^{4}_{bx=0}[L^{3}_{a=0}[B^{8}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{bx,tx};];"
    "B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=S^{f32,s}_{7-tx};];];];"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"L^{{8}}_{{a=0}}{BODY};", Parallelism(1, 1, 0)),
        (f"B^{{4}}_{{bx=0}}B^{{8}}_{{tx=0}}L^{{2}}_{{a=0}}{BODY};", Parallelism(1, 32, 0)),
        (f"L^{{5}}_{{a=0}}B^{{8}}_{{tx=0}}{BODY};", Parallelism(5, 8, 0)),
        (f"L^{{5}}_{{a=0}}[L^{{2}}_{{c=0}}B^{{8}}_{{tx=0}}{BODY};];", Parallelism(10, 8, 0)),
        (f"P^{{6}}_{{a=0}}L^{{2}}_{{c=0}}{BODY};", Parallelism(1, 6, 0)),
        (SYNCED, Parallelism(1, 32, 3)),
        (f"L^{{2}}_{{c=0}}[{SYNCED}];", Parallelism(2, 32, 6)),
        (f"B^{{2}}_{{tx=0}}{BODY};B^{{3}}_{{tx=0}}{BODY};", Parallelism(2, 3, 0)),
    ],
)
def test_figures(text: str, expected: Parallelism) -> None:
    assert parallelism(read(f"{HEADER}{text}\n").signed.program) == expected
