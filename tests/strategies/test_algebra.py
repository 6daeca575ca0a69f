"""Algebraic rules on random expressions, and the pieces that they are made of."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.parser import parse_expr
from steptp_dagster.leir.printer import expr_text, to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.walk import Path, replace_at
from steptp_dagster.reasoning.check import grounding
from steptp_dagster.reasoning.render import render_text
from steptp_dagster.reasoning.style import BRIEF, FULL
from steptp_dagster.reasoning.trials import same_algebra
from steptp_dagster.strategies.algebra.data import data_of
from steptp_dagster.strategies.algebra.magnitude import power_above, sizes_of
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.algebra.trees import (
    divided_by_factor,
    factors,
    signed,
    terms,
    without_factors,
    without_terms,
)
from steptp_dagster.strategies.definitions import located
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.verify.verdict import verify
from tests.support.numerics import normalised_difference
from tests.support.programs import random_inputs
from tests.support.random_algebra import algebraic_program
from tests.support.strategy_cases import cases_of, step_of

#: An original with a larger error, in epsilons, is a difference of nearly equal values.
ILL_CONDITIONED = 4.0
ALGEBRAIC = {n: s for n, s in strategies().items() if isinstance(s, AlgebraicStrategy)}


def _steps(seed: int) -> list[Step]:
    """The step at every site of a random equation, each grounded."""
    program = algebraic_program(seed)
    assert check(program) == ()
    found = []
    for chosen in ALGEBRAIC.values():
        for site in chosen.survey(program).sites:
            step = take(chosen, program, site)
            assert isinstance(step, Step), step
            text = render_text(chosen, site, step.explanation)
            told = grounding(program, step.after, chosen, site, step.explanation, text)
            assert told == (), f"{site.describe()}\n{to_text(program.program)}"
            found.append(step)
    return found


def _assert_equal(step: Step, seed: int) -> None:
    """Where the original has a value, the result has the same: in binary64, or bit for bit."""
    inputs = random_inputs(step.before, seed)
    precisions = ("float64", "working") if step.numerics == "exact" else ("float64",)
    for precision in precisions:
        first = interpret(step.before, inputs, precision=precision).outputs
        second = interpret(step.after, inputs, precision=precision).outputs
        for name, value in first.items():
            kept = ~np.isnan(np.asarray(value, np.float64))
            a, b = np.where(kept, value, 0), np.where(kept, second[name], 0)
            where = f"{step.site.describe()}\n{to_text(step.before.program)}"
            limit = 0.0 if precision == "working" else 1e-11
            assert normalised_difference(a, b) <= limit, where


def test_all_steps_keep_the_values_and_are_grounded() -> None:
    taken: Counter[str] = Counter()
    for seed in range(18):
        for step in _steps(seed):
            _assert_equal(step, seed)
            taken[step.site.text("rule")] += 1
    assert taken.total() > 50
    assert len(taken) > 10


@pytest.mark.slow
def test_every_rule_is_tried_on_random_equations() -> None:
    taken: Counter[str] = Counter()
    for seed in range(1000, 1150):
        for step in _steps(seed):
            _assert_equal(step, seed)
            taken[step.site.text("rule")] += 1
    assert len(taken) > 15


@pytest.mark.slow
def test_the_verdict_accepts_all_steps() -> None:
    judged = 0
    for seed in range(2000, 2030):
        for step in _steps(seed):
            verdict = verify(step.before, step.after)
            if verdict.reason in ("too-few-families", "too-large"):
                continue
            if any((f.original_error or 0.0) > ILL_CONDITIONED for f in verdict.families):
                continue  # how much of its digits it loses is luck
            assert verdict.accepted, f"{verdict}\n{to_text(step.before.program)}"
            if step.numerics == "exact":
                assert verdict.equality == "exact"
            judged += 1
    assert judged > 50


def test_an_update_stays_the_update_that_it_is() -> None:
    program = read("""
