"""Evaluation types of expressions, node by node, bottom-up.

* A tensor has its dtype's evaluation type (``f16`` and ``bf16``: ``f32``), an index ``i64``.
* An operation with a float operand, ``/``, and the functions that are real by nature have the
  widest float type of their operands; with none, the *context*: the target's evaluation type
  where that is a float, else ``f64``. Inside comparisons, conditions, guards and subscripts the
  context is always ``f64``, so naming a condition changes nothing.
* Other operations are integer: the widest integer type of the operands, with mixed signs the
  next wider signed one; ``bool`` counts as ``i64`` where no integer stands beside it.
* Expressions of literals alone are *free*: they take the type of the operand beside them, at the
  top that of the target.
* Comparisons and ``& |`` are ``bool``; each pair of a chain is compared in its own type.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, assert_never

from steptp_dagster.leir.ast import (
    LOGICAL,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Program,
    Real,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES, DType
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.violation import Violation
from steptp_dagster.leir.walk import Path, children, equations

_BOOL: Final = DTYPES["bool"]
_I64: Final = DTYPES["i64"]
_F64: Final = DTYPES["f64"]
#: Integer literals in float operations are at most this, as decimal literals are.
_LARGEST_DOUBLE: Final = int(sys.float_info.max)
#: The types of expressions of literals alone, before a neighbour or the target fixes one.
_FREE_INT: Final = DType("literal integer", "int", 64, "int64")
_FREE_REAL: Final = DType("literal real", "float", 64, "float64")

#: Functions of integers whose result is an integer.
INTEGER_FUNCTIONS: Final = frozenset({"abs", "floor", "ceil", "round", "max", "min"})


class Typed(NamedTuple):
    """An expression node with the type its value is computed in; a tuple, since many are made.

    ``operands`` stand in the order of ``walk.children``. ``comparisons`` is set for chains of
    comparisons only: the type in which each neighbouring pair of operands is compared.
    """

    expr: Expr
    dtype: DType
    operands: tuple["Typed", ...] = ()
    comparisons: tuple[DType, ...] = ()

    @property
    def converted(self) -> tuple[DType, ...]:
        """The types that the operands are converted to before the operation.

        Subscripts: i64. The operands of ``& |`` and the condition of ``if_then_else``: bool. For
        comparisons the operands' own types: their conversion is per pair (``comparisons``).
        """
        match self.expr:
            case Access():
                return (_I64,) * len(self.operands)
            case Compare():
                return tuple(operand.dtype for operand in self.operands)
            case Binary(op="&" | "|"):
                return (_BOOL, _BOOL)
            case Call(function="if_then_else"):
                return (_BOOL, self.dtype, self.dtype)
            case _:
                return (self.dtype,) * len(self.operands)

    def walk(self) -> Iterator["Typed"]:
        """The node and all nodes below it, pre-order."""
        yield self
        for operand in self.operands:
            yield from operand.walk()


@dataclass(frozen=True, slots=True)
class TypedEquation:
    """An equation with the types of all its nodes.

    A store converts ``value`` to the target's dtype in memory, ``equation.target.dtype``.
    """

    equation: Equation
    target: Typed
    value: Typed
    guard: Typed | None


#: Typed trees of the equation objects that were asked about last.
_asked: Final[dict[int, TypedEquation]] = {}
_REMEMBERED: Final = 512


def typed_equation(equation: Equation) -> TypedEquation:
    """The types of all nodes of an equation. Total: also on equations that break type rules.

    Kept by the object, since the trees hold its nodes with their positions.
    """
    known = _asked.get(id(equation))
    if known is None or known.equation is not equation:
        if len(_asked) >= _REMEMBERED:
            _asked.clear()
        known = _asked[id(equation)] = _typed_equation(equation)
    return known


def _typed_equation(equation: Equation) -> TypedEquation:
    stored = DTYPES[equation.target.dtype].evaluation
    context = stored if stored.is_float else _F64
    guard = None if equation.guard is None else _settled(_build(equation.guard, _F64), _BOOL)
    return TypedEquation(
        equation,
        target=_build(equation.target, context),
        value=_settled(_build(equation.value, context), stored),
        guard=guard,
    )


def typed_expr(expr: Expr, target_dtype: str) -> Typed:
    """The types of an expression that is stored to a target of ``target_dtype``."""
    stored = DTYPES[target_dtype].evaluation
    return _settled(_build(expr, stored if stored.is_float else _F64), stored)


def expr_dtype(expr: Expr, target_dtype: str) -> DType:
    """The evaluation type of an expression that is stored to a target of ``target_dtype``.

    For a part of a larger expression it is the type that a temporary for it must have, unless the
    part is made of literals alone (those take the type of their neighbour).
    """
    return typed_expr(expr, target_dtype).dtype


class Typing:
    """The types of all equations of a program, worked out once each."""

    def __init__(self, program: SignedProgram | Program) -> None:
        """Annotations are part of the text, so a program without a signature will do."""
        bare = program.program if isinstance(program, SignedProgram) else program
        self._located = {located.path: located for located in equations(bare)}
        self._typed: dict[Path, TypedEquation] = {}

    def equation(self, path: Path) -> TypedEquation:
        """The typed equation at ``path``. Raises KeyError where no equation stands."""
        if path not in self._typed:
            self._typed[path] = typed_equation(self._located[path].equation)
        return self._typed[path]

    def expr_dtype(self, expr: Expr, target_dtype: str) -> DType:
        """As the function ``expr_dtype``."""
        return expr_dtype(expr, target_dtype)

    def violations(self) -> tuple[Violation, ...]:
        """All broken type rules of the program, in text order."""
        return tuple(v for path in self._located for v in violations_of(self.equation(path), path))


# -- inference -------------------------------------------------------------------------------


def _is_free(dtype: DType) -> bool:
    return dtype is _FREE_INT or dtype is _FREE_REAL


def _build(expr: Expr, context: DType) -> Typed:
    """The typed tree; nodes of literals alone are free until their parent settles them."""
    if isinstance(expr, Access):  # by far the most frequent operand, mostly at plain indices
        subscripts = [
            Typed(e, _I64) if isinstance(e, Index) else _settled(_build(e, _F64), _I64)
            for e in expr.subscripts
        ]
        return Typed(expr, DTYPES[expr.dtype].evaluation, tuple(subscripts))
    match expr:
        case Int():
            return Typed(expr, _FREE_INT)
        case Real() | Inf():
            return Typed(expr, _FREE_REAL)
        case Index():
            return Typed(expr, _I64)
        case Unary():
            return _joined(expr, (_build(expr.operand, context),), context)
        case Binary():
            if expr.op in LOGICAL:
                sides = tuple(_settled(_build(e, _F64), _BOOL) for e in (expr.left, expr.right))
                return Typed(expr, _BOOL, sides)
            both = (_build(expr.left, context), _build(expr.right, context))
            return _joined(expr, both, context, real=expr.op == "/")
        case Compare():
            return _chain(expr)
        case Call(function="if_then_else"):
            condition = _settled(_build(expr.arguments[0], _F64), _BOOL)
            yes, no = (_build(e, context) for e in expr.arguments[1:])
            if yes.dtype is _BOOL and no.dtype is _BOOL:
                return Typed(expr, _BOOL, (condition, yes, no))
            branches = _joined(expr, (yes, no), context)
            return Typed(expr, branches.dtype, (condition, *branches.operands))
        case Call():
            arguments = tuple(_build(e, context) for e in expr.arguments)
            return _joined(expr, arguments, context, real=expr.function not in INTEGER_FUNCTIONS)
    assert_never(expr)


def _joined(
    expr: Expr, operands: tuple[Typed, ...], context: DType, *, real: bool = False
) -> Typed:
    """An operation in the common type of its operands; ``real``: never an integer operation."""
    dtype = common(tuple([operand.dtype for operand in operands]), context, real=real)
    if not _is_free(dtype):
        operands = tuple([_settled(operand, dtype) for operand in operands])
    return Typed(expr, dtype, operands)


def _chain(expr: Compare) -> Typed:
    built = [_build(e, _F64) for e in expr.operands]
    pairs = [common((left.dtype, right.dtype), _F64) for left, right in pairwise(built)]
    pairs = [_I64 if p is _FREE_INT else _F64 if p is _FREE_REAL else p for p in pairs]
    operands = []
    for n, operand in enumerate(built):
        # A literal between two others belongs to two pairs: an integer literal takes the integer
        # one of their types, from which the other pair converts it without loss.
        beside = tuple(pairs[max(0, n - 1) : n + 1])
        whole = tuple(p for p in beside if p.is_integer)
        operands.append(_settled(operand, common(whole or beside, _F64)))
    return Typed(expr, _BOOL, tuple(operands), tuple(pairs))


def common(dtypes: tuple[DType, ...], context: DType, *, real: bool = False) -> DType:
    """The type of an operation on operands of these types (see the head of the module)."""
    first = dtypes[0]
    if (first is dtypes[-1] and len(dtypes) <= 2) and (  # the common case, made fast
        first.kind == "float" or (first.kind == "int" and not real)
    ):
        return first
    widest: DType | None = None
    free = True
    literal_real = real
    for dtype in dtypes:
        if _is_free(dtype):
            literal_real = literal_real or dtype is _FREE_REAL
            continue
        free = False
        if dtype.is_float and (widest is None or dtype.bits > widest.bits):
            widest = dtype
    if widest is not None:
        return widest
    if literal_real:
        return _FREE_REAL if free else context
    if free:
        return _FREE_INT
    return _common_integer([d for d in dtypes if d.is_integer and d is not _FREE_INT])


def _common_integer(dtypes: list[DType]) -> DType:
    if not dtypes:
        return _I64
    widest = max(dtypes, key=lambda d: d.bits)
    unsigned = max((d.bits for d in dtypes if not d.signed), default=0)
    signed = max((d.bits for d in dtypes if d.signed), default=0)
    if unsigned == 0 or signed == 0:
        return widest
    return DTYPES[f"i{min(64, max(signed, 2 * unsigned))}"]


def _settled(typed: Typed, wanted: DType) -> Typed:
    """A free expression in the type ``wanted``; others as they are.

    Where bool is wanted an integer literal is i64, where no float is wanted a decimal is f64.
    """
    if not _is_free(typed.dtype):
        return typed
    if typed.dtype is _FREE_REAL:
        dtype = wanted if wanted.is_float else _F64
    else:
        dtype = _I64 if wanted is _BOOL else wanted
    return Typed(typed.expr, dtype, tuple([_settled(operand, dtype) for operand in typed.operands]))


# -- rules -----------------------------------------------------------------------------------

_SUBSCRIPT_OPS: Final = ("+", "-", "*", "//", "%")


def type_violations(equation: Equation, path: Path = ()) -> tuple[Violation, ...]:
    """The broken type rules of one equation.

    Kinds: ``subscript-not-integer``, ``subscript-form``, ``condition-not-bool``,
    ``guard-not-bool``, ``logical-not-bool``, ``integer-power``, ``literal-out-of-range``.
    """
    return tuple(violations_of(typed_equation(equation), path))


@lru_cache(maxsize=4096)
def well_typed(equation: Equation) -> bool:
    """Whether an equation breaks no type rule; remembered, since most equations recur."""
    return plain(equation) or not type_violations(equation)


#: Integer literals up to this fit every integer type, so that nobody needs to know which it is.
_SMALL: Final = 127


def plain(equation: Equation) -> bool:
    """Whether an equation surely breaks no type rule, by a look at each node without its type."""
    guard = equation.guard
    return (
        _plain_value(equation.target)
        and _plain_value(equation.value)
        and (guard is None or (_is_condition(guard) and _plain_value(guard)))
    )


def _plain_value(expr: Expr) -> bool:
    if isinstance(expr, Access):
        for subscript in expr.subscripts:
            if not isinstance(subscript, Index) and not _plain_subscript(subscript):
                return False
        return True
    if isinstance(expr, Binary):
        left, right = expr.left, expr.right
        if expr.op in LOGICAL and not (_is_condition(left) and _is_condition(right)):
            return False
        if expr.op == "**" and not isinstance(right, Int):
            return False
        return _plain_value(left) and _plain_value(right)
    if isinstance(expr, Int):
        return expr.value <= _SMALL
    chooses = isinstance(expr, Call) and expr.function == "if_then_else"
    if chooses and not _is_condition(children(expr)[0]):
        return False
    return all(map(_plain_value, children(expr)))


def _plain_subscript(expr: Expr) -> bool:
    if isinstance(expr, Index):
        return True
    if isinstance(expr, Int):
        return expr.value <= _SMALL
    if not isinstance(expr, Binary) or expr.op not in _SUBSCRIPT_OPS:
        return False
    return _plain_subscript(expr.left) and _plain_subscript(expr.right)


def _is_condition(expr: Expr) -> bool:
    return isinstance(expr, Compare) or (isinstance(expr, Binary) and expr.op in LOGICAL)


def violations_of(typed: TypedEquation, path: Path) -> Iterator[Violation]:
    """As ``type_violations``, for an equation whose types are known."""
    yield from _node_violations(typed.target, path)
    yield from _node_violations(typed.value, path)
    if typed.guard is not None:
        if typed.guard.dtype is not _BOOL:
            yield _not_bool("guard-not-bool", "a guard", typed.guard, path)
        yield from _node_violations(typed.guard, path)


def _node_violations(typed: Typed, path: Path, *, negated: bool = False) -> Iterator[Violation]:
    expr = typed.expr
    match expr:
        case Access():
            for subscript in expr.subscripts:
                yield from _subscript_violations(subscript, path)
        case Call(function="if_then_else") if typed.operands[0].dtype is not _BOOL:
            yield _not_bool("condition-not-bool", "a condition", typed.operands[0], path)
        case Binary(op="&" | "|"):
            for side in typed.operands:
                if side.dtype is not _BOOL:
                    yield _not_bool("logical-not-bool", f"an operand of {expr.op}", side, path)
        case Binary(op="**") if typed.dtype.is_integer and not isinstance(expr.right, Int):
            yield Violation(
                "integer-power",
                "an integer is raised to a power that is no integer literal of at least 0",
                path,
                expr.right.pos,
                "an integer power",
                "an integer literal >= 0 as exponent, or a float operand",
            )
        case Int():
            limit = _LARGEST_DOUBLE
            if typed.dtype.is_integer:
                limit = 2 ** (typed.dtype.bits - typed.dtype.signed) - 1 + negated
            if expr.value > limit:
                yield Violation(
                    "literal-out-of-range",
                    f"{expr.value} does not fit {typed.dtype.name}, in which it is used",
                    path,
                    expr.pos,
                    str(expr.value),
                    f"a value of {typed.dtype.name}",
                )
    for operand in typed.operands:
        yield from _node_violations(operand, path, negated=isinstance(expr, Unary))


def _not_bool(kind: str, what: str, found: Typed, path: Path) -> Violation:
    message = f"{what} has type {found.dtype.name}, not bool"
    return Violation(kind, message, path, found.expr.pos, found.dtype.name, "bool")


def _subscript_violations(expr: Expr, path: Path) -> Iterator[Violation]:
    """Subscripts are built from integers, indices and integer tensors by ``+ - * // %``."""
    found = ""
    match expr:
        case Int() | Index():
            return
        case Unary():
            yield from _subscript_violations(expr.operand, path)
            return
        case Binary() if expr.op in _SUBSCRIPT_OPS:
            yield from _subscript_violations(expr.left, path)
            yield from _subscript_violations(expr.right, path)
            return
        case Access():
            if DTYPES[expr.dtype].is_integer:
                return
            found = f"{expr.name} of dtype {expr.dtype}"
        case Real() | Inf():
            found = "a decimal literal"
        case Compare():
            found = "a comparison"
        case Binary(op=op):
            found = f"the operator {op}"
        case Call():
            found = f"the function {expr.function}"
    integer = _build(expr, _F64).dtype.is_integer
    required = "indices, integers and integer tensors, joined by + - * // %"
    yield Violation(
        "subscript-form" if integer else "subscript-not-integer",
        f"{found} stands in a subscript",
        path,
        expr.pos,
        found,
        required,
    )
