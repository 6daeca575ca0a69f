"""What programs mean: the interpreter against NumPy written by hand."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.interpreter import InputError, Run, interpret
from steptp_dagster.leir.interpreter.run import Order
from steptp_dagster.leir.signature import SignedProgram
from tests.support.corpus import BY_NAME, Case, long_form
from tests.support.programs import random_inputs, valid_programs

Arrays = dict[str, np.ndarray]


def run(header: str, short: str, temps: str = "", **inputs: object) -> Arrays:
    """The outputs of a program in the corpus' short notation, which must have no fault."""
    result = interpret(
        read(long_form(header, short, temps)).signed,
        {name: np.asarray(value) for name, value in inputs.items()},
    )
    assert result.faults == ()
    return result.outputs


def case_inputs(name: str) -> tuple[SignedProgram, Arrays]:
    signed = BY_NAME[name].signed
    return signed, random_inputs(signed, 1)


def outcome(name: str, **changed: np.ndarray) -> tuple[Arrays, Run]:
    signed, inputs = case_inputs(name)
    inputs |= changed
    result = interpret(signed, inputs, precision="float64")
    assert result.faults == ()
    return inputs, result


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


# -- whole programs ----------------------------------------------------------------------------


def test_matmul() -> None:
    inputs, result = outcome("matmul")
    expected = inputs["A"].astype(float) @ inputs["C"].astype(float)
    np.testing.assert_allclose(result.outputs["D"], expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["tiled-matmul", "tiled-matmul-in-two-axes"])
def test_tiled_matmul_through_shared_memory(name: str) -> None:
    inputs, result = outcome(name)
    expected = inputs["A"].astype(float) @ inputs["C"].astype(float)
    np.testing.assert_allclose(result.outputs["D"], expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["softmax", "online-softmax"])
def test_softmax(name: str) -> None:
    inputs, result = outcome(name)
    np.testing.assert_allclose(result.outputs["D"], softmax(inputs["A"].astype(float)), rtol=1e-13)


def test_online_softmax_survives_a_row_that_starts_with_minus_infinity() -> None:
    a = np.array([[-np.inf, -np.inf, 1.0, 2.0, 0.5]] * 4, np.float32)
    inputs, result = outcome("online-softmax", A=a)
    np.testing.assert_allclose(result.outputs["D"], softmax(inputs["A"].astype(float)), rtol=1e-13)


def test_attention_with_rolling_state() -> None:
    inputs, result = outcome("attention-with-rolling-state")
    a, c, w = (inputs[n].astype(float) for n in "ACW")
    np.testing.assert_allclose(result.outputs["D"], softmax(a @ c.T) @ w, rtol=1e-12)


def test_edge_padding() -> None:
    inputs, result = outcome("edge-padding")
    a, w = inputs["A"].astype(float), inputs["W"].astype(float)
    np.testing.assert_allclose(result.outputs["D"], np.correlate(a, w, "same"), rtol=1e-13)


def test_cumulative_sum() -> None:
    inputs, result = outcome("cumulative-sum")
    np.testing.assert_allclose(
        result.outputs["D"], np.cumsum(inputs["A"].astype(float)), rtol=1e-13
    )


def test_exchange_through_shared_memory() -> None:
    inputs, result = outcome("exchange-through-shared-memory")
    np.testing.assert_array_equal(result.outputs["D"], inputs["A"][:, ::-1])


def test_cooperative_copy_with_halo() -> None:
    inputs, result = outcome("cooperative-copy-with-halo")
    a = inputs["A"].astype(float)
    np.testing.assert_allclose(result.outputs["D"], a[:-2] + a[1:-1] + a[2:], rtol=1e-13)


def test_indirect_reads() -> None:
    inputs, result = outcome("indirect-read-in-range")
    np.testing.assert_array_equal(result.outputs["D"], inputs["A"][inputs["Y"]])


def test_launches_start_with_fresh_local_memory() -> None:
    inputs, result = outcome("launches-pass-on-through-global-memory")
    a = inputs["A"].astype(float)
    np.testing.assert_array_equal(result.outputs["D"], [a, a[::-1] + 1, a + 2])


def test_arg_maximum_takes_the_last_of_equals() -> None:
    a = np.array([[1, 3, 3, 0], [5, 5, 5, 5], [2, 1, 0, 0]], np.float32)
    _, result = outcome("arg-maximum", A=a)
    assert result.outputs["D"].tolist() == [2, 3, 0]


# -- first touch -------------------------------------------------------------------------------