# input A f32[2,4] in 1.0..2.0
# output D f32[2]
B^{2}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}*2+A^{f32,g}_{tx,a}*D^{f32,g}_{tx}:a<0;];
B^{2}_{tx=0}[D^{f32,g}_{tx}=0;L^{4}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a};];];
""").signed
    sites = ALGEBRAIC["factorization"].survey(program).sites
    assert [site.path for site in sites] == [(0, 0)]  # a recurrence, the sum has no other factor


# -- pieces ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "drop", "left"),
    [
        ("A^{f32,g}-(C^{f32,g}+D^{f32,g})", 1, "A^{f32,g}-D^{f32,g}"),
        ("A^{f32,g}-(C^{f32,g}+D^{f32,g})", 0, "-(C^{f32,g}+D^{f32,g})"),
        ("-(A^{f32,g}-C^{f32,g})+D^{f32,g}", 0, "C^{f32,g}+D^{f32,g}"),
        ("A^{f32,g}", 0, None),
    ],
)
def test_a_term_goes(text: str, drop: int, left: str | None) -> None:
    expr = parse_expr(text)
    found = without_terms(expr, terms(expr)[drop].at)
    assert (None if found is None else expr_text(found)) == left


@pytest.mark.parametrize(
    ("text", "drop", "left"),
    [
        ("A^{f32,g}/(C^{f32,g}*D^{f32,g})", 1, "A^{f32,g}/D^{f32,g}"),
        ("A^{f32,g}/C^{f32,g}*D^{f32,g}", 0, "1/C^{f32,g}*D^{f32,g}"),
        ("-A^{f32,g}*C^{f32,g}", 0, "-1*C^{f32,g}"),
        ("A^{f32,g}/C^{f32,g}", 1, "A^{f32,g}"),
        ("A^{f32,g}", 0, "1"),
    ],
)
def test_a_factor_goes(text: str, drop: int, left: str) -> None:
    expr = parse_expr(text)
    assert expr_text(without_factors(expr, factors(expr)[drop].at)) == left


@pytest.mark.parametrize(
    ("product", "factor", "rest"),
    [
        ("2*A^{f32,g}**3", "A^{f32,g}", "2*A^{f32,g}**2"),
        ("A^{f32,g}**2", "A^{f32,g}", "A^{f32,g}"),
        ("A^{f32,g}**4", "A^{f32,g}**2", "A^{f32,g}**2"),
        ("1/A^{f32,g}**2", "A^{f32,g}", None),
        ("A^{f32,g}**0.5", "A^{f32,g}", None),
    ],
)
def test_powers_are_products(product: str, factor: str, rest: str | None) -> None:
    found = divided_by_factor(parse_expr(product), parse_expr(factor))
    assert (None if found is None else expr_text(found)) == rest


def test_powers_of_two_bound_magnitudes() -> None:
    assert [power_above(x) for x in (0.0, 0.3, 1.0, 1.5, 4.0, float("inf"))] == [
        0,
        -1,
        0,
        1,
        2,
        None,
    ]


FLOW = """
# input A f32[4]
# input C f32[4] in 0.0..1.0
# param D f32[4]
# output E f32[4]
# output F i64[4]
B^{4}_{tx=0}[
  G^{f32,g}_{tx}=A^{f32,g}_{tx}*D^{f32,g}_{tx};
  H^{f32,g}_{tx}=exp(C^{f32,g}_{tx})+D^{f32,g}_{tx};
  E^{f32,g}_{tx}=if_then_else(H^{f32,g}_{tx}>0,H^{f32,g}_{tx},0);
  F^{i64,g}_{tx}=if_then_else(G^{f32,g}_{tx}>0,1,0);
];
"""


def _flow() -> SignedProgram:
    return read(FLOW).signed


def test_sources_go_through_tensors() -> None:
    data = data_of(_flow())
    assert data.sources(parse_expr("G^{f32,g}_{tx}")) == {"A", "D"}
    assert data.sources(parse_expr("2.0")) == frozenset()


def test_masks_reach_what_depends_on_inputs_without_a_range() -> None:
    data = data_of(_flow())
    assert data.maskable(parse_expr("G^{f32,g}_{tx}"))
    assert not data.maskable(parse_expr("H^{f32,g}_{tx}"))


def test_plain_arithmetic_has_no_masks() -> None:
    program = read("""
