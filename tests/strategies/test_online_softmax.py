"""online_softmax on hard rows: leading -inf, masks, large values; and after other strategies."""

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.math.online_softmax import OnlineSoftmax
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step, take
from tests.support.numerics import TOLERANCE, normalised_difference
from tests.support.strategy_cases import all_cases

ROWS = 8
SOFTMAX = "exp({s}-{m})/{z}"
LOG_SOFTMAX = "{s}-{m}-log({z})"
NESTED_LOG_SOFTMAX = "{s}-({m}+log({z}))"


def _program(extent: int, dtype: str, norm: str, score: str = "{s}") -> SignedProgram:
    """A three-pass softmax over rows of ``extent`` elements."""
    raw = f"S^{{{dtype},g}}_{{tx,a}}"
    s = score.format(s=raw)
    m, z = f"M^{{{dtype},g}}_{{tx}}", f"Z^{{{dtype},g}}_{{tx}}"
    loops = f"B^{{{ROWS}}}_{{tx=0}}L^{{{extent}}}_{{a=0}}"
    value = norm.format(s=s, m=m, z=z)
    return read(
        f"# input S {dtype}[{ROWS},{extent}]\n"
        f"# output W {dtype}[{ROWS},{extent}]\n"
        f"{loops}[{m}=max({m},{s});];{loops}[{z}={z}+exp({s}-{m});];"
        f"{loops}[W^{{{dtype},g}}_{{tx,a}}={value};];"
    ).signed


