"""partially_equivalent_then_correct on padded convolutions of many geometries."""

import random

import pytest

from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs

PET = strategy("partially_equivalent_then_correct")


def _convolutions(n: int, before: int, behind: int, taps: int, steps: tuple[int, int]) -> str:
    """Two convolutions of rows of ``n`` pixels with zeros around, as LEIR; "" where none fits."""
    stride, dilation = steps
    padded = n + before + behind
    outputs = (padded - (taps - 1) * dilation - 1) // stride + 1
    if padded <= (taps - 1) * dilation:
        return ""
    pixel = f"a-{before}" if before else "a"
    inside = f"{before}<=a<{before + n}" if before else f"a<{n}"
    at = ("a" if stride == 1 else f"a*{stride}") + "+" + ("c" if dilation == 1 else f"c*{dilation}")
    header = f"""
# input A f32[2,{n}]
# input C f32[2,{n}]
# param K f32[{taps}]
# output D f32[2,{outputs}]
# output E f32[2,{outputs}]
"""
    nests = [
        f"B^{{2}}_{{tx=0}}L^{{{padded}}}_{{a=0}}[{copy}^{{f32,g}}_{{tx,a}}="
        f"if_then_else({inside},{image}^{{f32,g}}_{{tx,{pixel}}},0);];"
        f"B^{{2}}_{{tx=0}}L^{{{outputs}}}_{{a=0}}L^{{{taps}}}_{{c=0}}[{out}^{{f32,g}}_{{tx,a}}="
        f"{out}^{{f32,g}}_{{tx,a}}+{copy}^{{f32,g}}_{{tx,{at}}}*K^{{f32,g}}_{{c}};];"
        for image, copy, out in (("A", "F", "D"), ("C", "G", "E"))
    ]
    return header + "".join(nests)


def _program(seed: int) -> SignedProgram | None:
    rng = random.Random(f"convolutions {seed}")
    before = rng.choice((0, 1, 2, 3))
    text = _convolutions(
        rng.choice((1, 2, 4, 5, 6, 8)),
        before,
        rng.choice((0, 1, 2, 3)),
        rng.choice((1, 2, 3, 5)),
        (rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2))),
    )
    return read(text).signed if text else None


def test_every_geometry_is_put_right() -> None:
    taken = refused = 0
    for seed in range(40):
        program = _program(seed)
        if program is None or check(program):
            continue
        survey = PET.survey(program)
        refused += any(r.reason == "seam-not-aligned" for r in survey.refusals)
        for site in survey.sites:
            step = take(PET, program, site)
            assert isinstance(step, Step), step
            assert_equal_outputs(program, step.after, random_inputs(program, seed), "exact")
            taken += 1
    assert taken > 10
    assert refused > 0


@pytest.mark.parametrize(
    ("n", "before", "behind", "taps", "corrections"),
    [(4, 1, 1, 3, 2), (4, 2, 0, 3, 1), (4, 0, 2, 3, 1), (4, 2, 2, 5, 2)],
)
def test_only_windows_over_the_seam_are_recomputed(
    n: int, before: int, behind: int, taps: int, corrections: int
) -> None:
    program = read(_convolutions(n, before, behind, taps, (1, 1))).signed
    after = PET.apply(program, PET.survey(program).sites[0])
    nests = after.program.nests
    assert len(nests) == 4 + corrections
    extents = [nest.loops[1].extent for nest in nests[4:] if isinstance(nest, Nest)]
    assert extents == [zeros for zeros in (behind, before) if zeros]
