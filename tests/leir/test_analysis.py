"""The analyses as services: kept per program, robust on invalid programs, same answers always."""

import pytest

from steptp_dagster.leir import dependence
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.dependence import Answer
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.walk import all_nests, equations
from tests.support.corpus import INVALID, VALID, Case, long_form
from tests.support.programs import random_mutant


def answers(signed: SignedProgram) -> list[object]:
    """Everything that one may ask about a program."""
    found: list[object] = [infer_shapes(signed), classify(signed), check(signed)]
    found.append(check_limits(signed))
    nests = list(all_nests(signed.program))
    for path, nest in nests:
        names = [loop.index for loop in nest.loops]
        if len(set(names)) == len(names):
            found += [dependence.carried(signed, path, name) for name in names]
            found.append(dependence.can_permute(signed, path, names[::-1]))
        if len(path) > 1 and isinstance(nest, Nest) and path[-1] > 0:
            found.append(dependence.can_move(signed, path, (*path[:-1], 0)))
    return found


@pytest.mark.parametrize("case", INVALID, ids=lambda c: c.name)
def test_invalid_programs_raise_nothing(case: Case) -> None:
    found = answers(case.signed)
    assert set(classify(case.signed)) == {e.path for e in equations(case.signed.program)}
    assert found == answers(read(case.text).signed)


def test_mutants_raise_nothing_and_answers_do_not_depend_on_order() -> None:
    for seed in range(60):
        forward = answers(random_mutant(seed))
        other = random_mutant(seed)
        check_limits(other)
        for path, nest in reversed(list(all_nests(other.program))):
            for loop in reversed(nest.loops):
                dependence.carried(other, path, loop.index)
        assert answers(other) == forward


def test_one_program_is_analysed_once() -> None:
    signed = VALID[0].signed
    assert Analysis.of(signed) is Analysis.of(signed)
    copy = SignedProgram(signed.program, signed.signature)
    assert Analysis.of(copy) is not Analysis.of(signed)


HEADER = "input A f32[8,8]; output D f32[8,8]; output E f32[8]"


def signed(short: str, temps: str = "") -> SignedProgram:
    return read(long_form(HEADER, short, temps)).signed


def test_reductions_are_told_apart() -> None:
    program = signed("L^8_a L^8_c[E_{a}=E_{a}+A_{a,c};];")
    outer, inner = (dependence.carried(program, (0,), name) for name in "ac")
    assert (outer.answer, outer.reduction) == (Answer.NONE, Answer.NONE)
    assert (inner.answer, inner.reduction) == (Answer.NONE, Answer.DEPENDENCE)
    assert {c.tensor for c in inner.conflicts} == {"E"}


def test_interchange_verdicts() -> None:
    def verdict(short: str) -> str:
        return dependence.can_interchange(signed(short), (0,), "a", "c")

    assert verdict("L^8_a L^8_c[D_{a,c}=A_{c,a};];") == "exact"
    assert verdict("L^8_a L^8_c[E_{a}=E_{a}+A_{a,c};];") == "exact"
    assert verdict("L^8_a L^8_c[K=K+A_{a,c};];") == "reassociated"
    assert verdict("L^8_a L^8_c[K=max(K,A_{a,c});];") == "exact"
    assert verdict("L^8_a L^8_c[K=A_{a,c};];") == "illegal"
    skewed = "if_then_else(a<1|c>6,0,D_{a-1,c+1})"
    assert verdict(f"L^8_a L^8_c[D_{{a,c}}={skewed};];") == "illegal"
    straight = "if_then_else(a<1|c<1,0,D_{a-1,c-1})"
    assert verdict(f"L^8_a L^8_c[D_{{a,c}}={straight};];") == "exact"


def test_fusion_answers() -> None:
    def answer(first: str, second: str, common: int) -> Answer:
        return dependence.can_fuse(signed(first + second), (0,), (1,), common)

    make = "L^8_a L^8_c[X_{a,c}=A_{a,c};];"
    assert answer(make, "L^8_a L^8_c[D_{a,c}=X_{a,c};];", 2) is Answer.NONE
    assert answer(make, "L^8_a L^8_c[D_{a,c}=X_{c,a};];", 2) is Answer.DEPENDENCE
    assert answer(make, "L^8_a L^8_c[D_{a,c}=X_{a,7-c};];", 1) is Answer.NONE
    assert answer(make, "L^8_a L^8_c[D_{a,c}=X_{a,7-c};];", 2) is Answer.DEPENDENCE
    total = "L^8_a L^8_c[X_{a}=X_{a}+A_{a,c};];"
    assert answer(total, "L^8_f L^8_g[D_{f,g}=X_{f};];", 1) is Answer.NONE
    assert answer(total, "L^8_f L^8_g[D_{f,g}=X_{f};];", 2) is Answer.DEPENDENCE
    overwrite = "L^8_a[E_{a}=X_{a};];L^8_a[X_{7-a}=0;];"
    assert dependence.can_fuse(signed(total + overwrite), (1,), (2,), 1) is Answer.DEPENDENCE


def test_fusion_and_moves_refuse_meaningless_questions() -> None:
    program = signed("L^8_a[E_{a}=1;];L^7_a[E_{a}=2;];")
    with pytest.raises(ValueError, match="differ"):
        dependence.can_fuse(program, (0,), (1,), 1)
    with pytest.raises(ValueError, match="siblings"):
        dependence.can_fuse(program, (1,), (0,), 1)
    with pytest.raises(ValueError, match="siblings"):
        dependence.can_move(program, (0,), (1, 0))
    with pytest.raises(ValueError, match="no order"):
        dependence.can_permute(program, (0,), ["a", "c"])


def test_moves_look_at_everything_in_between() -> None:
    program = signed("L^1_a[K=1;M=2;N=K;M=3;];")
    assert dependence.can_move(program, (0, 0), (0, 1)) is Answer.NONE
    assert dependence.can_move(program, (0, 0), (0, 2)) is Answer.DEPENDENCE
    assert dependence.can_move(program, (0, 1), (0, 3)) is Answer.DEPENDENCE
    assert dependence.can_move(program, (0, 2), (0, 3)) is Answer.NONE


def test_indirect_subscripts_are_unknown_unless_a_table_is_affine() -> None:
    header = "input A f32[8]; input Y i64[8] in 0..7; output D f32[16]"
    opaque = read(long_form(header, "L^8_a[D_{Y_{a}}=A_{a};];")).signed
    assert dependence.carried(opaque, (0,), "a").answer is Answer.UNKNOWN
    table = "L^8_a[Q_{a}=a*2;];L^8_a[D_{Q_{a}}=A_{a};];"
    affine = read(long_form(header, table, "Q i64 g")).signed
    assert dependence.carried(affine, (1,), "a").answer is Answer.NONE
    folded = read(long_form(header, table.replace("a*2", "a//2"), "Q i64 g")).signed
    assert dependence.carried(folded, (1,), "a").answer is Answer.DEPENDENCE
