"""The compact spelling: lossless for every program, shorter, and with errors that point."""

import random
from itertools import islice

import pytest
from hypothesis import given, settings

from steptp_dagster.dataset.tokens import count
from steptp_dagster.leir.ast import Access, Binary, Equation, Index, Loop, Nest, Program
from steptp_dagster.leir.compact import compact, write
from steptp_dagster.leir.compact_parser import is_compact, parse_compact, read_either
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.fileform import write as file_form
from steptp_dagster.leir.parser import ParseError, parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.walk import map_program
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.base import Refusal
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import take
from steptp_dagster.translate.translate import TranslationRefusal, translate
from tests.support.corpus_valid import VALID
from tests.support.strategy_steps import step_cases, step_named
from tests.support.syntax import SLOW, programs

HEADER = "# input A f32[4]\n# output D f32[4]\n"


@settings(deadline=None, max_examples=60, suppress_health_check=SLOW)
@given(programs())
def test_reading_gives_the_program_back(program: Program) -> None:
    text = compact(program)
    read_back = parse_compact(text)
    assert read_back.program == program
    assert read_back.notes == ()
    assert compact(read_back.program) == text


@settings(deadline=None, max_examples=25, suppress_health_check=SLOW)
@given(programs())
def test_white_space_says_nothing(program: Program) -> None:
    text = compact(program)
    pieces = text.replace(";", " ;\n ").replace("{", "{ ").replace("=", " =").replace("] ", "]")
    loose = pieces.replace("< =", "<=").replace("> =", ">=").replace("! =", "!=")
    for sign in "+-*/?=":
        loose = loose.replace(f"{sign} =", f"{sign}=")
    assert parse_compact(loose).program == program


def test_results_of_strategies_come_back() -> None:
    paper = short = 0
    for strategy, name in list(step_cases())[::25]:
        step = step_named(strategy, name)
        for signed in (step.before, step.after):
            text = write(signed)
            assert read_either(text).signed == signed
            paper += count(to_text(signed.program))
            short += count(compact(signed.program))
    assert 1 - short / paper >= 0.45


@pytest.mark.slow
@pytest.mark.parametrize("program", sorted(SOURCES))
def test_all_sources_and_steps_from_them_come_back(program: str) -> None:
    source = SOURCES[program]
    (shape,) = source.sample(random.Random(0), 1)
    built = source.build(shape, "f32", 0)
    result = translate(built.module, built.example(0), source=program, ranges=built.ranges)
    if isinstance(result, TranslationRefusal):
        return
    found = [result.signed]
    for strategy in list(strategies().values())[::5]:
        for site in islice(strategy.survey(result.signed).sites, 1):
            step = take(strategy, result.signed, site)
            if not isinstance(step, Refusal):
                found.append(step.after)
    for signed in found:
        assert read_either(write(signed)).signed == signed


def spelled(text: str) -> str:
    return compact(parse(text).program)


@pytest.mark.parametrize(
    ("paper", "short"),
    [
        ("L^{4}_{a=0}[D^{f32,g}_{a}=1;];", "f32;La4D[a]=1"),
        ("L^{4}_{a=2}[D^{f32,g}_{a}=1:a<3;];", "f32;La4+2D[a]=1:a<3"),
        ("L^{4}_{a=0}[D^{f32,l}=A^{f16,g};];", "f16;La4D^f32l=A"),
        ("L^{4}_{a=0}[D^{f32,s}=D^{f32,s};];", "f32;La4D^s=D"),
        ("L^{4}_{a=0}[D^{f32,g}=D^{f32,g}-(1-a);];", "f32;La4D-=1-a"),
        ("L^{4}_{a=0}[D^{f32,g}=D^{f32,g}-1-a;];", "f32;La4D=D-1-a"),
        ("L^{4}_{a=0}[D^{f32,g}=max(D^{f32,g},1);];", "f32;La4D>?=1"),
        ("L^{4}_{a=0}[D^{f32,g}=min(1,D^{f32,g});];", "f32;La4D=min(1,D)"),
        ("L^{4}_{a=0}[D^{f32,g}=if_then_else(a<1,a,2);];", "f32;La4D=if(a<1,a,2)"),
        (
            "L^{4}_{a=0}[L^{3}_{c=0}[A^{f32,g}_{a}=c;];D^{f32,g}_{a}=1;];"
            "L^{3}_{c=0}[C^{f32,g}_{c}=1;];",
            'f32;La4{Lc3A[a]=c;D[a]=1}"C[c]=1',
        ),
        ("L^{4}_{a=0}[L^{3}_{c=0}[A^{f32,g}_{a}=c;];];", "f32;La4{Lc3A[a]=c}"),
    ],
)
def test_what_is_left_out(paper: str, short: str) -> None:
    assert spelled(paper) == short
    assert to_text(parse_compact(short).program) == paper