_LINE = "input A f32[4]; output D f32[]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L^4_a[D=D+A_{a};];", 10.0),
        ("L^4_a[D=D-A_{a};];", -10.0),
        ("L^4_a[D=A_{a}*D;];", 24.0),
        ("L^4_a[D=max(D,-A_{a});];", -1.0),
        ("L^4_a[D=min(A_{a},D);];", 1.0),
        ("L^4_a[D=D+A_{a}+1;];", 14.0),
        ("L^4_a[D=D-A_{a}+1;];", -6.0),
        ("L^1_c[D=5;];L^4_a[D=D+A_{a};];", 15.0),
        ("L^4_a[D=D+A_{a};];L^1_c[D=D*2;];", 20.0),
    ],
)
def test_updates_start_at_the_identity_or_continue(text: str, expected: float) -> None:
    assert run(_LINE, text, A=[1.0, 2.0, 3.0, 4.0])["D"] == expected


def test_a_fold_starts_once_per_element() -> None:
    outputs = run("input A f32[6]; output D f32[3]", "L^6_c[D_{c//2}=D_{c//2}+A_{c};];", A=range(6))
    assert outputs["D"].tolist() == [1, 5, 9]


def test_an_integer_maximum_starts_at_the_lowest_value() -> None:
    outputs = run("input A i8[2]; output D i8[]", "L^2_a[D=max(D,A_{a});];", A=[-100, -120])
    assert outputs["D"] == -100


# -- types -------------------------------------------------------------------------------------


def test_every_f32_operation_is_rounded() -> None:
    a = np.float32(1.0) + np.float32(2.0**-23)
    outputs = run("input A f32[]; output D f32[]", "L^1_c[D=A*A-1;];", A=a)
    assert outputs["D"] == np.float32(np.float32(a * a) - np.float32(1))


def test_half_precision_is_a_memory_format() -> None:
    # 2048 + 1 is lost in f16 but not in the f32 that it is evaluated in.
    outputs = run("input A f16[]; output D f16[]", "L^1_c[D=A+1+1;];", A=np.float16(2048))
    assert outputs["D"] == np.float16(2050)
    assert outputs["D"].dtype == np.float16


def test_half_precision_is_rounded_once_when_stored() -> None:
    outputs = run("input A f64[]; output D f16[]", "L^1_c[D=A;];", A=1 + 2.0**-11 + 2.0**-40)
    assert outputs["D"] == np.float16(1 + 2.0**-10)


def test_literals_take_the_type_of_the_other_operand() -> None:
    outputs = run(
        "input A f32[]; input C f64[]; output D f64[]; output E f64[]",
        "L^1_c[D=A*0.1;E=C*0.1;];",
        A=3.0,
        C=3.0,
    )
    assert outputs["D"] == float(np.float32(3) * np.float32(0.1))
    assert outputs["E"] == 3.0 * 0.1


def test_index_arithmetic_is_integer_but_division_is_real() -> None:
    outputs = run(
        "output D f32[7]; output E f32[7]; output F f32[7]",
        "L^7_c[D_{c}=(c-3)//2;E_{c}=(c-3)%2;F_{c}=(c-3)/2;];",
    )
    assert outputs["D"].tolist() == [-2, -1, -1, 0, 0, 1, 1]
    assert outputs["E"].tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert outputs["F"].tolist() == [-1.5, -1, -0.5, 0, 0.5, 1, 1.5]


def test_conditions_are_typed_apart() -> None:
    # 2**24 + 1 is not an f32: in f32 the indices would be equal.
    outputs = run("input A i32[]; output D f32[]", "L^1_c[D=if_then_else(A+1==A,1,0);];", A=2**24)
    assert outputs["D"] == 0.0


def test_integers_wrap_in_the_widest_operand_type() -> None:
    outputs = run(
        "input A i8[]; input C i32[]; output D i32[]; output E i32[]",
        "L^1_a[D=A+A;E=A+A+C;];",
        A=np.int8(100),
        C=np.int32(0),
    )
    assert [int(outputs["D"]), int(outputs["E"])] == [-56, -56]


def test_floats_are_truncated_to_integers() -> None:
    outputs = run("input A f32[3]; output D i32[3]", "L^3_a[D_{a}=A_{a};];", A=[1.9, -1.9, 0.5])
    assert outputs["D"].tolist() == [1, -1, 0]


def test_a_conversion_without_result_is_a_fault() -> None:
    signed = read(long_form("input A f32[]; output D i8[]", "L^1_a[D=A*100;];")).signed
    result = interpret(signed, {"A": np.array(2, np.float32)})
    assert [f.kind for f in result.faults] == ["undefined-conversion"]


def test_an_integer_divided_by_zero_is_a_fault() -> None:
    signed = read(long_form("input A i32[]; output D i32[]", "L^1_a[D=7//A;];")).signed
    result = interpret(signed, {"A": np.array(0, np.int32)})
    assert [f.kind for f in result.faults] == ["integer-division-by-zero"]


