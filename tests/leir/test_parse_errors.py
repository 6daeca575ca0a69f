"""Texts that are no LEIR: one error each, at the right place, in words that help."""

import pickle
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.leir.parser import ParseError, parse
from steptp_dagster.leir.texterror import TextError

HEAD = "L^{4}_{a=0}["
ALL_KINDS = "L P V U B"

CASES = [
    ("", 1, 1, "a loop", "the end of the text"),
    ("   \n ", 2, 2, "a loop", "the end of the text"),
    ("hello", 1, 1, "a loop", "'hello'"),
    ("L", 1, 2, "'^{'", "the end of the text"),
    ("L^{x}_{a=0}[", 1, 4, "positive integer", "'x'"),
    ("L^{-4}_{a=0}[", 1, 4, "positive integer", "'-'"),
    ("L^{1.5}_{a=0}[", 1, 4, "positive integer", "'1.5'"),
    ("L^{0}_{a=0}[A^{f32,g}=1;];", 1, 4, "at least 1", "'0'"),
    ("L^{ 0 }_{a=0}[A^{f32,g}=1;];", 1, 5, "at least 1", "'0'"),
    ("L^{99999999999999999999}_{a=0}[A^{f32,g}=1;];", 1, 4, "at most 9223372036854775807", "'99"),
    ("L^{4}_{A=0}[A^{f32,g}=1;];", 1, 8, "index name", "'A'"),
    ("L^{4}_{exp=0}[A^{f32,g}=1;];", 1, 8, "no function name", "'exp'"),
    ("L^{4}_{a=c}[A^{f32,g}=1;];", 1, 10, "integer start", "'c'"),
    ("L^{4}_{tx=0}[A^{f32,g}=1;];", 1, 8, "does not start with an axis", "'tx'"),
    ("B^{4}_{a=0}[A^{f32,g}=1;];", 1, 8, "starts with bx", "'a'"),
    ("Q^{4}_{a=0}[A^{f32,g}=1;];", 1, 1, ALL_KINDS, "'Q'"),
    (HEAD + "Q^{4}_{c=0}[A^{f32,g}=1;];];", 1, 13, ALL_KINDS, "'Q'"),
    ("L^{4}_{a=0}A^{f32,g}=1;];", 1, 12, "'['", "'A'"),
    (HEAD, 1, 13, "a tensor", "the end of the text"),
    (HEAD + "];", 1, 13, "a tensor", "']'"),
    (HEAD + "A^{f32,g}=1;", 1, 25, "']'", "the end of the text; the '[' at line 1, column 12"),
    (HEAD + "A^{f32,g}=1;]", 1, 26, "';'", "the end of the text"),
    (HEAD + "A^{f32,g}=1];", 1, 24, "';'", "']'"),
    (HEAD + "A^{f32,g}=1;];x", 1, 27, "a loop", "'x'"),
    (HEAD + "A^{f32,g}==1;];", 1, 22, "'='", "'=='"),
    (HEAD + "A^{f33,g}=1;];", 1, 16, "f16 bf16 f32 f64 i8 u8 i16 i32 i64 bool", "'f33'"),
    (HEAD + "A^{f32,q}=1;];", 1, 20, "one of g s l", "'q'"),
    (HEAD + "A^{f32}=1;];", 1, 19, "','", "'}'"),
    (HEAD + "A=1;];", 1, 14, "'^{'", "'='"),
    (HEAD + "La^{f32,g}=1;];", 1, 13, "B L P T U V", "'La'"),
    (HEAD + "T^{f32,g}=1;];", 1, 13, "B L P T U V", "'T'"),
    (HEAD + "AB^{f32,g}=1;];", 1, 13, "a tensor name", "'AB'"),
    (HEAD + "a=1;];", 1, 13, "a tensor", "'a'"),
    (HEAD + "A^{f32,g}_{}=1;];", 1, 24, "an index", "'}'"),
    (HEAD + "A^{f32,g}_{a,}=1;];", 1, 26, "an index", "'}'"),
    (HEAD + "A^{f32,g}_{a;];", 1, 25, "'}'", "';'; the '{' at line 1, column 22"),
    (HEAD + "A^{f32,g}=;];", 1, 23, "a number", "';'"),
    (HEAD + "A^{f32,g}=(a;];", 1, 25, "')'", "';'; the '(' at line 1, column 23"),
    (HEAD + "A^{f32,g}=a);];", 1, 24, "an operator", "')'"),
    (HEAD + "A^{f32,g}=a+;];", 1, 25, "a number", "';'"),
    (HEAD + "A^{f32,g}=a c;];", 1, 25, "an operator", "'c'"),
    (HEAD + "A^{f32,g}=a^c;];", 1, 24, "an operator", "'^'"),
    (HEAD + "A^{f32,g}=!a;];", 1, 23, "a number", "'!'"),
    (HEAD + "A^{f32,g}=.5;];", 1, 23, "a number", "'.'"),
    (HEAD + "A^{f32,g}=1e999;];", 1, 23, "binary64", "'1e999'"),
    (HEAD + "A^{f32,g}=foo(1);];", 1, 23, "exp log sqrt abs erf max min if_then_else", "'foo'"),
    (HEAD + "A^{f32,g}=exp;];", 1, 23, "a number", "'exp'"),
    (HEAD + "A^{f32,g}=max(1);];", 1, 28, "2 arguments of max", "')'"),
    (HEAD + "A^{f32,g}=max(1,2,3);];", 1, 30, "2 arguments of max", "','"),
    (HEAD + "A^{f32,g}=exp(1,2);];", 1, 28, "1 argument of exp", "','"),
    (HEAD + "A^{f32,g}=1:;];", 1, 25, "a number", "';'"),
    (HEAD + "A^{f32,g}=1:a<2:a<3;];", 1, 28, "';'", "':'"),
    (HEAD + "A^{f32,g}=L^{4}_{a=0};];", 1, 23, "a tensor name", "'L^{4}_{a=0}'"),
    (HEAD + "A^{f32,g}=a×2;];", 1, 24, "ASCII", "'×'"),
    (HEAD + "\n  A^{f32,g}_{a}=\n\t(a+]2);];", 3, 5, "a number", "']'"),
]


