"""Value facts hold for every value that programs take, and say what rules of algebra need."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, at, iter_expr
from steptp_dagster.strategies.intervals import LARGEST
from steptp_dagster.strategies.value_facts import ValueFact
from steptp_dagster.strategies.values import Inputs, facts_of
from tests.support.corpus import VALID
from tests.support.observed import Seen, observe
from tests.support.programs import random_inputs, random_program

TINY = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}


def special_inputs(signed: SignedProgram, seed: int) -> dict[str, np.ndarray]:
    """Random inputs with masks, zeros of both signs and the ends of the types among them."""
    found = random_inputs(signed, seed)
    rng = np.random.default_rng(seed)
    for variable in signed.signature.sources:
        if variable.role == "const" or variable.low is not None:
            continue
        values = found[variable.name]
        if values.dtype.kind == "i":
            ends = np.iinfo(values.dtype)
            pool = [ends.min, ends.max]
        elif values.dtype.kind == "f":
            large, tiny = LARGEST[variable.dtype], TINY[variable.dtype]
            pool = [0.0, -0.0, 1.0, -1.0, large, -large, tiny, -tiny, 1e3, -1e3]
            pool += [-np.inf] * 3 if variable.role == "input" else []
        else:
            continue
        chosen = rng.choice(np.array(pool, dtype=values.dtype), values.shape)
        found[variable.name] = np.where(rng.random(values.shape) < 0.5, chosen, values)
    return found


def contradictions(fact: ValueFact, seen: Seen) -> list[str]:
    """Claims that a value which was seen proves wrong."""
    wrong = []
    if seen.low <= seen.high:
        claims = {
            "lower": seen.low >= fact.lower,
            "upper": seen.high <= fact.upper,
            "nonzero": not (seen.zero and fact.nonzero),
            "plus": not ((seen.minus_zero or seen.low < 0.0) and fact.plus),
            "whole": not (seen.broken and fact.whole),
            "finite": not (seen.infinite and fact.finite),
        }
        wrong = [name for name, holds in claims.items() if not holds]
    return wrong + (["nan"] if seen.nan and not fact.nan else [])


def check_facts(signed: SignedProgram, inputs: dict[str, np.ndarray], which: Inputs) -> int:
    """Compare facts with values, in both precisions; how many expressions were compared."""
    facts, count = facts_of(signed, inputs=which), 0
    for precision in ("working", "float64"):
        for (path, expr), seen in observe(signed, inputs, precision).items():
            equation = at(signed.program, path)
            if expr not in set(iter_expr(equation.value)):  # type: ignore[union-attr]
                continue
            fact = facts.of(expr, path)
            assert contradictions(fact, seen) == [], (precision, path, expr_text(expr), fact, seen)
            count += 1
    return count


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_facts_hold_on_the_corpus(case: object) -> None:
    signed = case.signed  # type: ignore[attr-defined]
    assert check_facts(signed, special_inputs(signed, 1), "masked") > 0
    assert check_facts(signed, random_inputs(signed, 1), "finite") > 0


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_facts_hold_on_random_programs(seed: int) -> None:
    for k in range(seed, seed + 2):
        signed = random_program(k)
        check_facts(signed, special_inputs(signed, k), "masked")
        check_facts(signed, random_inputs(signed, k), "finite")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 4000, 100))
def test_facts_hold_on_many_random_programs(seed: int) -> None:
    for k in range(seed, seed + 100):
        signed = random_program(k)
        check_facts(signed, special_inputs(signed, k), "masked")


def test_claims_about_real_arithmetic_hold_where_binary64_is_near_to_it() -> None:
    """On inputs of moderate size binary64 neither overflows nor underflows."""
    claimed = 0
    for k in range(40):
        signed = random_program(k)
        facts = facts_of(signed)
        for (path, expr), seen in observe(signed, random_inputs(signed, k), "float64").items():
            equation = at(signed.program, path)
            if expr not in set(iter_expr(equation.value)):  # type: ignore[union-attr]
                continue
            fact = facts.of(expr, path)
            assert not (fact.exact_nonzero and seen.zero), expr_text(expr)
            assert not (fact.exact_finite and (seen.nan or seen.infinite)), expr_text(expr)
            claimed += fact.exact_finite
    assert claimed > 500


HEADER = """# input A f32[4,8]
# input C f32[4]
# input H f16[4]
# param W f32[8]
# output D f32[4,8]
"""


def fact_of(text: str, inputs: Inputs = "masked") -> ValueFact:
    """The fact of an expression over ``A_{a,c}``, ``C_{a}``, ``H_{a}`` and ``W_{c}``."""
    for name, dtype, sub in (("A", "f32", "a,c"), ("C", "f32", "a"), ("H", "f16", "a")):
        text = text.replace(name, f"{name}^{{{dtype},g}}_{{{sub}}}")
    text = text.replace("W", "W^{f32,g}_{c}")
    signed = read(HEADER + f"L^{{4}}_{{a=0}}L^{{8}}_{{c=0}}[D^{{f32,g}}_{{a,c}}={text};];").signed
    equation = at(signed.program, (0, 0))
    return facts_of(signed, inputs=inputs).of(equation.value, (0, 0))  # type: ignore[union-attr]


def test_an_exponential_is_positive_in_mathematics_only() -> None:
    fact = fact_of("exp(W)")
    assert (fact.lower, fact.nonzero, fact.exact_positive) == (0.0, False, True)
    assert not fact.finite and fact.exact_finite
    shifted = fact_of("1+exp(-abs(W))")
    assert shifted.nonzero and shifted.finite and (shifted.lower, shifted.upper) == (1.0, 2.0)


def test_the_exponential_of_a_mask_is_zero() -> None:
    fact = fact_of("exp(if_then_else(C>0,-inf,C))")
    assert not fact.exact_nonzero and fact.lower == 0.0


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("A*A", 0.0, np.inf),
        ("(A-C)**2", 0.0, np.inf),
        ("abs(A)", 0.0, np.inf),
        ("max(A,0)", 0.0, LARGEST["f32"]),
        ("min(max(A,-1),1)", -1.0, 1.0),
        ("1/(1+exp(-A))", 0.0, 1.0),
        ("tanh(A)", -1.0, 1.0),
        ("erf(A)", -1.0, 1.0),
        ("abs(W)/(1+abs(W))", 0.0, 1.0),
        ("W/(1+W*W)", -LARGEST["f32"], LARGEST["f32"]),
        ("if_then_else(A>0,A,0)", 0.0, LARGEST["f32"]),
        ("exp(min(A,0))", 0.0, 1.0),
        ("c*0.5", 0.0, 3.5),
    ],
)
def test_ranges_of_common_forms(text: str, lower: float, upper: float) -> None:
    fact = fact_of(text)
    assert (fact.lower, fact.upper) == (lower, upper)


def test_a_root_of_a_variance_and_a_constant_is_positive() -> None:
    fact = fact_of("sqrt(A*A+1e-5)", "finite")
    assert 0.003 < fact.lower < 0.0032
    assert fact.nonzero and fact.exact_finite and not fact.finite  # A*A may overflow


def test_a_constant_that_a_half_cannot_hold_is_zero_there() -> None:
    text = (
        "# output D f16[2]\nL^{2}_{a=0}[K^{f16,g}_{a}=1e-08;];"
        "L^{2}_{a=0}[D^{f16,g}_{a}=K^{f16,g}_{a};];"
    )
    fact = facts_of(read(text).signed).tensor("K")
    assert not fact.nonzero and fact.exact_nonzero and fact.finite


def test_sums_overflow_a_half() -> None:
    text = (
        "# input A i32[2,9] in 0..9999\n# output D f16[2]\n"
        "L^{2}_{a=0}L^{9}_{c=0}[D^{f16,g}_{a}=D^{f16,g}_{a}+A^{i32,g}_{a,c};];"
    )
    fact = facts_of(read(text).signed).tensor("D")
    assert fact.lower == 0.0 and fact.upper == np.inf and not fact.finite and fact.exact_finite


SOFTMAX = """# input S DTYPE[4,8]
# output W DTYPE[4,8]
L^{4}_{a=0}L^{8}_{c=0}[M^{DTYPE,g}_{a}=max(M^{DTYPE,g}_{a},S^{DTYPE,g}_{a,c});];
L^{4}_{a=0}L^{8}_{c=0}[Z^{DTYPE,g}_{a}=Z^{DTYPE,g}_{a}+exp(S^{DTYPE,g}_{a,c}-M^{DTYPE,g}_{a});];
L^{4}_{a=0}L^{8}_{c=0}[W^{DTYPE,g}_{a,c}=exp(S^{DTYPE,g}_{a,c}-M^{DTYPE,g}_{a})/Z^{DTYPE,g}_{a};];
"""


def _value(signed: SignedProgram, path: Path) -> ValueFact:
    return facts_of(signed).of(at(signed.program, path).value, path)  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_softmax(dtype: str) -> None:
    signed = read(SOFTMAX.replace("DTYPE", dtype)).signed
    facts = facts_of(signed)
    difference = (
        parse(
            f"L^{{4}}_{{a=0}}L^{{8}}_{{c=0}}[D^{{f32,g}}=S^{{{dtype},g}}_{{a,c}}-M^{{{dtype},g}}_{{a}};];"
        )
        .program.nests[0]
        .body[0]
    )
    shifted = facts.of(difference.value, (2, 0))  # type: ignore[union-attr]
    assert shifted.upper == 0.0 and shifted.nan  # a row of masks: -inf minus -inf
    assert not facts_of(signed, inputs="finite").of(difference.value, (2, 0)).nan  # type: ignore[union-attr]
    value = at(signed.program, (2, 0)).value  # type: ignore[union-attr]
    total = facts.of(value.right, (2, 0))  # type: ignore[union-attr]
    assert total.lower == 1.0 and total.nonzero and 8.0 <= total.upper < 9.0
    assert facts_of(signed, inputs="finite").of(value.right, (2, 0)).finite  # type: ignore[union-attr]
    weight = facts.of(value, (2, 0))
    assert (weight.lower, weight.upper) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("another row", SOFTMAX.replace("exp(S^{DTYPE,g}_{a,c}-M", "exp(S^{DTYPE,g}_{3-a,c}-M")),
        ("fewer scores", SOFTMAX.replace("8}_{c=0}[M", "7}_{c=0}[M")),
        (
            "rounded scores",
            SOFTMAX.replace("S^{DTYPE,g}_{a,c}", "S^{DTYPE,g}_{a,c}*0.1").replace("DTYPE", "f16"),
        ),
    ],
)
def test_differences_that_are_no_shift_by_the_maximum(name: str, text: str) -> None:
    signed = read(text.replace("DTYPE", "f32")).signed
    facts = facts_of(signed)
    value = at(signed.program, (2, 0)).value  # type: ignore[union-attr]
    assert facts.of(value.left.arguments[0], (2, 0)).upper > 0.0, name  # type: ignore[union-attr]
    assert facts.of(value.right, (2, 0)).lower == 0.0  # type: ignore[union-attr]


def test_scores_that_change_are_not_below_the_old_maximum() -> None:
    text = """# input A f32[4,8]
    # output D f32[4,8]
    L^{4}_{a=0}L^{8}_{c=0}[S^{f32,g}_{a,c}=A^{f32,g}_{a,c};];
    L^{4}_{a=0}L^{8}_{c=0}[M^{f32,g}_{a}=max(M^{f32,g}_{a},S^{f32,g}_{a,c});];
    L^{4}_{a=0}L^{8}_{c=0}[S^{f32,g}_{a,c}=S^{f32,g}_{a,c}*2;];
    L^{4}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a,c}=S^{f32,g}_{a,c}-M^{f32,g}_{a};];
    """
    assert _value(read(text).signed, (3, 0)).upper > 0.0


@given(
    st.lists(st.floats(-(2.0**127), 2.0**127, width=32) | st.just(-np.inf), min_size=8, max_size=8),
    st.integers(0, 3),
)
def test_rows_of_any_numbers(row: list[float], place: int) -> None:
    signed = read(SOFTMAX.replace("DTYPE", "f32")).signed
    scores = np.zeros((4, 8), np.float32)
    scores[place] = row
    assert check_facts(signed, {"S": scores}, "masked") > 0


RUNNING = """# input S f32[3,6]
# output D f32[3,6]
B^{3}_{tx=0}L^{6}_{a=0}[N^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,N^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});];
B^{3}_{tx=0}[M^{f32,g}_{tx}=N^{f32,g}_{tx,5};];
B^{3}_{tx=0}L^{6}_{a=0}[D^{f32,g}_{tx,a}=EXPR;];
"""
S, N, M = "S^{f32,g}_{tx,%s}", "N^{f32,g}_{tx,%s}", "M^{f32,g}_{tx}"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (f"{S % 'a'}-{N % 'a'}", True),
        (f"{S % 'a'}-{N % '5'}", True),
        (f"{S % 'a'}-{M}", True),
        (f"{N % 'a'}-{M}", True),
        (f"{N % 'a'}-{N % '5'}", True),
        (f"{M}-{N % '5'}", True),
        (f"{S % '0'}-{N % 'a'}", True),
        (f"if_then_else(a-1<0,0,{N % 'a-1'}-{N % 'a'})", True),
        (f"{S % '5-a'}-{N % 'a'}", False),
        (f"{N % '5'}-{N % 'a'}", False),
        (f"{M}-{N % 'a'}", False),
        (f"{S % 'a'}-{(N % 'a').replace('tx', '2-tx')}", False),
    ],
)
def test_running_maxima(text: str, known: bool) -> None:
    signed = read(RUNNING.replace("EXPR", text)).signed
    assert (_value(signed, (2, 0)).upper == 0.0) == known
    scores = np.linspace(-3.0, 3.0, 18, dtype=np.float32).reshape(3, 6)[:, [3, 0, 5, 1, 4, 2]]
    scores[0, :2] = -np.inf
    check_facts(signed, {"S": scores}, "masked")


@pytest.mark.parametrize(
    "change",
    [
        ("M^{f32,g}_{tx}", "M^{f16,g}_{tx}"),
        (
            "B^{3}_{tx=0}[M",
            "L^{1}_{d=0}B^{3}_{tx=0}L^{6}_{a=0}[N^{f32,g}_{tx,a}=0;];B^{3}_{tx=0}[M",
        ),
        ("a-1<0", "a-1<2"),
        ("-inf", "-9"),
    ],
    ids=["rounded copy", "overwritten", "starts again", "starts from a number"],
)
def test_what_is_no_running_maximum(change: tuple[str, str]) -> None:
    text = RUNNING.replace("EXPR", f"{S % 'a'}-{M}").replace(*change)
    facts = facts_of(read(text).signed)
    path = (len(facts.signed.program.nests) - 1, 0)
    assert not facts.is_shift(at(facts.signed.program, path).value, path)  # type: ignore[union-attr]


@pytest.mark.parametrize("text", [f"{N % 'K'}-{N % 'a'}", f"{S % 'K'}-{N % 'a'}"])
def test_a_subscript_from_a_table_is_not_ordered(text: str) -> None:
    """Precomputed indices are read like any others, and nothing is said of their order."""
    table = "B^{6}_{tx=0}[K^{i64,g}_{tx}=max(tx-1,0);];\nB^{3}_{tx=0}L^{6}_{a=0}[D"
    text = RUNNING.replace("EXPR", text.replace("K", "K^{i64,g}_{a}"))
    signed = read(text.replace("B^{3}_{tx=0}L^{6}_{a=0}[D", table)).signed
    assert _value(signed, (3, 0)).upper > 0.0
    scores = np.linspace(-3.0, 3.0, 18, dtype=np.float32).reshape(3, 6)[:, [3, 0, 5, 1, 4, 2]]
    check_facts(signed, {"S": scores}, "masked")