def test_bools_count_as_integers_and_masks_as_factors() -> None:
    outputs = run(
        "input A bool[2]; output D f32[2]; output E i64[]",
        "L^2_a[D_{a}=A_{a}*2.5;E=E+A_{a};];",
        A=[True, False],
    )
    assert outputs["D"].tolist() == [2.5, 0.0]
    assert outputs["E"] == 1


def test_comparisons_chain() -> None:
    outputs = run("output D bool[6]", "L^6_c[D_{c}=1<=c<4|c==5;];")
    assert outputs["D"].tolist() == [False, True, True, True, False, True]


def test_special_values() -> None:
    outputs = run(
        "input A f32[]; output D f32[6]",
        "L^1_a[D_{0}=1/A;D_{1}=log(A);D_{2}=exp(A+1000);D_{3}=sqrt(A-1);D_{4}=-inf;D_{5}=-A;];",
        A=np.float32(0),
    )
    d = outputs["D"]
    assert [d[0], d[1], d[2], d[4]] == [math.inf, -math.inf, math.inf, -math.inf]
    assert math.isnan(d[3])
    assert math.copysign(1.0, d[5]) == -1.0


def test_float64_precision_makes_temporaries_and_literals_doubles() -> None:
    signed = read(long_form("input A f16[]; output D f16[]", "L^1_c[E=A*0.1;D=E;];")).signed
    result = interpret(signed, {"A": np.array(3, np.float16)}, precision="float64")
    assert result.outputs["D"] == 3.0 * 0.1
    assert result.outputs["D"].dtype == np.float64


def test_bf16_leaves_as_float32() -> None:
    outputs = run("input A f32[]; output D bf16[]", "L^1_c[D=A;];", A=np.float32(1.005))
    assert outputs["D"].dtype == np.float32
    assert outputs["D"] == np.float32(1.0078125)


# -- the interface -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "A is missing"),
        ({"A": np.zeros((2, 2))}, "A has shape"),
        ({"A": np.zeros((10, 3)), "Y": np.array([0, 1, 2, 10])}, "Y leaves 0..9"),
    ],
)
def test_inputs_that_do_not_fit_are_the_callers_error(inputs: Arrays, message: str) -> None:
    with pytest.raises(InputError, match=message):
        interpret(BY_NAME["indirect-read-in-range"].signed, inputs)


def test_elements_that_are_not_written_are_poison() -> None:
    signed = BY_NAME["tail-dropped"].signed
    result = interpret(signed, random_inputs(signed, 0))
    assert np.isnan(result.outputs["D"]).tolist() == [False, False, False, True]


def test_a_program_without_meaning_is_not_run() -> None:
    signed = BY_NAME["unbound-in-target"].signed
    result = interpret(signed, random_inputs(signed, 0))
    assert np.isnan(result.outputs["D"]).all()


def test_a_fault_says_where_it_happened() -> None:
    signed = BY_NAME["guard-off-by-one"].signed
    fault = interpret(signed, random_inputs(signed, 0)).faults[0]
    assert (fault.kind, fault.path, fault.iteration) == (
        "out-of-bounds",
        (0, 0),
        (("a", 2), ("c", 2)),
    )
    assert "A at [10]" in fault.message


def test_the_number_of_faults_is_limited() -> None:
    case = Case("", "output D f32[4]", "L^4_a[D_{a}=Z+Q+W+K+X;];")
    assert len(interpret(case.signed, {}).faults) == 5
    assert len(interpret(case.signed, {}, max_faults=3).faults) == 3


def test_it_shares_no_code_with_what_it_judges() -> None:
    modules = ("accesses", "affine", "dependence", "shapes", "typing", "updates", "validity")
    script = (
        "import sys, steptp_dagster.leir.interpreter\n"
        f"print([m for m in {modules} if 'steptp_dagster.leir.' + m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


# -- random programs ---------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
@given(valid_programs())
def test_valid_programs_run_without_fault_in_any_order(signed: SignedProgram) -> None:
    inputs = random_inputs(signed, 0)
    texts = interpret(signed, inputs, precision="float64")
    assert texts.faults == ()
    orders: tuple[Order, ...] = ("reversed", "shuffled")
    for order in orders:
        other = interpret(signed, inputs, precision="float64", order=order)
        assert other.faults == ()
        for name, array in texts.outputs.items():
            assert np.isfinite(array).all()
            np.testing.assert_allclose(other.outputs[name], array, rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(valid_programs())
def test_leaving_out_the_checks_changes_no_value(signed: SignedProgram) -> None:
    inputs = random_inputs(signed, 0)
    checked, plain = interpret(signed, inputs), interpret(signed, inputs, dynamic=False)
    for name, array in checked.outputs.items():
        np.testing.assert_array_equal(plain.outputs[name], array)