# input A f32[4]
# output E f32[4]
B^{4}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}*2;];
""").signed
    assert not data_of(program).maskable(Access("A", "f32", "g"))


def test_decisions_are_found_through_tensors() -> None:
    data = data_of(_flow())
    assert data.decided_by("G") == ((0, 3),)
    assert data.decided_by("H") == ()  # the branch contains what is asked


def test_a_mean_is_amplified_by_deviations_from_it() -> None:
    data = data_of(
        read("""
# input A f32[2,4]
# param C f32[4]
# output E f32[2,4]
B^{2}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a}/4;];
B^{2}_{tx=0}L^{4}_{a=0}[F^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}-D^{f32,g}_{tx};];
B^{2}_{tx=0}L^{4}_{a=0}[E^{f32,g}_{tx,a}=exp(F^{f32,g}_{tx,a}-F^{f32,g}_{tx,0})*(F^{f32,g}_{tx,a}-C^{f32,g}_{a});];
""").signed
    )
    assert data.amplified_by("D") == ((1, 0),)
    assert data.amplified_by("F") == ()  # exp takes one difference of both, the other is unrelated


def test_data_keeps_headroom() -> None:
    program = read("""
# input A f32[4]
# input C f16[4]
# output E f32[4]
B^{4}_{tx=0}[G^{f32,g}_{tx}=exp(A^{f32,g}_{tx});E^{f32,g}_{tx}=G^{f32,g}_{tx}*C^{f16,g}_{tx};];
""").signed
    sizes = sizes_of(program)
    at = (0, 1)
    assert sizes.power(parse_expr("A^{f32,g}_{tx}*C^{f16,g}_{tx}"), at) == 96
    assert sizes.power(parse_expr("A^{f32,g}_{tx}*A^{f32,g}_{tx}"), at) is None
    assert sizes.power(parse_expr("G^{f32,g}_{tx}*0.5"), at) == 127
    assert sizes.power(parse_expr("G^{f32,g}_{tx}+G^{f32,g}_{tx}"), at) is None


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("expand_factorization", "factorization"),
        ("factorization", "expand_factorization"),
        ("expand_collect", "collect"),
        ("collect", "expand_collect"),
        ("expand_cancellation", "cancellation"),
        ("apart", "together"),
    ],
)
def test_the_ways_back_lead_back(there: str, back: str) -> None:
    returned = 0
    for case in cases_of(there):
        if case.site is not None:
            after, inverse = step_of(case).after, ALGEBRAIC[back]
            results = [inverse.apply(after, site) for site in inverse.survey(after).sites]
            returned += case.before in results
    assert returned > 0


PIECES = {
    "E": "(A^{f32,g}_{tx}+1)/C^{f32,g}_{tx}-1/(D^{f32,g}_{tx}+3)",
    "F": "2/C^{f32,g}_{tx}*min(A^{f32,g}_{tx},1)",
    "G": "1/((D^{f32,g}_{tx}+1)*(D^{f32,g}_{tx}+2))",
    "H": "A^{f32,g}_{tx}*A^{f32,g}_{tx}-A^{f32,g}_{tx}*2",
}
SAID = {
    "two-denominators": ("`c` for minus `1`", "where `a` stands for `A^{f32,g}_{tx}+1`"),
    "into-extremum": ("The law is `a*min(b,c) -> min(a*b,a*c)`",),
    "partial-difference": (
        "The two fractions are not nearly equal",
        "a difference of such inverses loses 2 bits at most",
        "The numerator is a number: `1` is finite",
    ),
    "common-factor": (
        "so is `A^{f32,g}_{tx}-2`",
        "where `a` is the choice, `b` is the choice too and `c` stands for minus `2`",
    ),
}


@pytest.mark.parametrize("rule", SAID)
def test_what_is_said_of_a_law_is_so(rule: str) -> None:
    """Minus signs, minima, digits that go and numbers are said as they are."""
    body = "".join(f"{name}^{{f32,g}}_{{tx}}={text};" for name, text in PIECES.items())
    program = read(
        "# input A f32[4]\n# input C f32[4] in 1.0..2.0\n# input D f32[4] in 0.0..2.0\n"
        + "".join(f"# output {name} f32[4]\n" for name in PIECES)
        + f"B^{{4}}_{{tx=0}}[{body}];"
    ).signed
    sites = [
        (chosen, site)
        for chosen in ALGEBRAIC.values()
        for site in chosen.survey(program).sites
        if site.text("rule") == rule
    ]
    chosen, site = sites[0]
    step = take(chosen, program, site)
    assert isinstance(step, Step)
    text = render_text(chosen, site, step.explanation, FULL)
    found = grounding(program, step.after, chosen, site, step.explanation, text, FULL)
    assert found == ()
    for words in SAID[rule]:
        assert words in text


def test_what_is_subtracted_need_be_no_part() -> None:
    """A coefficient that occurs after the step alone is said to be subtracted before it."""
    program = read("""
