"""Canonical LEIR text: no spaces, minimal parentheses, names and literals as the tree has them.

``parse(to_text(p)).program == p`` for every program, and ``to_text(parse(t).program)`` is a
fixed point: two equal trees have one text, two different trees have two.
"""

from typing import Final, assert_never

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
    Nest,
    Program,
    Real,
    Statement,
    Unary,
)

#: Binding strength, loosest first. Comparisons and unary minus stand between the operators.
LEVELS: Final[dict[str, int]] = {
    "|": 1,
    "&": 2,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "//": 5,
    "%": 5,
    "**": 7,
}
COMPARE_LEVEL: Final = 3
UNARY_LEVEL: Final = 6
ATOM_LEVEL: Final = 8


def level_of(expr: Expr) -> int:
    """How tightly the outermost operator of an expression binds."""
    match expr:
        case Binary():
            return LEVELS[expr.op]
        case Compare():
            return COMPARE_LEVEL
        case Unary():
            return UNARY_LEVEL
        case _:
            return ATOM_LEVEL


def _at_least(expr: Expr, level: int) -> str:
    """The text of an expression, in parentheses if it binds looser than ``level``."""
    text = expr_text(expr)
    return text if level_of(expr) >= level else f"({text})"


def expr_text(expr: Expr) -> str:
    """The canonical text of an expression."""
    match expr:
        case Access():
            head = f"{expr.name}^{{{expr.dtype},{expr.scope}}}"
            if not expr.subscripts:
                return head
            return f"{head}_{{{','.join(map(expr_text, expr.subscripts))}}}"
        case Index():
            return expr.name
        case Int():
            return str(expr.value)
        case Binary(op="**"):
            # The base must be an atom; the exponent may carry a minus or be a power itself.
            return f"{_at_least(expr.left, ATOM_LEVEL)}**{_at_least(expr.right, UNARY_LEVEL)}"
        case Binary():
            level = LEVELS[expr.op]
            return f"{_at_least(expr.left, level)}{expr.op}{_at_least(expr.right, level + 1)}"
        case Call():
            return f"{expr.function}({','.join(map(expr_text, expr.arguments))})"
        case Real():
            return expr.text
        case Compare():
            parts = [_at_least(operand, COMPARE_LEVEL + 1) for operand in expr.operands]
            tail = [f"{op}{part}" for op, part in zip(expr.ops, parts[1:], strict=True)]
            return parts[0] + "".join(tail)
        case Unary():
            return f"-{_at_least(expr.operand, UNARY_LEVEL)}"
        case Inf():
            return "inf"
    assert_never(expr)


def loops_text(loops: tuple[Loop, ...]) -> str:
    """The loop headers as they stand before a ``[``."""
    return "".join(f"{lp.kind}^{{{lp.extent}}}_{{{lp.index}={lp.start}}}" for lp in loops)


def statement_text(statement: Statement) -> str:
    """An equation or a nest, its closing ``;`` included."""
    if isinstance(statement, Equation):
        guard = "" if statement.guard is None else f":{expr_text(statement.guard)}"
        return f"{expr_text(statement.target)}={expr_text(statement.value)}{guard};"
    return f"{loops_text(statement.loops)}[{''.join(map(statement_text, statement.body))}];"


def to_text(program: Program | Nest) -> str:
    """The canonical text of a program (or of one nest)."""
    if isinstance(program, Nest):
        return statement_text(program)
    return "".join(map(statement_text, program.nests))
