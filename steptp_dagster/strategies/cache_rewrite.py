"""Building caches: the copy of a region into ``l`` or ``s``, and accumulators in ``l``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from steptp_dagster.leir.affine import Form
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Statement,
    Unary,
)
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Path,
    fresh_indices,
    index_names,
    map_equation,
    map_expr,
    replace_at,
)
from steptp_dagster.strategies.cache_points import (
    Dimension,
    Point,
    Region,
    local_form,
    thread_loops,
)
from steptp_dagster.strategies.forms import to_expr
from steptp_dagster.strategies.rewrite import new_tensor_names

_THREAD_ORDER = ("tx", "ty", "tz")


class NoExpression(ValueError):
    """A subscript of the cache cannot be written down."""


def read_cache(
    program: SignedProgram, point: Point, tensor: Access, scope: str, found: Region
) -> SignedProgram:
    """The program with the region copied at the point and read from the copy below it.

    ``tensor`` gives name and dtype of what is copied. Raises NoExpression where a coordinate
    cannot be written.
    """
    name = new_tensor_names(program, 1)[0]
    cache = Access(name, tensor.dtype, scope)
    copy = _copy_loops(program, point, scope, found.dimensions)
    shape = Analysis.of(program).shapes[tensor.name]
    local = [c for c, d in zip(copy.coordinates, found.dimensions, strict=True) if d.size > 1]
    source = tuple(
        _written(_offset_terms(d), d.low, c)
        for c, d in zip(copy.coordinates, found.dimensions, strict=True)
    )
    conditions = [
        *copy.conditions,
        *_inside(source, found.dimensions, shape),
    ]
    equation = Equation(
        replace(cache, subscripts=tuple(local)),
        Access(tensor.name, tensor.dtype, tensor.scope, source),
        _conjunction(conditions),
    )
    made: Statement = Nest(copy.loops, (equation,)) if copy.loops else equation
    replaced = {
        (use.statement.path, use.access): replace(
            cache,
            subscripts=tuple(
                _expr(local_form(form, d))
                for form, d in zip(use.subscripts, found.dimensions, strict=True)
                if d.size > 1
            ),
        )
        for use in found.uses
    }

    def redirect(path: Path) -> Callable[[Expr], Expr]:
        def visit(node: Expr) -> Expr:
            return replaced.get((path, node), node) if isinstance(node, Access) else node

        return visit

    nest = _mapped(point.nest, point.path, redirect)
    return _with(program, replace(point, nest=nest), (made,), ())


def write_cache(
    program: SignedProgram, point: Point, path: Path, start: Expr | None
) -> SignedProgram:
    """The program with the update at ``path`` made in an accumulator below the point.

    Below the point stands that update alone. ``start`` is the accumulator's first value; without
    one it is loaded from the target.
    """
    statement = Analysis.of(program).accesses.statement_at[path]
    equation = statement.equation
    rows = rows_below(program, point, path)
    cache = Access(
        new_tensor_names(program, 1)[0],
        equation.target.dtype,
        "l",
        tuple(_expr(Form(-loop.start, ((loop.index, 1),))) for loop in rows if loop.extent > 1),
    )

    def redirect(_: Path) -> Callable[[Expr], Expr]:
        def visit(node: Expr) -> Expr:
            if isinstance(node, Access) and node.name == equation.target.name:
                return cache
            return node

        return visit

    loops = tuple(replace(loop, kind="L") for loop in rows)
    guard = equation.guard
    first = Equation(cache, start) if start is not None else Equation(cache, equation.target, guard)
    last = Equation(equation.target, cache, guard)
    nest = _mapped(point.nest, point.path, redirect)
    return _with(
        program, replace(point, nest=nest), (_under(loops, first),), (_under(loops, last),)
    )


def rows_below(program: SignedProgram, point: Point, path: Path) -> tuple[Loop, ...]:
    """The loops below the point that the subscripts of the update's target use."""
    accesses = Analysis.of(program).accesses
    statement = accesses.statement_at[path]
    unused = Analysis.of(program).updates[path].reduction_loops
    below = statement.chain[len(point.above) :]
    return tuple(ref.loop for ref in below if ref.name not in unused)


def identity_of(op: str, is_float: bool) -> Expr | None:
    """The literal from which an update starts, or None where there is none to write."""
    match op:
        case "+":
            return Int(0)
        case "*":
            return Int(1)
        case "max" if is_float:
            return Unary("-", Inf())
        case "min" if is_float:
            return Inf()
    return None


@dataclass(frozen=True, slots=True)
class _CopyLoops:
    """Loops of a copy, the coordinate within the box per dimension, and conditions on them."""

    loops: tuple[Loop, ...]
    coordinates: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def _copy_loops(
    program: SignedProgram, point: Point, scope: str, dimensions: tuple[Dimension, ...]
) -> _CopyLoops:
    names = fresh_indices(index_names(program.program.nests[point.path[0]]))
    return _cooperative(point, dimensions, names) if scope == "s" else _serial(dimensions, names)