def test_names_that_could_be_taken_for_something_else() -> None:
    # An index called `if`; indices called like scopes and dtypes, behind an annotation.
    loops = tuple(Loop("L", name, 4) for name in ("if", "g", "s", "f"))
    target = Access("D", "f32", "g", (Index("if"), Index("g"), Index("s"), Index("f")))
    scalar = Access("C", "i64", "g")
    value = Binary("+", Access("A", "f32", "s", (scalar, Index("g"), Index("s"))), Index("if"))
    program = Program((Nest(loops, (Equation(target, value),)),))
    assert parse_compact(compact(program)).program == program


def test_conflicting_annotations_are_kept() -> None:
    first, second = Access("D", "f32", "g"), Access("D", "f16", "l")
    index = Access("D", "i64", "g")
    around = Access("D", "f32", "g", (index,))
    nests = [
        Nest((Loop("L", "a", 4),), (Equation(t, v),))
        for t, v in ((first, second), (second, first), (around, Binary("+", around, first)))
    ]
    program = Program(tuple(nests))
    text = compact(program)
    assert text == 'f32;La4D=D^f16l;"D=D^f32g;"D[D^i64]+=D^f32'
    # Without a definition that wins, as `parse` reads it.
    assert parse_compact(text).program == parse(to_text(program)).program


def test_a_header_defines_reads() -> None:
    file = read_either(f"{HEADER}f16;La4D^f32[a]=A[a]")
    assert (
        file.signed
        == read(f"{HEADER}L^{{4}}_{{a=0}}[D^{{f32,g}}_{{a}}=A^{{f32,g}}_{{a}};];").signed
    )
    (note,) = file.notes
    assert "read as f16,g but defined as f32,g" in str(note)


def test_both_spellings_are_told_apart() -> None:
    for case in VALID:
        signed = read(case.text).signed
        assert not is_compact(case.text)
        short = write(signed)
        assert is_compact(short)
        assert read_either(short).signed == signed == read_either(case.text).signed
        assert write(signed, "paper") == file_form(signed)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("f31;La4D=1", "the usual dtype", 1),
        ("La4D=1", "the usual dtype", 1),
        ("f32;D[a]=1", "a loop such as La16", 5),
        ('f32;"D=1', "in the first nest", 5),
        ("f32;La0D=1", "extent of at least 1", 7),
        ("f32;Ltx4D=1", "does not start with an axis", 6),
        ("f32;La4", "'{'", 8),
        ("f32;La4{D[a]=1", "the '{' at line 1, column 8 is not closed", 15),
        ("f32;La4D[a=1", "']'", 11),
        ("f32;La4D[a]", "'='", 12),
        ("f32;La4D[a]==1", "'+='", 12),
        ("f32;La4D[a]=1 C=2", "';'", 15),
        ("f32;La4D^f33[a]=1", "such as ^f32s", 9),
        ("f32;La4D^=1", "such as ^f32s", 9),
        ("f32;La4D=exp(1,2)", "1 argument of exp", 15),
        ("f32;La4L[a]=1", "a loop such as La16", 8),
        ("f32;La4D={}", "a number", 10),
        ("f32;La4D=é", "only ASCII", 10),
        ("f32;La99999999999999999999D=1", "at most", 7),
    ],
)
def test_errors_say_what_and_where(text: str, message: str, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_compact(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)


def test_the_limits_of_the_paper_spelling_hold() -> None:
    deep = "La4{" * 99
    assert parse_compact(f"f32;{deep}Lc4D=1{'}' * 99}")
    for text in (
        f"f32;{deep}La4{{Lc4D=1}}{'}' * 99}",
        f"f32;La4D+={'+'.join('1' * 200)}",
        f"f32;La4D={'(' * 100}1{')' * 100}",
    ):
        with pytest.raises(ParseError, match="at most"):
            parse_compact(text)


def test_positions_are_those_of_the_text() -> None:
    text = "f32;La4Lc8D[a]+=A[a,c]"
    (nest,) = parse_compact(text).program.nests
    (equation,) = nest.body
    assert isinstance(equation, Equation)
    assert isinstance(equation.value, Binary)
    assert [lp.pos for lp in nest.loops] == [4, 7]
    assert equation.pos == equation.target.pos == equation.value.pos == text.index("D")
    assert equation.value.right.pos == text.index("A")
    assert nest == map_program(parse_compact(text).program, lambda e: e).nests[0]
