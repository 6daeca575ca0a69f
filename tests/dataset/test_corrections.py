"""What a wrong candidate lacks, on mistakes put into programs."""

import pytest

from steptp_dagster.dataset.corrections import correction

HEAD = "B^{4}_{tx=0}L^{8}_{a=0}"
SUM = "D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a}"
LAST = "E^{f32,g}_{tx}=D^{f32,g}_{tx}/8.0"
RIGHT = f"{HEAD}[{SUM};];B^{{4}}_{{tx=0}}[{LAST};];"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (RIGHT.replace("/8.0", "/9.0"), LAST),
        (RIGHT.replace("D^{f32,g}_{tx}+", ""), SUM),
        (RIGHT.replace("L^{8}", "L^{7}"), HEAD),
        (RIGHT.replace("tx,a};", "tx,a}:a<7;"), SUM),
        (RIGHT.replace(f"{LAST};", ""), LAST),
        (RIGHT.replace(f"{LAST};", f"{LAST};{LAST};"), None),
        (RIGHT.replace("D^{f32,g}", "D^{f16,g}"), None),
        (f"B^{{4}}_{{tx=0}}[{LAST};];{HEAD}[{SUM};];", None),
        (RIGHT, None),
    ],
)
def test_one_place_is_told(wrong: str, told: str | None) -> None:
    assert correction(RIGHT, wrong) == told
