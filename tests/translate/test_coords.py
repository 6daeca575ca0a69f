"""Index arithmetic against plain integers: no simplification changes a value."""

import itertools
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from steptp_dagster.leir.ast import Binary, Expr, Index, Int, Unary
from steptp_dagster.translate.coords import Coord, constant, flattened, loop, reshaped

EXTENTS = {"a": 3, "c": 4, "d": 6}


def value(expr: Expr, at: dict[str, int]) -> int:
    """An index expression evaluated with Python's integers, floor division included."""
    match expr:
        case Int():
            return expr.value
        case Index():
            return at[expr.name]
        case Unary():
            return -value(expr.operand, at)
        case Binary():
            left, right = value(expr.left, at), value(expr.right, at)
            results = {"+": left + right, "-": left - right, "*": left * right}
            if expr.op in results:
                return results[expr.op]
            return left // right if expr.op == "//" else left % right
    raise AssertionError(expr)


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> tuple[Coord, Expr]:
    """A coordinate, and the same arithmetic as a tree that nothing simplified."""
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from(sorted(EXTENTS)))
        return loop(name, EXTENTS[name]), Index(name)
    coord, tree = draw(trees(depth=depth - 1))
    number = draw(st.integers(1, 12))
    op = draw(st.sampled_from(("+", "-", "*", "//", "%", "sum")))
    if op == "sum":
        other, other_tree = draw(trees(depth=depth - 1))
        return coord + other, Binary("+", tree, other_tree)
    results = {
        "+": coord + number,
        "-": coord - number,
        "*": coord * number,
        "//": coord // number,
        "%": coord % number,
    }
    return results[op], Binary(op, tree, Int(number))


@given(trees())
@settings(max_examples=100, deadline=None)
def test_simplification_keeps_the_value_and_bounds_hold(pair: tuple[Coord, Expr]) -> None:
    coord, tree = pair
    shown = coord.to_expr()
    for point in itertools.product(*(range(n) for n in EXTENTS.values())):
        at = dict(zip(EXTENTS, point, strict=True))
        expected = value(tree, at)
        assert value(shown, at) == expected
        assert coord.low <= expected <= coord.high


shapes = st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=1, max_size=4)


@given(shapes, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_reshape_keeps_row_major_order(shape: list[int], rng: object) -> None:
    factors = [f for n in shape for f in ((2, 2) if n == 4 else (2, 3) if n == 6 else (n,))]
    rng.shuffle(factors)  # type: ignore[attr-defined]
    other = tuple(factors)
    for index in itertools.product(*(range(n) for n in shape)):
        coords = tuple(constant(i) for i in index)
        there = reshaped(coords, tuple(shape), other)
        assert all(0 <= c.constant < n for c, n in zip(there, other, strict=True))
        assert flattened(there, other) == flattened(coords, shape)
    assert prod(other) == prod(shape)


def test_splitting_and_merging_again_is_the_plain_index() -> None:
    i = loop("a", 24)
    assert (i // 6) * 6 + i % 6 == i
    assert ((i // 6) * 6 + i % 6) * 5 == i * 5
    assert (i // 2) // 3 == i // 6
    assert (i % 12) % 4 == i % 4
