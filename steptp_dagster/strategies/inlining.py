"""Putting a definition in the place of a read: inverse of the written subscript, types, size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.typing import Typed, typed_equation
from steptp_dagster.leir.walk import children, iter_expr, map_expr
from steptp_dagster.strategies.rewrite import affine_sum

#: Integers up to this magnitude are exact in the memory formats that round when stored.
_EXACT_INTEGERS: Final = {"f16": 2048, "bf16": 256}
_ROUNDED_TO_INTEGER: Final = ("floor", "ceil", "round")


def value_range(expr: Expr, loops: Mapping[str, Loop]) -> tuple[int, int] | None:
    """Inclusive interval of an index expression; None where it is something else."""
    match expr:
        case Int():
            return expr.value, expr.value
        case Index() if expr.name in loops:
            loop = loops[expr.name]
            return loop.start, loop.start + loop.extent - 1
        case Binary(op="+" | "-" | "*" | "//" | "%"):
            left, right = value_range(expr.left, loops), value_range(expr.right, loops)
            if left is None or right is None:
                return None
            return _combined(expr.op, left, right)
    return None


def _combined(op: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int] | None:
    (a, b), (c, d) = left, right
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case "//" if c == d and c > 0:
            return a // c, b // c
        case "%" if c == d and c > 0:
            return (a, b) if a >= 0 and b < c else (0, c - 1)
    return None


def inverse(
    written: Sequence[Expr],
    read: Sequence[Expr],
    writer_loops: Sequence[Loop],
    reader_loops: Sequence[Loop],
) -> dict[str, Expr] | None:
    """Indices of the write, in terms of the indices of the read, for equal subscripts.

    Understands indices, sums and differences with constants, multiples, and mixed radix ``i*n+j``
    with j below n. Indices that no subscript holds are left out. None where a subscript is
    something else.
    """
    inner = {loop.index: loop for loop in writer_loops}
    outer = {loop.index: loop for loop in reader_loops}
    found: dict[str, Expr] = {}
    for subscript, value in zip(written, read, strict=True):
        if not _solve(subscript, value, inner, outer, found):
            return None
    return found


def _solve(
    form: Expr,
    value: Expr,
    inner: Mapping[str, Loop],
    outer: Mapping[str, Loop],
    found: dict[str, Expr],
) -> bool:
    match form:
        case Int():
            return True
        case Index():
            found.setdefault(form.name, value)
            return True
        case Binary(op="+", right=Int() as k):
            return _solve(form.left, affine_sum(value, -k.value), inner, outer, found)
        case Binary(op="-", right=Int() as k):
            return _solve(form.left, affine_sum(value, k.value), inner, outer, found)
        case Binary(op="-", left=Int() as k):
            return _solve(form.right, mirrored(k.value, value), inner, outer, found)
        case Binary(op="+", left=Int() as k):
            return _solve(form.right, affine_sum(value, -k.value), inner, outer, found)
        case Binary(op="*", left=Int() as k, right=multiple) if not isinstance(multiple, Int):
            return _solve(Binary("*", multiple, k), value, inner, outer, found)
        case Binary(op="+", left=Binary(op="*", left=Int() as k, right=high), right=low) if (
            not isinstance(high, Int)
        ):
            swapped = Binary("+", Binary("*", high, k), low)
            return _solve(swapped, value, inner, outer, found)
        case Binary(op="+", left=low, right=Binary(op="*") as high) if not _is_multiple(low):
            return _solve(Binary("+", high, low), value, inner, outer, found)
        case Binary(op="*", right=Int() as k) if k.value > 0:
            high = _quotient(value, k.value)
            return _solve(form.left, high, inner, outer, found)
        case Binary(op="+", left=Binary(op="*", left=high, right=Int() as k), right=low):
            if not _below(low, k.value, inner):
                return False
            top, rest = _digits(value, k.value, outer)
            return _solve(high, top, inner, outer, found) and _solve(low, rest, inner, outer, found)
    return False


def mirrored(k: int, value: Expr) -> Expr:
    """``k - value``, simplified where the value is spelled as such a difference."""
    match value:
        case Binary(op="-", left=Int() as other, right=inner):
            return affine_sum(inner, k - other.value)
        case Int() if value.value <= k:
            return Int(k - value.value)
    return Binary("-", Int(k), value)


def _is_multiple(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.op == "*"


def _quotient(value: Expr, k: int) -> Expr:
    if isinstance(value, Binary) and value.op == "*" and value.right == Int(k):
        return value.left
    return Binary("//", value, Int(k))


def _digits(value: Expr, k: int, loops: Mapping[str, Loop]) -> tuple[Expr, Expr]:
    """``value // k`` and ``value % k``, read off where the value is spelled as such a sum."""
    match value:
        case Binary(op="+", left=Binary(op="*", left=high, right=Int(value=found)), right=low) if (
            found == k and _below(low, k, loops)
        ):
            return high, low
    return Binary("//", value, Int(k)), Binary("%", value, Int(k))


