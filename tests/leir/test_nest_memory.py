"""What is remembered of nests changes no answer, in whatever order the questions come."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from steptp_dagster.leir import nest_memory
from steptp_dagster.leir.accesses import Accesses
from steptp_dagster.leir.ast import Program
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from tests.support.corpus import INVALID, VALID
from tests.support.programs import random_program
from tests.support.remembering import answers, assert_memory_changes_nothing, family
from tests.support.tangles import random_tangle
from tests.support.twins import random_twins


def _sources(seeds: range) -> Iterator[SignedProgram]:
    for seed in seeds:
        yield random_program(seed)
        yield random_twins(seed)
        yield random_tangle(seed)


def _families(programs: list[SignedProgram], children: int) -> int:
    invalid = 0
    for i, program in enumerate(programs):
        rng = random.Random(i)
        invalid += assert_memory_changes_nothing(family(program, rng, children), rng)
    return invalid


def test_memory_changes_nothing() -> None:
    assert _families(list(_sources(range(8))), 5) > 20
    corpus = [case.signed for case in (*VALID, *INVALID)]
    assert _families(corpus[::9], 3) > 5


@pytest.mark.slow
def test_memory_changes_nothing_on_many_programs() -> None:
    assert _families(list(_sources(range(100, 500))), 8) > 1000
    assert _families([case.signed for case in (*VALID, *INVALID)], 6) > 300


def test_a_full_memory_forgets_and_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NESTS", "ANSWERS", "PLACES"):
        monkeypatch.setattr(nest_memory, name, 2)
    programs = list(_sources(range(12, 16)))
    assert assert_memory_changes_nothing(programs, random.Random(0)) >= 0


HEADER = "# input A f32[4]\n# input Y i64[4] in 0..3\n# output D f32[4]\n"


def test_equal_nests_have_positions_of_their_own() -> None:
    """The second program has the same broken nest at another place in its text."""
    broken = "L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a+1};];"
    one = read(HEADER + broken).signed
    other = read(HEADER + "L^{4}_{a=0}[X^{f32,g}_{a}=A^{f32,g}_{a};];" + broken).signed
    (first,), (second,) = check(one), check(other)
    assert (first.kind, first.path) == ("out-of-bounds", (0, 0))
    assert (second.kind, second.path) == ("out-of-bounds", (1, 0))
    assert second.pos > first.pos


def test_a_nest_is_judged_by_what_its_tables_hold() -> None:
    """The last nest stays as it is; what it reads through the table changes."""
    text = (
        "L^{4}_{a=0}[K^{i64,g}_{a}=a+SHIFT;];L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{K^{i64,g}_{a}};];"
    )
    good = read(HEADER + text.replace("SHIFT", "0")).signed
    bad = read(HEADER + text.replace("SHIFT", "1")).signed
    last = good.program.nests[1]
    bad = SignedProgram(Program((bad.program.nests[0], last)), bad.signature)
    assert check(good) == ()
    assert [v.kind for v in check(bad)] == ["out-of-bounds"]
    assert check(SignedProgram(good.program, good.signature)) == ()


def test_a_nest_is_judged_by_the_signature() -> None:
    text = HEADER + "L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a};];"
    good = read(text).signed
    assert check(good) == ()
    variables = tuple(
        replace(v, shape=(3,)) if v.name == "A" else v for v in good.signature.variables
    )
    smaller = SignedProgram(good.program, replace(good.signature, variables=variables))
    assert [v.kind for v in check(smaller)] == ["out-of-bounds"]
    output = tuple(
        replace(v, role="output") if v.name == "A" else v for v in good.signature.variables
    )
    unwritten = SignedProgram(good.program, replace(good.signature, variables=output))
    assert {v.kind for v in check(unwritten)} == {"unwritten-read", "output-not-covered"}


def test_a_nest_is_judged_by_who_writes_before() -> None:
    """The same reader after a whole write, after half of it, and before it."""
    write = "L^{N}_{a=0}[X^{f32,g}_{a}=A^{f32,g}_{a};];"
    read_ = "L^{4}_{a=0}[D^{f32,g}_{a}=X^{f32,g}_{a};];"
    whole, half = write.replace("N", "4"), write.replace("N", "2")
    for _ in range(2):
        assert check(read(HEADER + whole + read_).signed) == ()
        kinds = {v.kind for v in check(read(HEADER + half + read_).signed)}
        assert kinds == {"out-of-bounds"}
        assert {v.kind for v in check(read(HEADER + read_ + whole).signed)} == {"unwritten-read"}
        assert check(read(HEADER + half + whole + read_).signed) == ()


def test_an_output_is_judged_by_all_who_write_it() -> None:
    low = "L^{2}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a};];"
    high = "L^{2}_{a=2}[D^{f32,g}_{a}=A^{f32,g}_{a};];"
    for _ in range(2):
        assert check(read(HEADER + low + high).signed) == ()
        assert [v.kind for v in check(read(HEADER + high).signed)] == ["output-not-covered"]


def test_a_race_is_found_where_another_nest_hid_it_before() -> None:
    """What is wrong with a tensor's scope leaves it out of deeper checks, in that program only."""
    race = "P^{4}_{a=0}[X^{f32,g}_{0}=A^{f32,g}_{a};];L^{4}_{a=0}[D^{f32,g}_{a}=X^{f32,g}_{0};];"
    hidden = read(HEADER + race + "L^{1}_{a=0}[X^{f32,s}_{a}=A^{f32,g}_{a};];").signed
    assert "loop-conflict" not in {v.kind for v in check(hidden)}
    assert [v.kind for v in check(read(HEADER + race).signed)] == ["loop-conflict"]


def test_uses_are_shared_by_programs_with_the_nest_at_one_place() -> None:
    one = random_program(3)
    other = SignedProgram(one.program, one.signature)
    assert Accesses(one).part(0) is Accesses(other).part(0)
    assert answers(one) == answers(other)