# input A f16[4] in -1.0..2.0
# input C f32[4] in -1.0..2.0
# input D f32[4] in -1.0..2.0
# output E f32[4]
B^{4}_{tx=0}[E^{f32,g}_{tx}=3-A^{f16,g}_{tx}**2*D^{f32,g}_{tx}+C^{f32,g}_{tx}*A^{f16,g}_{tx};];
""").signed
    told = 0
    for chosen in ALGEBRAIC.values():
        for site in chosen.survey(program).sites:
            step = take(chosen, program, site)
            assert isinstance(step, Step), step
            text = render_text(chosen, site, step.explanation, FULL)
            found = grounding(program, step.after, chosen, site, step.explanation, text, FULL)
            assert found == (), site.describe()
            told += any(fact.kind == "stands_for_minus" for fact in step.explanation.decision)
    assert told > 0


def test_a_weight_is_not_of_the_size_of_data() -> None:
    """Of two inputs the sum keeps the digits; of an input and a parameter it need not."""
    sites = {}
    for role in ("input", "param"):
        program = read(f"""
# input A f32[4]
# {role} C f32[4]
# output E f32[4]
B^{{4}}_{{tx=0}}[E^{{f32,g}}_{{tx}}=C^{{f32,g}}_{{tx}}+A^{{f32,g}}_{{tx}}-A^{{f32,g}}_{{tx}};];
""").signed
        survey = ALGEBRAIC["cancellation"].survey(program)
        sites[role] = len(survey.sites), {refusal.reason for refusal in survey.refusals}
    assert sites == {"input": (1, set()), "param": (0, {"digits-may-be-lost"})}


# -- what the letters of a law stand for -------------------------------------------------------

LETTER = re.compile(r"\b[a-z]\b")
ALGEBRAIC_STEPS = [
    (name, case) for name in ALGEBRAIC for case in cases_of(name) if case.site is not None
]
#: More terms than letters, of every law that has a form for them.
LONG = {
    "common-factor": "A*C+A*D-A*3",
    "distribute": "A*(C+D+0.5)",
    "distribute-term": "A*(A+C+D)+7",
    "collect-terms": "C*A+D*A+C+D*D+7",
    "collect-neighbours": "C*A+D*A+A*A*C+D+7",
    "common-denominator": "C/A+D/A+C*D/A",
    "onto-denominator": "C+D+D/A",
    "split-fraction": "(A+C+D*D)/A",
    "cancel-term": "A-A",
    "sum-of-logs": "7-log(A)+log(C)-log(D)",
    "equal-bases": "A*2*A",
}


def _same(before: SignedProgram, path: Path, one: Expr, other: Expr) -> bool:
    """Whether two expressions have equal values in the place of an equation's value."""
    equation = located(before.program, path).equation
    programs = [
        SignedProgram(
            replace_at(before.program, path, replace(equation, value=expr)), before.signature
        )
        for expr in (one, other)
    ]
    return same_algebra(programs[0], programs[1], path)