def _below(expr: Expr, k: int, loops: Mapping[str, Loop]) -> bool:
    interval = value_range(expr, loops)
    return interval is not None and interval[0] >= 0 and interval[1] < k


def replaced(equation: Equation, name: str, by: Callable[[Access], Expr]) -> Equation:
    """The equation with reads of a tensor replaced, innermost first; its target keeps its name."""

    def visit(node: Expr) -> Expr:
        return by(node) if isinstance(node, Access) and node.name == name else node

    subscripts = tuple(map_expr(subscript, visit) for subscript in equation.target.subscripts)
    guard = None if equation.guard is None else map_expr(equation.guard, visit)
    return replace(
        equation,
        target=replace(equation.target, subscripts=subscripts),
        value=map_expr(equation.value, visit),
        guard=guard,
    )


def nodes(equation: Equation) -> int:
    """Number of expression nodes of an equation."""
    guard = () if equation.guard is None else (equation.guard,)
    return sum(1 for e in (equation.target, equation.value, *guard) for _ in iter_expr(e))


def types_kept(name: str, producer: Equation, before: Equation, after: Equation) -> bool:
    """Whether every node is evaluated in the type that it had, the definition's included.

    ``before`` reads the tensor ``name`` that ``producer`` defines, ``after`` has its value.
    """
    definition = typed_equation(producer).value

    def same(old: Typed, new: Typed) -> bool:
        if isinstance(old.expr, Access) and old.expr.name == name:
            return old.dtype == new.dtype and _same_definition(definition, new)
        return (
            old.dtype == new.dtype
            and old.comparisons == new.comparisons
            and len(old.operands) == len(new.operands)
            and all(map(same, old.operands, new.operands))
        )

    first, second = typed_equation(before), typed_equation(after)
    pairs = [
        (first.value, second.value),
        *zip(first.target.operands, second.target.operands, strict=True),
    ]
    if first.guard is not None and second.guard is not None:
        pairs.append((first.guard, second.guard))
    return all(same(old, new) for old, new in pairs)


def _same_definition(defined: Typed, used: Typed) -> bool:
    if defined.dtype != used.dtype or defined.comparisons != used.comparisons:
        return False
    if isinstance(defined.expr, Index | Access):
        return True  # indices were replaced, and subscripts are integers either way
    return len(defined.operands) == len(used.operands) and all(
        map(_same_definition, defined.operands, used.operands)
    )


def rounds_when_stored(producer: Equation) -> bool:
    """Whether storing the value may round it: a memory format, and no mere copy of values in it."""
    dtype = producer.target.dtype
    return dtype in _EXACT_INTEGERS and not _representable(producer.value, dtype)


def _representable(expr: Expr, dtype: str) -> bool:
    match expr:
        case Access():
            return expr.dtype == dtype or DTYPES[expr.dtype].kind == "bool"
        case Int():
            return expr.value <= _EXACT_INTEGERS[dtype]
        case Inf():
            return True
        case Unary():
            return _representable(expr.operand, dtype)
        case Call(function="max" | "min" | "abs"):
            return all(_representable(a, dtype) for a in expr.arguments)
        case Call(function="if_then_else"):
            return all(_representable(a, dtype) for a in expr.arguments[1:])
    return False


def decisive_reads(equation: Equation) -> Iterator[Access]:
    """Reads whose rounding can change more than the last digits of the result.

    Those in comparisons, conditions, guards, subscripts, roundings and integer divisions, and
    all of them where the target is no float.
    """
    if equation.guard is not None:
        yield from _accesses(equation.guard)
    for subscript in equation.target.subscripts:
        yield from _accesses(subscript)
    if not DTYPES[equation.target.dtype].is_float:
        yield from _accesses(equation.value)
    else:
        yield from _decisive(equation.value)


def _decisive(expr: Expr) -> Iterator[Access]:
    match expr:
        case Compare() | Binary(op="//" | "%" | "&" | "|"):
            yield from _accesses(expr)
        case Call(function=name) if name in _ROUNDED_TO_INTEGER:
            yield from _accesses(expr)
        case Call(function="if_then_else"):
            yield from _accesses(expr.arguments[0])
            for branch in expr.arguments[1:]:
                yield from _decisive(branch)
        case Access():
            for subscript in expr.subscripts:
                yield from _accesses(subscript)
        case _:
            for child in children(expr):
                yield from _decisive(child)


def _accesses(expr: Expr) -> Iterator[Access]:
    return (node for node in iter_expr(expr) if isinstance(node, Access))
