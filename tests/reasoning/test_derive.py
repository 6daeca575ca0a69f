"""Every kind of fact: its value on small programs, its errors, its place in table and phrases."""

import re

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.reasoning import derive as derive_module
from steptp_dagster.reasoning.derive import ONE_SIDED, PAIRED, DerivationError, derive
from steptp_dagster.reasoning.phrases import PHRASES, phrase
from steptp_dagster.strategies.facts import Fact, Side, Value

BEFORE = read("""
# input A f16[2,4]
# input C f32[4]
# input Y i64[3] in 0..3
# output D f32[2]
# output E f32[3]
B^{2}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f16,g}_{tx,a}*C^{f32,g}_{a};];
B^{3}_{tx=0}[
  F^{f32,l}=C^{f32,g}_{Y^{i64,g}_{tx}};
  L^{2}_{a=1}[E^{f32,g}_{tx}=if_then_else(a<2,0,E^{f32,g}_{tx})+F^{f32,l}:a<3;];];
""").signed
AFTER = read("""
# input A f16[2,4]
# input C f32[4]
# input Y i64[3] in 0..3
# output D f32[2]
# output E f32[3]
B^{2}_{tx=0}[G^{f32,l}=0;L^{4}_{a=0}[
  G^{f32,l}=G^{f32,l}+A^{f16,g}_{tx,a}*C^{f32,g}_{a};];D^{f32,g}_{tx}=G^{f32,l};];
B^{3}_{tx=0}L^{2}_{a=1}[
  E^{f32,g}_{tx}=if_then_else(a<2,0,E^{f32,g}_{tx})+C^{f32,g}_{Y^{i64,g}_{tx}}:a<3;];
""").signed