def _serial(dimensions: tuple[Dimension, ...], names: Iterator[str]) -> _CopyLoops:
    """One serial loop per dimension."""
    wide = sum(d.size > 1 for d in dimensions)
    fresh = iter(tuple(islice(names, wide)))
    loops: list[Loop] = []
    coordinates: list[Expr] = []
    for d in dimensions:
        if d.size > 1:
            loops.append(Loop("L", next(fresh), d.size))
            coordinates.append(Index(loops[-1].index))
        else:
            coordinates.append(Int(0))
    return _CopyLoops(tuple(loops), tuple(coordinates), ())


def _cooperative(
    point: Point, dimensions: tuple[Dimension, ...], names: Iterator[str]
) -> _CopyLoops:
    """All threads of the block copy together: ``tx`` along the last dimension, then ``ty``, ``tz``.

    Where a dimension is longer than its axis, each thread copies every extent-th element of it.
    """
    axes = {str(loop.axis): loop for loop in thread_loops(point)}
    wide = [k for k, d in enumerate(dimensions) if d.size > 1]
    owners = dict(zip(reversed(wide), (a for a in _THREAD_ORDER if a in axes), strict=False))
    extents = dict.fromkeys(axes, 1)
    loops: list[Loop] = []
    coordinates: list[Expr] = [Int(0)] * len(dimensions)
    conditions: list[Expr] = []
    for k in wide:
        size = dimensions[k].size
        owner = owners.get(k)
        if owner is None:
            loops.append(Loop("L", next(names), size))
            coordinates[k] = Index(loops[-1].index)
            continue
        extent = extents[owner] = min(size, axes[owner].extent)
        rounds = -(-size // extent)
        thread: Expr = Index(axes[owner].index)
        if rounds > 1:
            loops.append(Loop("L", next(names), rounds))
            scaled = Index(loops[-1].index)
            thread = Binary(
                "+", scaled if extent == 1 else Binary("*", scaled, Int(extent)), thread
            )
        coordinates[k] = thread
        if rounds * extent > size:
            conditions.append(Compare((thread, Int(size)), ("<",)))
    bound = tuple(Loop("B", loop.index, extents[axis]) for axis, loop in axes.items())
    return _CopyLoops((*bound, *loops), tuple(coordinates), tuple(conditions))


def _offset_terms(dimension: Dimension) -> Expr | None:
    return None if dimension.offset.is_constant else _expr(dimension.offset)


def _written(offset: Expr | None, low: int, coordinate: Expr) -> Expr:
    """``offset + coordinate + low`` without zero terms."""
    if coordinate == Int(0):
        total = offset
    else:
        total = coordinate if offset is None else _plus(offset, coordinate)
    if total is None:
        return Int(low) if low >= 0 else Unary("-", Int(-low))
    if low == 0:
        return total
    return Binary("+" if low > 0 else "-", total, Int(abs(low)))


def _plus(left: Expr, right: Expr) -> Expr:
    """The sum, with sums on the right side taken apart so that none needs parentheses."""
    if isinstance(right, Binary) and right.op == "+":
        return Binary("+", _plus(left, right.left), right.right)
    return Binary("+", left, right)


def _inside(
    source: tuple[Expr, ...], dimensions: tuple[Dimension, ...], shape: tuple[int, ...]
) -> Iterator[Expr]:
    """Conditions that keep the copy inside the tensor, where the box may leave it."""
    for subscript, d, extent in zip(source, dimensions, shape, strict=True):
        operands: list[Expr] = [subscript]
        ops: list[str] = []
        if d.least < 0:
            operands.insert(0, Int(0))
            ops.append("<=")
        if d.most >= extent:
            operands.append(Int(extent))
            ops.append("<")
        if ops:
            yield Compare(tuple(operands), tuple(ops))


def _conjunction(conditions: list[Expr]) -> Expr | None:
    total: Expr | None = None
    for condition in conditions:
        total = condition if total is None else Binary("&", total, condition)
    return total


def _expr(form: Form) -> Expr:
    found = to_expr(form)
    if found is None:
        raise NoExpression(str(form))
    return found


def _under(loops: tuple[Loop, ...], equation: Equation) -> Statement:
    return Nest(loops, (equation,)) if loops else equation


def _mapped(nest: Nest, path: Path, function: Callable[[Path], Callable[[Expr], Expr]]) -> Nest:
    """Map the equations of a nest, each by the function of its path."""
    body: list[Statement] = []
    for i, inner in enumerate(nest.body):
        here = (*path, i)
        if isinstance(inner, Nest):
            body.append(_mapped(inner, here, function))
        else:
            body.append(map_equation(inner, _everywhere(function(here))))
    return replace(nest, body=tuple(body))


def _everywhere(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return lambda expr: map_expr(expr, function)


def _with(
    program: SignedProgram,
    point: Point,
    first: tuple[Statement, ...],
    last: tuple[Statement, ...],
) -> SignedProgram:
    """The nest of the point with statements put in front of and behind what stands below it."""
    body = (*first, *point.below, *last)
    new: tuple[Statement, ...] = body
    if point.depth:
        new = (Nest(point.nest.loops[: point.depth], body),)
    elif len(point.path) == 1:
        new = (Nest((Loop("B", "bx", 1),), body),)
    return SignedProgram(replace_at(program.program, point.path, *new), program.signature)
