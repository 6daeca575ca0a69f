"""Bags of table rows, and other sums over three operands or two dimensions."""

from steptp_dagster.leir.ast import Binary, Expr, Index, Int
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_index import picker, place
from steptp_dagster.translate.ops_reduce import largest
from steptp_dagster.translate.scalars import (
    ONE,
    ZERO,
    Scalar,
    add,
    choose,
    compare,
    conjunction,
    div,
    literal,
    mul,
)
from steptp_dagster.translate.values import Value
from steptp_dagster.translate.windows import inside as within

_SUM, _MEAN, _MAX = 0, 1, 2


@operator("aten._embedding_bag_forward_only.default", "aten._embedding_bag.default")
def embedding_bag(  # the operator's schema
    op: Call,
    weight: Value,
    indices: Value,
    offsets: Value,
    _scale: bool = False,
    mode: int = _SUM,
    _sparse: bool = False,
    samples: Value | None = None,
    include_last_offset: bool = False,
    padding: int = -1,
) -> tuple[Value, ...]:
    """The sum, mean or maximum of the table rows of each bag."""
    if include_last_offset:
        raise Unsupported("include_last_offset", "True; False does")
    index = picker(op, indices, weight.shape[0])
    bags, total = op.shape[0], indices.shape[0]
    size = _bag_size(offsets, bags, total)
    if mode == _MAX and (size is None or padding >= 0):
        raise Unsupported("mode", "maxima of bags of different sizes; sums and means do")

    def inside(bag: Coord, tap: Coord) -> tuple[Coord, list[Expr]]:
        """The position of a tap in the list of indices, and the tests that it counts."""
        at = tap if size is None else bag * size + tap
        tests: list[Expr] = []
        if size is None:
            tests.append(compare(offsets(bag), "<=", tap.to_expr()))
            following = choose(
                compare((bag + 1).to_expr(), "<", Int(bags)), offsets(bag + 1), Int(total)
            )
            tests.append(compare(tap.to_expr(), "<", following if bags > 1 else Int(total)))
        if padding >= 0:
            tests.append(compare(index(at), "!=", Int(padding)))
        return at, tests

    def row(coords: Coords, taps: Coords) -> Expr:
        at, tests = inside(coords[0], taps[0])
        element = weight(place(index(at), weight.shape[0]), coords[1])
        element = element if samples is None else mul(element, samples(at))
        condition = conjunction(tests)
        return element if condition is None else choose(condition, element, ZERO)

    extents = (size or total,)
    if mode == _MAX:
        return (op.builder.reduce(op.shape, op.dtype, extents, largest, row),)
    sums = op.builder.reduce(op.shape, op.accumulator, extents, add, row)
    if mode == _SUM:
        return (op.builder.store(sums, op.dtype),)
    if size is not None and padding < 0:
        mean = op.builder.compute(op.shape, op.dtype, lambda *c: div(sums(*c), literal(size)))
        return (mean,)

    def counted(coords: Coords, taps: Coords) -> Expr:
        condition = conjunction(inside(coords[0], taps[0])[1])
        return ONE if condition is None else choose(condition, ONE, ZERO)

    counts = op.builder.reduce((bags,), "i32", extents, add, counted)

    def element(bag: Coord, column: Coord) -> Expr:
        return div(sums(bag, column), largest(counts(bag), ONE))

    return (op.builder.compute(op.shape, op.dtype, element),)


def _bag_size(offsets: Value, bags: int, total: int) -> int | None:
    """The size of the bags where it is known to be the same for all."""
    if bags == 1:
        return None
    match offsets(Coord.axis(Index("a"), bags)):
        case Index("a"):
            size = 1
        case Binary(op="*", left=Index("a"), right=Int(value=size)):
            pass
        case _:
            return None
    return size if size * bags == total else None


@operator("aten.bilinear.default")
def bilinear(op: Call, x: Value, y: Value, weight: Value, bias: Value | None) -> Value:
    """``sum(x[i] * weight[o, i, j] * y[j])`` for each row."""

    def element(coords: Coords, taps: Coords) -> Expr:
        *row, out = coords
        i, j = taps
        return mul(mul(x(*row, i), weight(out, i, j)), y(*row, j))

    extents = (weight.shape[1], weight.shape[2])
    total = op.builder.reduce(op.shape, op.accumulator, extents, add, element)
    if bias is None:
        return op.builder.store(total, op.dtype)
    return op.builder.compute(op.shape, op.dtype, lambda *c: add(total(*c), bias(c[-1])))


@operator("aten.addbmm.default")
def addbmm(op: Call, x: Value, left: Value, right: Value, beta: Scalar, alpha: Scalar) -> Value:
    """``beta*x`` and ``alpha`` times the sum of the products of a batch."""

    def element(coords: Coords, taps: Coords) -> Expr:
        (row, column), (batch, k) = coords, taps
        return mul(left(batch, row, k), right(batch, k, column))

    extents = (left.shape[0], left.shape[2])
    total = op.builder.reduce(op.shape, op.accumulator, extents, add, element)
    wide = x.broadcast(op.shape)

    def scaled(expr: Expr, factor: Scalar) -> Expr:
        return expr if factor == 1 else mul(literal(factor), expr)

    def sum_of_both(*c: Coord) -> Expr:
        product = scaled(total(*c), alpha)
        return product if beta == 0 else add(scaled(wide(*c), beta), product)

    return op.builder.compute(op.shape, op.dtype, sum_of_both)


@operator("aten.conv_tbc.default")
def conv_tbc(op: Call, x: Value, weight: Value, bias: Value, pad: int) -> Value:
    """A convolution over the first dimension of ``[time, batch, channels]``."""
    taps, channels = weight.shape[:2]

    def element(coords: Coords, inner: Coords) -> Expr:
        time, batch, out = coords
        tap, channel = inner
        at = time + tap - pad
        term = mul(x(at, batch, channel), weight(tap, channel, out))
        test = within(at, x.shape[0])
        return term if test is None else choose(test, term, ZERO)

    total = op.builder.reduce(op.shape, op.accumulator, (taps, channels), add, element)
    return op.builder.compute(op.shape, op.dtype, lambda *c: add(total(*c), bias(c[2])))