SUM = (0, 0)
COPY = (1, 0)
RUN = (1, 1, 0)
PRODUCT = "A^{f16,g}_{tx,a}*C^{f32,g}_{a}"
HALVED: Value = (
    ("factor", 2),
    ("inner", "L"),
    ("loop", "a"),
    ("outer", "L"),
    ("tail", "exact"),
)
EXPECTED: list[tuple[str, Side, tuple[Value, ...], Value]] = [
    ("part_text", "before", (SUM, (1,)), "A^{f16,g}_{tx,a}*C^{f32,g}_{a}"),
    ("stands_for", "before", (SUM, "C^{f32,g}_{a}", "b"), True),
    ("stands_for_minus", "before", (SUM, "C^{f32,g}_{a}", "b"), False),
    ("part_dtype", "before", (SUM, "A^{f16,g}_{tx,a}"), "f32"),
    ("value_is", "before", (SUM, "A^{f32,g}**2", "nonnegative"), "an even power is not negative"),
    ("power_bound", "before", (SUM, "A^{f16,g}_{tx,a}*2"), 17),
    ("new_bound", "before", (SUM, "A^{f16,g}_{tx,a}*C^{f32,g}_{a}*0.5"), 95),
    ("factor_of", "before", (SUM, "C^{f32,g}", "2*C^{f32,g}**3", "2*C^{f32,g}**2"), True),
    ("constant_sum", "before", (SUM, "C^{f32,g}_{a}+0.5", "2-C^{f32,g}_{a}"), "2.5"),
    ("constant_difference", "before", (SUM, "C^{f32,g}_{a}-1", "C^{f32,g}_{a}"), "1"),
    ("lost_bits", "before", (SUM, "C^{f32,g}_{a}*0+3", "C^{f32,g}_{a}*0+5"), 2),
    ("alike_data", "before", ("C", "C"), True),
    ("alike_data", "before", ("A", "C"), False),
    (
        "range_kept",
        "before",
        (SUM, "A^{f16,g}_{tx,a}*C^{f32,g}_{a}", ("A^{f16,g}_{tx,a}/2",)),
        True,
    ),
    (
        "range_kept",
        "before",
        (SUM, "A^{f16,g}_{tx,a}*C^{f32,g}_{a}", ("C^{f32,g}_{a}**2*A^{f16,g}_{tx,a}",)),
        False,
    ),
    ("at_least", "before", (SUM, "exp(C^{f32,g}_{a}**2)", "0.5"), 1.0),
    ("not_above", "before", (SUM, "0.5", "exp(C^{f32,g}_{a}**2)"), True),
    ("not_above", "before", (SUM, "C^{f32,g}_{a}", "A^{f16,g}_{tx,a}"), False),
    ("is_shift", "before", (SUM, "C^{f32,g}_{a}-C^{f32,g}_{0}"), False),
    ("takes_infinity", "before", (SUM, "A^{f16,g}_{tx,a}"), False),
    ("sources_of", "before", (SUM, "C^{f32,g}_{a}*A^{f16,g}_{tx,a}"), ("A", "C")),
    ("decided_by", "before", ("D",), ()),
    ("decided_by", "before", ("Y",), (COPY,)),
    ("amplified_by", "before", ("D",), ()),
    ("law", "pair", ("common-factor",), "a*b+a*c -> a*(b+c)"),
    ("law", "pair", ("into-extremum", "min"), "a*min(b,c) -> min(a*b,a*c)"),
    ("law", "pair", ("out-of-sum", "/"), "sum(b/a) -> sum(b)/a"),
    ("headroom", "pair", ("f32",), 80),
    ("same_value", "pair", (SUM, "C^{f32,g}_{a}", "0"), False),
    ("same_algebra", "pair", (SUM,), False),
    ("interchange", "before", ((0,), "tx", "a"), "exact"),
    ("loops_inside", "before", ((0,), "tx"), ("a",)),
    ("loops_inside", "before", ((1,), "tx"), ("a",)),
    ("loops_inside", "before", ((0,), "a"), ()),
    ("axes_in_use", "before", ((1, 1),), ("tx",)),
    ("parallel_loops", "before", ((0,),), ()),
    ("launch_loops", "before", ((0,),), ()),
    ("thread_axes", "before", ((1,),), ("tx",)),
    ("block_threads", "before", ((1, 1),), 3),
    ("private_tensors", "before", ((0,),), ()),
    ("private_tensors", "after", ((0,),), ("G",)),
    ("local_bytes", "before", ((0,),), 0),
    ("local_bytes", "after", ((0, 1),), 4),
    ("infinity_tests", "before", (SUM,), ()),
    ("strides", "before", ((0,), "a"), (0, 1)),
    ("strides", "before", ((0,), "tx"), (0, 1, 4)),
    ("unaligned", "before", ((0,), "a"), ()),
    ("vector_bytes", "before", ((0,), "a"), 16),
    ("lane_conditions", "before", ((1, 1), "a"), ("a<3", "a<2")),
    ("unrolled_equations", "before", ((1,),), 2),
    ("statement_text", "before", (COPY,), "F^{f32,l}=C^{f32,g}_{Y^{i64,g}_{tx}};"),
    ("loops_text", "before", ((0,),), "B^{2}_{tx=0}L^{4}_{a=0}"),
    ("header_text", "before", (RUN,), "B^{3}_{tx=0}L^{2}_{a=1}"),
    ("target_text", "before", (SUM,), "D^{f32,g}_{tx}"),
    ("value_text", "before", (SUM,), "D^{f32,g}_{tx}+A^{f16,g}_{tx,a}*C^{f32,g}_{a}"),
    ("guard_text", "before", (RUN,), "a<3"),
    ("guard_text", "before", (SUM,), ""),
    (
        "renamed_value",
        "before",
        (SUM, (("a", "c"), ("tx", "ty"))),
        "D^{f32,g}_{ty}+A^{f16,g}_{ty,c}*C^{f32,g}_{c}",
    ),
    ("statements", "before", ((),), 2),
    ("statements", "after", ((0,),), 3),
    ("loops_around", "before", (RUN,), ("tx", "a")),
    ("loops_around", "before", ((1, 1),), ("tx", "a")),
    ("loop_extent", "before", (RUN, "tx"), 3),
    ("loop_start", "before", (RUN, "a"), 1),
    ("loop_kind", "before", (RUN, "tx"), "B"),
    ("trip_count", "before", (RUN,), 6),
    ("reads", "before", ((1,),), ("C", "Y", "E", "F")),
    ("writes", "before", ((1,),), ("F", "E")),
    ("read_texts", "before", ((0,), "A"), ("A^{f16,g}_{tx,a}",)),
    ("write_texts", "after", ((0,), "G"), ("G^{f32,l}",)),
    ("element_reads", "before", ((0,), "C"), 8),
    ("element_writes", "after", ((0,), "D"), 2),
    ("uses_index", "before", ((0,), "D", "a"), False),
    ("uses_index", "before", ((1,), "C", "tx"), True),
    ("readers_of", "before", ("E",), (RUN,)),
    ("readers_of", "before", ("Y",), (COPY,)),
    ("writers_of", "after", ("G",), ((0, 0), (0, 1, 0))),
    ("role_of", "before", ("A",), "input"),
    ("role_of", "before", ("F",), "intermediate"),
    ("is_output", "before", ("D",), True),
    ("dtype_of", "before", ("A",), "f16"),
    ("scope_of", "before", ("F",), "l"),
    ("shape_of", "before", ("A",), (2, 4)),
    ("shape_of", "before", ("F",), ()),
    ("elements_of", "before", ("A",), 8),
    ("bytes_of", "before", ("A",), 16),
    ("evaluation_dtype", "pair", ("f16",), "f32"),
    ("expression_dtype", "before", (SUM,), "f32"),
    ("update_kind", "before", (SUM,), "update"),
    ("update_kind", "before", (RUN,), "recurrence"),
    ("update_op", "before", (SUM,), "+"),
    ("update_op", "before", (COPY,), ""),
    ("update_init", "before", (SUM,), "identity"),
    ("update_init", "after", ((0, 1, 0),), "continue"),
    ("reduction_loops", "before", (SUM,), ("a",)),
    ("depends", "before", (SUM, "tx"), "none"),
    ("depends", "before", (SUM, "a"), "reduction"),
    ("depends", "before", (RUN, "a"), "dependence"),
    ("conflict", "before", ((0,), (1,)), "none"),
    ("conflict", "before", ((1, 0), (1, 1)), "dependence"),
    ("dead_equations", "before", (), ()),
    ("sites", "before", ("loop_split",), 3),
    ("alternative", "before", ("loop_split", (0,), HALVED, (("factor", 2),), "loops"), 5),
    ("alternative", "before", ("loop_split", (0,), HALVED, (("factor", 2),), ""), 0),
    ("cost", "before", ("launches",), 2),
    ("cost", "before", ("at_once",), 3),
    ("cost", "before", ("barriers",), 0),
    ("cost", "before", ("flops",), 22),
    ("cost", "before", ("iterations",), 17),
    ("cost", "before", ("bytes_written_g",), 56),
    ("cost", "after", ("nests",), 2),
    ("divides", "pair", (12, 4), True),
    ("divides", "pair", (12, 5), False),
    ("product", "pair", (2, 3, 4), 24),
    ("quotient", "pair", (13, 4), 3),
    ("remainder", "pair", (13, 4), 1),
    ("at_most", "pair", (13, 4), False),
    ("changed_nests", "pair", (), (((0,), (1,)), ((0,), (1,)))),
    ("new_tensors", "pair", (), ("G",)),
    ("removed_tensors", "pair", (), ("F",)),
    ("same_signature", "pair", (), True),
    ("same_text", "pair", ((0,), (0,)), False),
    ("cost_change", "pair", ("equations",), 1),
]
ASKS_WRONG: list[tuple[str, Side, tuple[Value, ...], str]] = [
    ("no_such_kind", "before", (), "no derivation"),
    ("shape_of", "pair", ("A",), "no derivation"),
    ("divides", "before", (4, 2), "no derivation"),
    ("shape_of", "before", ("Q",), "no tensor"),
    ("dtype_of", "before", ("Q",), "no tensor"),
    ("shape_of", "before", (), "missing"),
    ("shape_of", "before", ("A", "C"), "too many"),
    ("loop_extent", "before", (SUM, "c"), "no loop 'c'"),
    ("depends", "before", (SUM, "c"), "no loop 'c'"),
    ("statement_text", "before", ((7,),), "no statement"),
    ("statement_text", "before", ((),), "names no statement"),
    ("statement_text", "before", ((0, 0, 0),), "no statement"),
    ("statement_text", "before", ((-1,),), "not a path"),
    ("statement_text", "before", ("0",), "not a path"),
    ("value_text", "before", ((0,),), "is a nest"),
    ("loops_text", "before", (SUM,), "is an equation"),
    ("renamed_value", "before", (SUM, "ac"), "not a renaming"),
    ("renamed_value", "before", (SUM, (("a",),)), "not a renaming"),
    ("conflict", "before", ((0,), (1, 0)), "no siblings"),
    ("cost", "before", ("joules",), "no cost figure"),
    ("sites", "before", ("loop_rotation",), "no strategy"),
    ("alternative", "before", ("loop_split", (1,), HALVED, (), ""), "no such site"),
    ("alternative", "before", ("loop_split", (0,), HALVED, (("factor", 3),), ""), "parameters"),
    ("alternative", "before", ("loop_split", (0,), HALVED, (), "joules"), "no cost figure"),
    ("evaluation_dtype", "before", ("f8",), "no dtype"),
    ("divides", "pair", (4, 0), "not a positive divisor"),
    ("at_most", "pair", (4, "5"), "not an integer"),
    ("product", "pair", (True, 2), "not an integer"),
]


