"""Injectors: the outputs stay, the code is really dead or repeated, and strategies take it out."""

import pytest

from steptp_dagster.dataset.injectors import INJECTORS, with_dead_code, with_repeated_code
from steptp_dagster.dataset.inlined import inlined
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.liveness import dead_equations
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs, random_program

SOFTMAX = read(
    """# input A f32[3,5]
# output D f32[3,5]
B^{3}_{tx=0}L^{5}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},A^{f32,g}_{tx,a});];
B^{3}_{tx=0}L^{5}_{a=0}[E^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
B^{3}_{tx=0}L^{5}_{a=0}[S^{f32,g}_{tx}=S^{f32,g}_{tx}+E^{f32,g}_{tx,a};];
B^{3}_{tx=0}L^{5}_{a=0}[D^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}/S^{f32,g}_{tx};];
"""
).signed
VECTOR = read(
    "# input A f16[7]\n# output D f16[7]\nB^{7}_{tx=0}[D^{f16,g}_{tx}=exp(A^{f16,g}_{tx});];\n"
).signed


def same_outputs(before: SignedProgram, after: SignedProgram, numerics: str = "exact") -> None:
    assert check(after) == ()
    assert_equal_outputs(before, after, random_inputs(before, 0), numerics)


@pytest.mark.parametrize("program", [SOFTMAX, VECTOR], ids=["softmax", "vector"])
@pytest.mark.parametrize("seed", range(6))
def test_dead_code_is_dead_and_goes_in_one_step(program: SignedProgram, seed: int) -> None:
    injected = with_dead_code(program, seed)
    assert injected is not None
    same_outputs(program, injected)
    assert len(injected.program.nests) == len(program.program.nests) + 2
    assert len(dead_equations(injected)) == 2
    chosen = strategy("dead_code_elimination")
    (site,) = chosen.survey(injected).sites
    step = take(chosen, injected, site)
    assert isinstance(step, Step)
    assert step.after == program


@pytest.mark.parametrize("seed", range(6))
def test_repeated_code_is_found_by_the_elimination(seed: int) -> None:
    injected = with_repeated_code(SOFTMAX, seed)
    assert injected is not None
    same_outputs(SOFTMAX, injected)
    assert dead_equations(injected) == ()
    assert len(injected.program.nests) == len(SOFTMAX.program.nests) + 1
    found = strategy("common_subexpression_elimination").survey(injected).sites
    assert len(found) > len(strategy("common_subexpression_elimination").survey(SOFTMAX).sites)


def test_nothing_to_repeat() -> None:
    assert with_repeated_code(VECTOR, 0) is None


def test_the_seed_decides() -> None:
    made = [to_text(p.program) for s in range(8) if (p := with_dead_code(SOFTMAX, s))]
    again = [to_text(p.program) for s in range(8) if (p := with_dead_code(SOFTMAX, s))]
    assert made == again
    assert len(set(made)) > 2


def test_a_formula_becomes_one_equation() -> None:
    program = read(
        """# input A f32[7]
# input C f32[7]
# output D f32[7]
B^{7}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}+C^{f32,g}_{tx};];
B^{7}_{tx=0}[F^{f32,g}_{tx}=E^{f32,g}_{tx}*2;];
B^{7}_{tx=0}[D^{f32,g}_{tx}=F^{f32,g}_{tx}-E^{f32,g}_{tx};];
"""
    ).signed
    found = inlined(program, 0)
    assert found is not None
    assert to_text(found.program) == (
        "B^{7}_{tx=0}[D^{f32,g}_{tx}=(A^{f32,g}_{tx}+C^{f32,g}_{tx})*2"
        "-(A^{f32,g}_{tx}+C^{f32,g}_{tx});];"
    )
    same_outputs(program, found)
    assert inlined(found, 0) is None


@pytest.mark.parametrize("form", INJECTORS)
def test_random_programs_keep_their_outputs(form: str) -> None:
    made = 0
    for seed in range(60):
        program = random_program(seed)
        injected = INJECTORS[form](program, seed)
        if injected is not None:
            # Inlining in half precision leaves out a rounding.
            same_outputs(program, injected, "reassociated" if form == "inlined" else "exact")
            made += 1
    assert made > 0