@pytest.mark.parametrize(("text", "line", "column", "expected", "found"), CASES)
def test_position_and_words(text: str, line: int, column: int, expected: str, found: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert error.message.startswith("expected ")
    wanted, _, got = error.message.partition(", found ")
    assert expected in wanted
    assert got.startswith(found)
    assert error.expected
    assert all(option in wanted for option in error.expected)
    assert error.offset == sum(len(x) + 1 for x in text.split("\n")[: line - 1]) + column - 1


@pytest.mark.parametrize("text", [case[0] for case in CASES])
def test_the_caret_stands_under_the_offender(text: str) -> None:
    for padded in (text, HEAD + "D^{f32,g}_{a}=a;" * 300 + "];" + text + " " * 50 + "];" * 60):
        try:
            parse(padded)
        except ParseError as error:
            shown, caret = error.excerpt.split("\n")
            assert caret.strip() == "^"
            at = len(caret) - 1
            offender = padded[error.offset : error.offset + 1]
            assert shown[at : at + 1] in (offender, "?", "") or offender.isspace()
            assert len(shown) <= 80
            assert str(error).startswith(error.message)
            assert f"line {error.line}, column {error.column}" in str(error)


@pytest.mark.parametrize(
    "build",
    [
        lambda n: HEAD + "A^{f32,g}=" + "(" * n + "1" + ")" * n + ";];",
        lambda n: HEAD + "A^{f32,g}=" + "-" * n + "1;];",
        lambda n: HEAD + "A^{f32,g}=" + "1**" * n + "1;];",
        lambda n: HEAD + "A^{f32,g}=" + "1+" * n + "1;];",
        lambda n: HEAD + "A^{f32,g}=" + "(1+" * n + "1" + ")" * n + ";];",
        lambda n: HEAD + "A^{f32,g}=" + "exp(" * n + "1" + ")" * n + ";];",
        lambda n: HEAD + "A^{f32,g}=" + "A^{i32,g}_{" * n + "1" + "}" * n + ";];",
        lambda n: HEAD + "A^{f32,g}=" + "A_{" * n + "1" + "}^{i32,g}" * n + ";];",
        lambda n: HEAD * n,
        lambda n: (HEAD + "A^{f32,g}=1;]") * n,
        lambda n: HEAD + "A^{f32,g}=" + "9" * n + ";];",
        lambda n: HEAD + "A^{f32,g}=0." + "9" * n + ";];",
        lambda n: "L^{" + "9" * n + "}_{a=0}[A^{f32,g}=1;];",
        lambda n: "L^{ " + "9" * n + "}_{a=0}[A^{f32,g}=1;];",
        lambda n: "[" * n,
        lambda n: "\x00\xff" * n,
        lambda n: "\x00\x7f\x1b" * n,
    ],
)
def test_excess_is_a_parse_error(build: Callable[[int], str]) -> None:
    with pytest.raises(ParseError):
        parse(build(10_000))


def test_a_full_stack_is_a_parse_error() -> None:
    deep = HEAD + "A^{f32,g}=" + "exp(" * 90 + "1" + ")" * 90 + ";];"
    assert parse(deep).program.nests

    def descend(frames: int) -> None:
        if frames:
            descend(frames - 1)
        else:
            parse(deep)

    used = len(_frames())
    with pytest.raises(ParseError, match="nesting"):
        descend(sys.getrecursionlimit() - used - 120)


def _frames() -> list[str]:
    names, frame = [], sys._getframe()
    while frame.f_back is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names


@given(st.text(alphabet="LPB^{}_[]=;:,()+-*/%<>&|!.0149acetxAfi32gsl \n\x00", max_size=60))
def test_garbage_is_a_parse_error(text: str) -> None:
    try:
        parse(text)
    except ParseError as error:
        assert 0 <= error.offset <= len(text)


SAMPLE = "B^{4}_{tx=0}L^{8}_{a=0}[D^{f32,g}_{tx,a*2+1}=max(-A^{f16,s}_{tx},1.5e-7)**2:1<=a<3;];"


@given(
    st.integers(0, len(SAMPLE) - 1), st.integers(0, 6), st.sampled_from(["", ";", "a", "}", "0"])
)
def test_damaged_programs_parse_or_fail_cleanly(at: int, gone: int, put: str) -> None:
    text = SAMPLE[:at] + put + SAMPLE[at + gone :]
    try:
        parse(text)
    except ParseError as error:
        assert error.message.startswith("expected ")


def test_errors_can_be_pickled() -> None:
    with pytest.raises(ParseError) as caught:
        parse("L^{4}_{a=0}[;")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is ParseError
    assert isinstance(copy, TextError | ValueError)
    assert str(copy) == str(caught.value)
    assert (copy.line, copy.column, copy.expected) == (1, 13, caught.value.expected)
