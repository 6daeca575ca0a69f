"""The rewriting helpers: inverses of subscripts by enumeration, factors, sums, renaming."""

from collections.abc import Iterator
from itertools import product

import pytest

from steptp_dagster.leir.ast import Binary, Equation, Expr, Index, Int, Loop, Nest
from steptp_dagster.leir.instance_values import evaluate
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import expr_text, statement_text
from steptp_dagster.leir.walk import substitute
from steptp_dagster.strategies.inlining import inverse, value_range
from steptp_dagster.strategies.rewrite import (
    affine_sum,
    exact_factors,
    guarded,
    rename_loops,
    tail_factors,
)

WRITER = (Loop("L", "a", 3), Loop("L", "c", 4), Loop("L", "d", 2, start=1))
READER = (Loop("L", "f", 12), Loop("L", "g", 4), Loop("L", "h", 3))


def _subscripts(text: str) -> tuple[Expr, ...]:
    nest = parse(f"L^{{1}}_{{q=0}}[D^{{f32,g}}_{{{text}}}=0;];").program.nests[0]
    equation = nest.body[0]
    assert isinstance(equation, Equation)
    return equation.target.subscripts


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a,c", "h,g"),
        ("c,a", "g,h"),
        ("a+2", "h+3"),
        ("c-1", "g"),
        ("2+a", "h+2"),
        ("3-c", "g"),
        ("3-c", "3-g"),
        ("a*5", "h*5"),
        ("a*5", "f"),
        ("a*4+c", "f"),
        ("a*4+c", "h*4+g"),
        ("a*4+c", "h*4+(g+1)%4"),
        ("c+4*a", "f"),
        ("a*8+(c*2+(d-1))", "f*2"),
        ("a,7", "h,7"),
    ],
)
def test_an_inverse_finds_the_iteration_that_wrote_the_element(written: str, read: str) -> None:
    target, access = _subscripts(written), _subscripts(read)
    solved = inverse(target, access, WRITER, READER)
    assert solved is not None
    back = [substitute(subscript, solved) for subscript in target]
    places = {
        tuple(int(evaluate(s, _point(WRITER, values))) for s in target)
        for values in _iterations(WRITER)
    }
    found = 0
    for values in _iterations(READER):
        point = _point(READER, values)
        place = tuple(int(evaluate(s, point)) for s in access)
        if place in places:
            found += 1
            assert tuple(int(evaluate(s, point)) for s in back) == place
    assert found > 0


def _iterations(loops: tuple[Loop, ...]) -> Iterator[tuple[int, ...]]:
    return product(*(range(loop.start, loop.start + loop.extent) for loop in loops))


def _point(loops: tuple[Loop, ...], values: tuple[int, ...]) -> dict[str, int]:
    return dict(zip((loop.index for loop in loops), values, strict=True))


@pytest.mark.parametrize("written", ["a//2", "a%2", "a*3+c", "a+c", "a*c", "(a+1)%3"])
def test_what_cannot_be_solved_is_none(written: str) -> None:
    assert inverse(_subscripts(written), (Index("f"),), WRITER, READER) is None


def test_an_interval_holds_every_value() -> None:
    loops = {loop.index: loop for loop in WRITER}
    for text in ("a*4+c", "3-c", "(c+d)//2", "(a*4+c)%5", "a*c-d", "7"):
        (expr,) = _subscripts(text)
        interval = value_range(expr, loops)
        assert interval is not None
        values = [int(evaluate(expr, _point(WRITER, v))) for v in _iterations(WRITER)]
        assert interval[0] <= min(values)
        assert max(values) <= interval[1]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 12, 97, 360, 1024, 4096])
def test_factors(n: int) -> None:
    exact, tails = exact_factors(n), tail_factors(n)
    assert all(1 < f < n and n % f == 0 for f in exact)
    assert all(1 < f < n and n % f for f in tails)
    assert len(exact) <= 8
    assert len(tails) <= 8
    assert list(exact) == sorted(set(exact))
    assert bool(exact) == any(n % f == 0 for f in range(2, n))
    assert exact or tails or n <= 2


@pytest.mark.parametrize(
    ("base", "offset", "expected"),
    [
        (Index("a"), 0, "a"),
        (Index("a"), 3, "a+3"),
        (Index("a"), -3, "a-3"),
        (Binary("+", Index("a"), Int(3)), -3, "a"),
        (Binary("-", Index("a"), Int(1)), 3, "a+2"),
        (Int(5), -2, "3"),
        (Int(1), -2, "1-2"),
    ],
)
def test_sums_fold_their_constants(base: Expr, offset: int, expected: str) -> None:
    assert expr_text(affine_sum(base, offset)) == expected


def _nest(text: str) -> Nest:
    return parse(text).program.nests[0]


def test_renaming_swaps_and_reaches_index_tables() -> None:
    nest = _nest("L^{2}_{a=0}[L^{2}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{Y^{i64,g}_{c}}:a<c;];];")
    renamed = rename_loops(nest, {"a": "c", "c": "a"})
    assert statement_text(renamed) == (
        "L^{2}_{c=0}[L^{2}_{a=0}[D^{f32,g}_{c,a}=A^{f32,g}_{Y^{i64,g}_{a}}:c<a;];];"
    )


def test_a_guard_comes_in_front() -> None:
    nest = _nest("L^{9}_{a=0}[D^{f32,g}_{a}=1;E^{f32,g}_{a}=2:a>1;];")
    condition = _nest("L^{1}_{q=0}[D^{f32,g}=1:a<5;];").body[0]
    assert isinstance(condition, Equation)
    assert condition.guard is not None
    assert statement_text(guarded(nest, condition.guard)) == (
        "L^{9}_{a=0}[D^{f32,g}_{a}=1:a<5;E^{f32,g}_{a}=2:a<5&a>1;];"
    )