def _fact(kind: str, side: Side, arguments: tuple[Value, ...], value: Value = 0) -> Fact:
    real: Side = "before" if kind == "evaluation_dtype" and side == "pair" else side
    return Fact(kind, real, arguments, value)


@pytest.mark.parametrize(("kind", "side", "arguments", "value"), EXPECTED)
def test_value(kind: str, side: Side, arguments: tuple[Value, ...], value: Value) -> None:
    found = derive(_fact(kind, side, arguments), BEFORE, AFTER)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("kind", "side", "arguments", "value"), EXPECTED)
def test_phrase_says_the_value(
    kind: str, side: Side, arguments: tuple[Value, ...], value: Value
) -> None:
    text = phrase(_fact(kind, side, arguments, value))
    assert text == text.strip()
    assert text[-1] not in ".;,"
    told = not (kind == "alternative" and arguments[-1] == "")
    if told and isinstance(value, int) and not isinstance(value, bool):
        assert str(value) in text


@pytest.mark.parametrize(("kind", "side", "arguments", "message"), ASKS_WRONG)
def test_questions_without_an_answer(
    kind: str, side: Side, arguments: tuple[Value, ...], message: str
) -> None:
    with pytest.raises(DerivationError, match=message):
        derive(Fact(kind, side, arguments, 0), BEFORE, AFTER)


def test_every_kind_is_tried() -> None:
    assert {kind for kind, *_ in EXPECTED} == set(ONE_SIDED) | set(PAIRED)


def test_every_kind_has_a_phrase_and_a_line_in_the_table() -> None:
    kinds = set(ONE_SIDED) | set(PAIRED)
    assert set(PHRASES) == kinds
    listed = re.findall(r"^([a-z_]+)  +\S?", derive_module.__doc__ or "", re.MULTILINE)
    assert set(listed) - {"kind"} == kinds


def test_the_claimed_value_is_not_looked_at() -> None:
    assert derive(Fact("trip_count", "before", (SUM,), 999), BEFORE, AFTER) == 8
