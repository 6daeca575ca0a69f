"""Mistakes in expressions: terms, operands, axes, constants, functions, tensors, masks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import combinations

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Expr,
    Index,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.literals import spell
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    accesses_in,
    equations,
    expressions,
    indices_in,
    map_expr,
    map_program,
    substitute,
)
from steptp_dagster.verify.mutation.edits import (
    Change,
    in_accesses,
    in_conditions,
    in_values,
    outside_subscripts,
    reads,
    with_equation,
)

_OTHER_FUNCTION: Mapping[str, tuple[str, ...]] = {
    "exp": ("sin",),
    "log": ("sqrt",),
    "sqrt": ("abs", "log"),
    "abs": ("floor",),
    "erf": ("tanh",),
    "tanh": ("erf",),
    "sin": ("cos",),
    "cos": ("sin",),
    "floor": ("ceil", "round"),
    "ceil": ("floor",),
    "round": ("floor", "ceil"),
    "max": ("min",),
    "min": ("max",),
}
_OTHER_OPERATOR: Mapping[str, tuple[str, ...]] = {
    "+": ("-", "*"),
    "-": ("+",),
    "*": ("+", "/"),
    "/": ("*",),
    "**": ("*",),
    "//": ("%",),
    "%": ("//",),
}
_NOT_COMMUTATIVE = ("-", "/", "//", "%", "**")
_ONE_PERCENT = Decimal("1.01")


def dropped_term(signed: SignedProgram) -> Iterator[Change]:
    """A summand, a factor or a divisor is left out; an accumulation keeps what it had."""
    for located in equations(signed.program):
        equation = located.equation
        name = equation.target.name

        def without(expr: Expr, name: str = name) -> Iterator[Expr]:
            if not isinstance(expr, Binary) or expr.op not in ("+", "-", "*", "/"):
                return
            own_left, own_right = reads(expr.left, name), reads(expr.right, name)
            if not own_right:
                yield expr.left
            if not own_left and expr.op in ("+", "*"):
                yield expr.right
            if not own_left and expr.op == "-":
                yield Unary("-", expr.right)

        for value in outside_subscripts(equation.value, without):
            yield with_equation(signed, located.path, replace(equation, value=value))


def swapped_operands(signed: SignedProgram) -> Iterator[Change]:
    """The operands of ``- / // % **`` change places."""

    def swapped(expr: Expr) -> Iterator[Expr]:
        if isinstance(expr, Binary) and expr.op in _NOT_COMMUTATIVE:
            yield replace(expr, left=expr.right, right=expr.left)

    return in_conditions(signed, swapped)


def wrong_operator(signed: SignedProgram) -> Iterator[Change]:
    """Plus for minus, times for plus, and so on."""

    def other(expr: Expr) -> Iterator[Expr]:
        if isinstance(expr, Binary):
            for op in _OTHER_OPERATOR.get(expr.op, ()):
                yield replace(expr, op=op)

    return in_values(signed, other)


def wrong_axis(signed: SignedProgram) -> Iterator[Change]:
    """Two subscripts change places, or one runs over another loop."""

    def other(access: Access, located: Located) -> Iterable[Access]:
        subscripts = access.subscripts
        for i, j in combinations(range(len(subscripts)), 2):
            mixed = list(subscripts)
            mixed[i], mixed[j] = mixed[j], mixed[i]
            yield replace(access, subscripts=tuple(mixed))
        for k, subscript in enumerate(subscripts):
            own = indices_in(subscript)
            for loop in located.loops:
                if loop.index in own:
                    continue
                for name in sorted(own):
                    new = substitute(subscript, {name: Index(loop.index)})
                    yield replace(access, subscripts=(*subscripts[:k], new, *subscripts[k + 1 :]))

    return in_accesses(signed, other)


def wrong_constant(signed: SignedProgram) -> Iterator[Change]:
    """A number is one per cent too large."""

    def larger(expr: Expr) -> Iterator[Expr]:
        match expr:
            case Real(text=text) if expr.value != 0.0:
                yield Real(spell(Decimal(text) * _ONE_PERCENT))
            case Int(value=value) if value != 0:
                yield Real(spell(Decimal(value) * _ONE_PERCENT))
            case _:
                return

    return in_values(signed, larger)


def wrong_function(signed: SignedProgram) -> Iterator[Change]:
    """Another function of as many arguments, or none at all."""

    def other(expr: Expr) -> Iterator[Expr]:
        if not isinstance(expr, Call) or expr.function == "if_then_else":
            return
        for function in _OTHER_FUNCTION.get(expr.function, ()):
            yield replace(expr, function=function)
        if len(expr.arguments) == 1:
            yield expr.arguments[0]

    return in_values(signed, other)


def wrong_tensor(signed: SignedProgram) -> Iterator[Change]:
    """A read goes to another tensor of the same type and shape."""
    shapes = infer_shapes(signed)
    forms: dict[str, Access] = {}
    for located in equations(signed.program):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                forms.setdefault(access.name, access)

    def other(access: Access, located: Located) -> Iterable[Access]:
        if access == located.equation.target:
            return
        for name, form in forms.items():
            alike = form.dtype == access.dtype and len(form.subscripts) == len(access.subscripts)
            if name != access.name and alike and shapes.get(name) == shapes.get(access.name):
                yield replace(access, name=name, scope=form.scope)

    return in_accesses(signed, other)


def dropped_mask(signed: SignedProgram) -> Iterator[Change]:
    """A condition is left out: one branch is always taken."""

    def one_branch(expr: Expr) -> Iterator[Expr]:
        if isinstance(expr, Call) and expr.function == "if_then_else":
            yield from expr.arguments[1:]

    return in_values(signed, one_branch)


def swapped_branches(signed: SignedProgram) -> Iterator[Change]:
    """The branches of a condition change places."""

    def swapped(expr: Expr) -> Iterator[Expr]:
        if isinstance(expr, Call) and expr.function == "if_then_else":
            condition, yes, no = expr.arguments
            yield replace(expr, arguments=(condition, no, yes))

    return in_values(signed, swapped)


def narrow_temporary(signed: SignedProgram) -> Iterator[Change]:
    """An intermediate in single or double precision is kept in half precision."""
    known = signed.signature.by_name
    written = {e.equation.target.name: e.equation.target for e in equations(signed.program)}
    for name, target in written.items():
        if name not in known and target.dtype in ("f32", "f64"):

            def narrow(expr: Expr, name: str = name) -> Expr:
                own = isinstance(expr, Access) and expr.name == name
                return replace(expr, dtype="f16") if isinstance(expr, Access) and own else expr

            program = map_program(signed.program, lambda root: map_expr(root, narrow))
            yield Change(f"{name} as f16", program)