def _hard_rows(extent: int, dtype: str) -> NDArray[np.generic]:
    """Rows: plain, first -inf, all but last -inf, last -inf, equal, large, very negative, mixed."""
    rows = np.random.default_rng(7).normal(size=(ROWS, extent))
    if extent > 1:
        rows[1, : (extent + 1) // 2] = -np.inf
        rows[2, :-1] = -np.inf
        rows[3, -1] = -np.inf
        rows[7, ::2] = -np.inf
    rows[4] = 3.25
    rows[5] *= 100
    rows[6] -= 1000
    return rows.astype({"f16": "float16", "f32": "float32", "f64": "float64"}[dtype])


def _steps(program: SignedProgram) -> list[Step]:
    found = OnlineSoftmax()
    taken = [take(found, program, site) for site in found.survey(program).sites]
    steps = [step for step in taken if isinstance(step, Step)]
    assert len(steps) == len(taken) > 0
    return steps


def _assert_same(step: Step, scores: NDArray[np.generic]) -> None:
    first = interpret(step.before, {"S": scores}, precision="float64")
    second = interpret(step.after, {"S": scores}, precision="float64")
    assert first.faults == second.faults == ()
    for name, value in first.outputs.items():
        assert normalised_difference(value, second.outputs[name]) <= TOLERANCE


@pytest.mark.parametrize("norm", [SOFTMAX, LOG_SOFTMAX, NESTED_LOG_SOFTMAX])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("extent", [1, 2, 7, 12])
def test_hard_rows(extent: int, dtype: str, norm: str) -> None:
    steps = _steps(_program(extent, dtype, norm))
    assert [step.site.text("form") for step in steps] == ["history", "rolling"]
    for step in steps:
        _assert_same(step, _hard_rows(extent, dtype))
        assert step.numerics == "reassociated"


@pytest.mark.parametrize(
    "score",
    ["{s}*0.125", "if_then_else(a<=tx,{s},-inf)", "if_then_else(tx<a,{s},-inf)", "{s}+{s}"],
)
def test_computed_scores(score: str) -> None:
    for step in _steps(_program(ROWS + 1, "f32", SOFTMAX, score)):
        _assert_same(step, _hard_rows(ROWS + 1, "f32"))


def test_a_fully_masked_row_is_nan_on_both_sides() -> None:
    scores = np.full((ROWS, 4), -np.inf, np.float32)
    for step in _steps(_program(4, "f32", SOFTMAX)):
        for program in (step.before, step.after):
            assert np.isnan(interpret(program, {"S": scores}).outputs["W"]).all()


def _shifted(extent: int, dtype: str) -> SignedProgram:
    """PyTorch's logsumexp: relative to the maximum, or to 0 where that is infinite."""
    m, i, z, w = (f"{name}^{{{dtype},g}}_{{tx}}" for name in "MIZW")
    s = f"S^{{{dtype},g}}_{{tx,a}}"
    loops = f"B^{{{ROWS}}}_{{tx=0}}L^{{{extent}}}_{{a=0}}"
    return read(
        f"# input S {dtype}[{ROWS},{extent}]\n# output W {dtype}[{ROWS}]\n"
        f"{loops}[{m}=max({m},{s});];B^{{{ROWS}}}_{{tx=0}}[{i}=if_then_else(abs({m})==inf,0,{m});];"
        f"{loops}[{z}={z}+exp({s}-{i});];B^{{{ROWS}}}_{{tx=0}}[{w}=log({z})+{i};];"
    ).signed


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("extent", [1, 2, 7])
def test_logsumexp_relative_to_finite_maxima(extent: int, dtype: str) -> None:
    """Rows of nothing but -inf, and infinite scores, keep their sums and logarithms."""
    rows = _hard_rows(extent, dtype)
    rows[6] = -np.inf
    rows[0, -1] = np.inf
    for name in (
        "online_softmax",
        "normal_loop_summation_on_exp_to_prefix_summation_on_exp",
    ):
        one, program = strategy(name), _shifted(extent, dtype)
        sites = one.survey(program).sites
        assert len(sites) == (2 if name == "online_softmax" else 1)
        for site in sites:
            step = take(one, program, site)
            assert isinstance(step, Step)
            first, second = (
                interpret(p, {"S": rows}, precision="float64").outputs["W"]
                for p in (step.before, step.after)
            )
            assert first[6] == -np.inf
            assert first[0] == np.inf
            assert normalised_difference(first, second) <= TOLERANCE


def test_a_shift_of_another_type_is_no_shift() -> None:
    """What is rounded is not the maximum; what is shifted by -inf as well is another program."""
    text = to_text(_shifted(5, "f32").program)
    narrow = text.replace("I^{f32,g}", "I^{f16,g}")
    other = text.replace("==inf", "==-inf")
    head = f"# input S f32[{ROWS},5]\n# output W f32[{ROWS}]\n"
    for changed in (narrow, other):
        assert changed != text
        assert not OnlineSoftmax().survey(read(head + changed).signed).sites


def test_working_precision_is_no_worse_than_before() -> None:
    scores = _hard_rows(12, "f32")
    for step in _steps(_program(12, "f32", SOFTMAX)):
        exact = interpret(step.before, {"S": scores}, precision="float64").outputs["W"]
        errors = [
            np.max(np.abs(interpret(p, {"S": scores}).outputs["W"] - exact))
            for p in (step.before, step.after)
        ]
        assert errors[1] <= 8 * errors[0] + 16 * np.finfo(np.float32).eps


def test_the_hard_rows_tell_the_unsafe_recurrence_apart() -> None:
    """The recurrence without tests for -inf gives NaN, so these rows would reveal it."""
    step = _steps(_program(7, "f32", SOFTMAX))[0]
    unsafe = parse(
        "B^{8}_{tx=0}L^{7}_{a=0}["
        "N^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,N^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});"
        "R^{f32,g}_{tx,a}=if_then_else(a-1<0,0,R^{f32,g}_{tx,a-1}"
        "*exp(N^{f32,g}_{tx,a-1}-N^{f32,g}_{tx,a}))+exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,a});];"
        "B^{8}_{tx=0}L^{7}_{a=0}["
        "W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,6})/R^{f32,g}_{tx,6};];",
        step.before.signature,
    ).program
    scores = _hard_rows(7, "f32")
    outputs = interpret(SignedProgram(unsafe, step.before.signature), {"S": scores}).outputs["W"]
    assert np.isnan(outputs[1]).all()
    assert not np.isnan(interpret(step.after, {"S": scores}).outputs["W"]).any()


@pytest.mark.parametrize(
    "earlier",
    [
        ("operator_fusion", "statement 1: depth=1, intermediate=g"),
        ("operator_fusion", "statement 2: depth=1, intermediate=g"),
        ("loop_split", "statement 1: factor=4, inner=tx, loop=tx, outer=bx, tail=exact"),
        ("cache_read_write", "statement 2: direction=write, scope=l, tensor=Z, under=tx"),
    ],
)
def test_matches_or_refuses_by_name_after_another_step(earlier: tuple[str, str]) -> None:
    chosen, program = strategy(earlier[0]), _program(6, "f32", SOFTMAX)
    sites = {site.describe(): site for site in chosen.survey(program).sites}
    first = take(chosen, program, sites[earlier[1]])
    assert isinstance(first, Step)
    survey = OnlineSoftmax().survey(first.after)
    named = set(OnlineSoftmax.preconditions)
    assert {refusal.reason for refusal in survey.refusals} <= named
    for site in survey.sites:
        step = take(OnlineSoftmax(), first.after, site)
        assert isinstance(step, Step)
        _assert_same(step, _hard_rows(6, "f32"))


def _chain(program: SignedProgram, seed: int) -> tuple[SignedProgram, list[str]]:
    """The program after up to three random steps of any strategies but this one."""
    rng = random.Random(seed)
    taken: list[str] = []
    others = [s for name, s in strategies().items() if name != OnlineSoftmax.name]
    for _ in range(rng.randrange(1, 4)):
        chosen = rng.choice(others)
        sites = chosen.survey(program).sites
        if sites:
            site = rng.choice(sites)
            step = take(chosen, program, site)
            assert isinstance(step, Step), (taken, chosen.name, site.describe(), step)
            taken.append(f"{chosen.name} {site.describe()}")
            program = step.after
    return program, taken


def _offers_only_right_steps(seed: int) -> int:
    score = ("{s}", "{s}*0.125", "if_then_else(a<=tx,{s},-inf)")[seed % 3]
    norm = (SOFTMAX, LOG_SOFTMAX)[seed % 2]
    program, taken = _chain(_program(5, "f32", norm, score), seed)
    survey = OnlineSoftmax().survey(program)
    for site in survey.sites:
        step = take(OnlineSoftmax(), program, site)
        assert isinstance(step, Step), (taken, step)
        _assert_same(step, _hard_rows(5, "f32"))
    assert {refusal.reason for refusal in survey.refusals} <= set(OnlineSoftmax.preconditions)
    return len(survey.sites)


def test_after_chains_of_other_steps() -> None:
    assert sum(_offers_only_right_steps(seed) for seed in range(20)) > 4


@pytest.mark.slow
def test_after_many_chains_of_other_steps() -> None:
    assert sum(_offers_only_right_steps(seed) for seed in range(20, 400)) > 100


def test_all_that_is_left_to_do_is_to_forget_earlier_steps() -> None:
    history, rolling = _steps(_program(6, "f32", SOFTMAX))
    assert OnlineSoftmax().survey(rolling.after).sites == ()
    (step,) = _steps(history.after)
    assert (step.site.text("form"), step.numerics) == ("rolling", "exact")
    _assert_same(step, _hard_rows(6, "f32"))
    assert OnlineSoftmax().survey(step.after).sites == ()


def _stored(norm: str) -> SignedProgram:
    """A softmax that stores the differences and their exponentials, as written by hand."""
    loops = f"B^{{{ROWS}}}_{{tx=0}}L^{{6}}_{{a=0}}"
    return read(
        f"# input S f32[{ROWS},6]\n# output W f32[{ROWS},6]\n"
        f"{loops}[M^{{f32,g}}_{{tx}}=max(M^{{f32,g}}_{{tx}},S^{{f32,g}}_{{tx,a}});];"
        f"{loops}[D^{{f32,g}}_{{tx,a}}=S^{{f32,g}}_{{tx,a}}-M^{{f32,g}}_{{tx}};];"
        f"{loops}[E^{{f32,g}}_{{tx,a}}=exp(D^{{f32,g}}_{{tx,a}});];"
        f"{loops}[Z^{{f32,g}}_{{tx}}=Z^{{f32,g}}_{{tx}}+E^{{f32,g}}_{{tx,a}};];"
        f"{loops}[W^{{f32,g}}_{{tx,a}}={norm};];"
    ).signed


@pytest.mark.parametrize(
    "norm",
    ["E^{f32,g}_{tx,a}/Z^{f32,g}_{tx}", "D^{f32,g}_{tx,a}-log(Z^{f32,g}_{tx})"],
)
def test_stored_exponentials_on_hard_rows(norm: str) -> None:
    steps = _steps(_stored(norm))
    assert [step.site.text("form") for step in steps] == ["history", "rolling"]
    for step in steps:
        _assert_same(step, _hard_rows(6, "f32"))


@pytest.mark.parametrize("name", ["online_softmax", "cache_read_write"])
def test_every_refusal_has_a_case(name: str) -> None:
    reasons = {r for case in all_cases() if case.strategy == name for _, r in case.refused}
    assert reasons == set(strategy(name).preconditions)
