"""Layouts of a tensor: permuted, merged, flattened and split dimensions as maps of subscripts.

Every map is injective on the tensor's box, so elements that were apart stay apart.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from operator import is_
from typing import Final, Literal

from steptp_dagster.leir.affine import is_opaque
from steptp_dagster.leir.ast import Access, Binary, Equation, Expr, Int, Statement
from steptp_dagster.leir.conversion import Converter
from steptp_dagster.leir.walk import Path, indices_in, iter_expr, map_equation, map_expr
from steptp_dagster.strategies.base import Parameter, Site
from steptp_dagster.strategies.evidence import pair
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.forms import to_expr
from steptp_dagster.strategies.rewrite import exact_factors, tail_factors

Kind = Literal["permute", "merge", "flatten", "split"]
_KINDS: Final[tuple[Kind, ...]] = ("permute", "merge", "flatten", "split")
#: Up to this rank all permutations are offered, above it the exchanges of two dimensions.
_ALL_PERMUTATIONS: Final = 3
#: Most factors offered for one dimension.
_MOST_FACTORS: Final = 2

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """One map. ``numbers`` says which: dimensions are counted from 0.

    ``permute``: for each new dimension the old one; ``merge``: the first of two neighbours that
    become one, row-major; ``flatten``: nothing; ``split``: a dimension and the factor by which it
    becomes quotient and remainder.
    """

    kind: Kind
    numbers: tuple[int, ...]

    def shape(self, shape: Shape) -> Shape:
        """The shape that a tensor of the given shape gets."""
        match self.kind:
            case "permute":
                return tuple(shape[d] for d in self.numbers)
            case "flatten":
                return (prod(shape),)
            case "merge":
                d = self.numbers[0]
                return (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :])
            case "split":
                d, factor = self.numbers
                return (*shape[:d], -(-shape[d] // factor), min(factor, shape[d]), *shape[d + 1 :])

    def subscripts(
        self, old: tuple[Expr, ...], shape: Shape, converter: Converter | None = None
    ) -> tuple[Expr, ...]:
        """New subscripts for old ones; ``converter`` knows the ranges of the loops around.

        With it, quotients and remainders are simplified (``(c*3+a)//3`` is ``c``), if that leaves
        no division.
        """
        match self.kind:
            case "permute":
                return tuple(old[d] for d in self.numbers)
            case "flatten":
                return (_row_major(old, shape),)
            case "merge":
                d = self.numbers[0]
                both = _row_major(old[d : d + 2], shape[d : d + 2])
                return (*old[:d], both, *old[d + 2 :])
            case "split":
                d, factor = self.numbers
                return (*old[:d], *_divided(old[d], factor, converter), *old[d + 1 :])


def layouts(shape: Shape) -> Iterator[Layout]:
    """The layouts worth offering for a shape, in a fixed order.

    Dimensions of extent 1 are neither merged nor split, and a permutation moves others too.
    """
    wide = [d for d, extent in enumerate(shape) if extent > 1]
    for order in _orders(len(shape)):
        if [d for d in order if shape[d] > 1] != wide:
            yield Layout("permute", order)
    for d in range(len(shape) - 1):
        if shape[d] > 1 and shape[d + 1] > 1:
            yield Layout("merge", (d,))
    if len(shape) > 2 and len(wide) > 1:
        yield Layout("flatten", ())
    for d, extent in enumerate(shape):
        for factor in factors(extent):
            yield Layout("split", (d, factor))


def judged(
    offered: Iterable[Layout], judge: Callable[[Layout], tuple[str, str] | None]
) -> Iterator[tuple[Layout, tuple[str, str] | None]]:
    """The layouts with what is wrong with each, or None.

    Permutations write the same subscripts in another order, so the first of them is judged for
    all. The others write new ones, and whether the analyses see through these depends on the
    dimension and the factor.
    """
    known: dict[tuple[str, tuple[int, ...]], tuple[str, str] | None] = {}
    for layout in offered:
        key = (layout.kind, () if layout.kind == "permute" else layout.numbers)
        if key not in known:
            known[key] = judge(layout)
        yield layout, known[key]


def factors(extent: int) -> tuple[int, ...]:
    """Factors by which a dimension may be split: divisors, or a tile where there are none."""
    found = exact_factors(extent)
    if not found:
        return tail_factors(extent)[:1]
    if len(found) <= _MOST_FACTORS:
        return found
    return (found[0], found[-1])


def _orders(rank: int) -> Iterator[tuple[int, ...]]:
    if rank <= _ALL_PERMUTATIONS:
        yield from _permutations(tuple(range(rank)))
        return
    for i in range(rank):
        for j in range(i + 1, rank):
            order = list(range(rank))
            order[i], order[j] = j, i
            yield tuple(order)


def _permutations(items: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not items:
        yield ()
    for i, head in enumerate(items):
        for rest in _permutations(items[:i] + items[i + 1 :]):
            yield (head, *rest)


def _row_major(subscripts: tuple[Expr, ...], shape: Shape) -> Expr:
    """The position of an element; subscripts of dimensions of extent 1 are 0 and left out."""
    total: Expr | None = None
    for d, (subscript, extent) in enumerate(zip(subscripts, shape, strict=True)):
        if extent == 1:
            continue
        stride = prod(shape[d + 1 :])
        term = subscript if stride == 1 else Binary("*", subscript, Int(stride))
        total = term if total is None else _plus(total, term)
    return Int(0) if total is None else total


def _plus(left: Expr, right: Expr) -> Expr:
    """The sum, with sums on the right side taken apart so that none needs parentheses."""
    if isinstance(right, Binary) and right.op in ("+", "-"):
        return Binary(right.op, _plus(left, right.left), right.right)
    return Binary("+", left, right)


def _divided(subscript: Expr, factor: int, converter: Converter | None) -> tuple[Expr, Expr]:
    """Quotient and remainder, simplified where that keeps every index in sight."""
    plain = (Binary("//", subscript, Int(factor)), Binary("%", subscript, Int(factor)))
    if converter is None:
        return plain
    simple = []
    for expr in plain:
        form = converter.form(expr)
        found = None if form is None or is_opaque(form) else to_expr(form)
        if found is None or any(_divides(node) for node in iter_expr(found)):
            return plain
        simple.append(found)
    if indices_in(simple[0]) | indices_in(simple[1]) != indices_in(subscript):
        return plain
    return simple[0], simple[1]


def _divides(node: Expr) -> bool:
    return isinstance(node, Binary) and node.op in ("//", "%")


def parameters(layout: Layout) -> dict[str, Parameter]:
    """The parameters by which a site names a layout; flattening needs no numbers."""
    named: dict[str, Parameter] = {"layout": layout.kind}
    if layout.numbers:
        named["numbers"] = layout.numbers
    return named


def layout_of(site: Site) -> Layout:
    """The layout that a site names. Raises ValueError where it names none."""
    numbers = site.named.get("numbers", ())
    found = tuple(n for n in numbers if isinstance(n, int)) if isinstance(numbers, tuple) else ()
    for kind in _KINDS:
        if kind == site.text("layout"):
            return Layout(kind, found)
    raise ValueError(f"no layout {site.describe()}")


def parameter_facts(layout: Layout, shape: Shape) -> tuple[Fact, ...]:
    """What stands behind the numbers: products of extents, or a factor below the extent."""
    match layout.kind:
        case "permute":
            return ()
        case "flatten":
            return (pair("product", *shape, value=prod(shape)),)
        case "merge":
            d = layout.numbers[0]
            return (pair("product", *shape[d : d + 2], value=prod(shape[d : d + 2])),)
        case "split":
            extent, factor = shape[layout.numbers[0]], layout.numbers[1]
            return (
                pair("at_most", factor, extent - 1, value=factor < extent),
                pair("divides", extent, factor, value=extent % factor == 0),
            )


def with_accesses(
    statement: Statement, path: Path, change: Callable[[Path, Access], Access]
) -> Statement:
    """Map every access of a statement, inner ones first; ``change`` is told the equation's path."""
    if isinstance(statement, Equation):

        def visit(node: Expr) -> Expr:
            return change(path, node) if isinstance(node, Access) else node

        return map_equation(statement, lambda expr: map_expr(expr, visit))
    body = tuple([with_accesses(s, (*path, i), change) for i, s in enumerate(statement.body)])
    if all(map(is_, body, statement.body)):
        return statement
    return replace(statement, body=body)