def _instance(law: str, letters: Mapping[str, str]) -> Expr | None:
    """The left side of a law with what its letters stand for; None if one is not told."""
    left = law.split(" -> ", maxsplit=1)[0].replace("+...", "")
    if "sum(" in left or not set(LETTER.findall(left)) <= set(letters):
        return None
    return parse_expr(LETTER.sub(lambda found: letters[found[0]], left))


def _check_letters(step: Step) -> bool:
    """Letters told are in the law, and its instance is the part; whether there was one to compare.

    Of a law with ``...`` every term of the instance is one of the part, or it is shorter inside.
    """
    law, path = "", step.site.path
    letters = {}
    for fact in step.explanation.decision:
        if fact.kind == "law":
            law = str(fact.value)
        elif fact.kind in ("stands_for", "stands_for_minus"):
            _, text, letter = fact.arguments
            letters[str(letter)] = f"({text})" if fact.kind == "stands_for" else f"(-({text}))"
    assert letters
    assert set(letters) <= set(LETTER.findall(law)), law
    state = {fact.kind: str(fact.value) for fact in step.explanation.state}
    part = parse_expr(state.get("part_text", state["value_text"]))
    instance = _instance(law, letters)
    if instance is None:
        return False
    equal = _same(step.before, path, part, instance)
    if "..." not in law:
        assert equal, f"{law}: {letters}"
    elif not equal:
        own = [signed(term.expr, term.inverse) for term in terms(part)]
        told = [signed(term.expr, term.inverse) for term in terms(instance)]
        if len(told) > 1:
            assert len(told) < len(own), law
            for term in told:
                assert any(_same(step.before, path, term, other) for other in own), law
    return True


@pytest.mark.parametrize("name", ALGEBRAIC)
def test_letters_are_in_the_law_and_stand_for_parts(name: str) -> None:
    compared = [_check_letters(step_of(case)) for own, case in ALGEBRAIC_STEPS if own == name]
    assert any(compared)


@pytest.mark.parametrize("rule", LONG)
def test_a_law_says_where_it_has_no_letters(rule: str) -> None:
    value = re.sub(r"[ACD]", lambda found: f"{found[0]}^{{f32,g}}_{{tx}}", LONG[rule])
    inputs = "".join(f"# input {name} f32[4] in 1.0..2.0\n" for name in "ACD")
    program = read(
        f"{inputs}# output E f32[4]\nB^{{4}}_{{tx=0}}[E^{{f32,g}}_{{tx}}={value};];"
    ).signed
    laws = []
    for chosen in ALGEBRAIC.values():
        for site in chosen.survey(program).sites:
            if site.text("rule") == rule:
                step = take(chosen, program, site)
                assert isinstance(step, Step), step
                assert _check_letters(step) or rule == "equal-bases"
                for style in (FULL, BRIEF):
                    text = render_text(chosen, site, step.explanation, style)
                    told = grounding(
                        program, step.after, chosen, site, step.explanation, text, style
                    )
                    assert told == ()
                laws += [f.value for f in step.explanation.decision if f.kind == "law"]
    usual = {one.law for chosen in ALGEBRAIC.values() for one in chosen.rules if one.name == rule}
    if rule != "distribute-term":
        assert laws
        assert set(laws).isdisjoint(usual)
    assert all("..." in str(law) for law in laws) or rule in ("cancel-term", "equal-bases")
