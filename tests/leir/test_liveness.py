"""Which equations are dead: by element, by order, through loops and subscripts."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.liveness import dead_equations
from steptp_dagster.leir.walk import Path

HEADER = "# input A f32[4]\n# output E f32[4]\n"
CASES: list[tuple[str, tuple[Path, ...]]] = [
    ("B^{4}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx};];", ()),
    # read by something dead
    (
        "B^{4}_{tx=0}[C^{f32,g}_{tx}=A^{f32,g}_{tx};D^{f32,g}_{tx}=C^{f32,g}_{tx};"
        "E^{f32,g}_{tx}=1;];",
        ((0, 0), (0, 1)),
    ),
    # written after its last reader
    (
        "B^{4}_{tx=0}[C^{f32,g}_{tx}=A^{f32,g}_{tx};];B^{4}_{tx=0}[E^{f32,g}_{tx}=C^{f32,g}_{tx};];"
        "B^{4}_{tx=0}[C^{f32,g}_{tx}=2;];",
        ((2, 0),),
    ),
    # written after its reader, but read by the next iteration
    ("L^{4}_{a=0}[E^{f32,g}_{a}=if_then_else(a<1,0,C^{f32,g});C^{f32,g}=A^{f32,g}_{a};];", ()),
    # other elements are read
    (
        "B^{2}_{tx=0}[C^{f32,g}_{tx*2}=1;C^{f32,g}_{tx*2+1}=2;];"
        "B^{4}_{tx=0}[E^{f32,g}_{tx}=C^{f32,g}_{tx//2*2};];",
        ((0, 1),),
    ),
    # a table in a subscript of the target
    (
        "B^{4}_{tx=0}[D^{i64,g}_{tx}=3-tx;];B^{4}_{tx=0}[E^{f32,g}_{tx}=0;];"
        "L^{4}_{a=0}[E^{f32,g}_{D^{i64,g}_{a}}=A^{f32,g}_{a};];",
        (),
    ),
]


@pytest.mark.parametrize(("text", "dead"), CASES)
def test_dead_equations(text: str, dead: tuple[Path, ...]) -> None:
    assert dead_equations(read(HEADER + text).signed) == dead
