"""Programs with errors: valid, of the same kind, and off by what their types allow."""

import numpy as np

from steptp_dagster.dataset.perturbation import perturbed
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.validity import check
from steptp_dagster.lowering import run

SUM = read(
    "# input A f32[3,5]\n# input C i64[3] in 0..4\n# output E f32[3]\n"
    "B^{3}_{tx=0}L^{5}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a};];"
    "B^{3}_{tx=0}[E^{f32,g}_{tx}=D^{f32,g}_{tx}*A^{f32,g}_{tx,C^{i64,g}_{tx}}-1;];"
).signed
DATA = {
    "A": np.arange(1.0, 16.0).reshape(3, 5),
    "C": np.array([0, 4, 2]),
}


def test_the_program_stays_valid_and_its_signature_the_same() -> None:
    moved = perturbed(SUM)
    assert check(moved) == ()
    assert moved.signature == SUM.signature
    assert moved != SUM
    assert perturbed(SUM) == moved
    assert perturbed(SUM, 1.0) != moved


def test_results_move_by_a_few_epsilons() -> None:
    exact = run(SUM, DATA, precision="float64")["E"]
    moves = [
        np.abs(run(perturbed(SUM, shift), DATA, precision="float64")["E"] / exact - 1.0)
        for shift in (0.0, 1.0, 2.0)
    ]
    epsilon = 2.0**-23
    assert 0.05 * epsilon < min(m.max() for m in moves)
    assert max(m.max() for m in moves) < 8 * epsilon


def test_selections_comparisons_and_integers_stay_exact() -> None:
    program = read(
        "# input A f32[4]\n# output C i64[4]\n# output D f32[4]\n"
        "B^{4}_{tx=0}[C^{i64,g}_{tx}=if_then_else(A^{f32,g}_{tx}>0,tx+1,0);];"
        "B^{4}_{tx=0}[D^{f32,g}_{tx}=max(A^{f32,g}_{tx},0);];"
    ).signed
    data = {"A": np.array([-1.0, 0.0, 1.0, 2.0])}
    moved, exact = (run(p, data, precision="float64") for p in (perturbed(program), program))
    assert moved["C"].tolist() == exact["C"].tolist() == [0, 0, 3, 4]
    assert moved["D"][:2].tolist() == [0.0, 0.0]
    assert moved["D"][2:].tolist() != exact["D"][2:].tolist()
