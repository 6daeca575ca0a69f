"""What the derivations share: their type, their error, and the reading of arguments."""

from collections.abc import Callable

from steptp_dagster.leir.ast import Equation, Expr, Loop, Nest, Statement
from steptp_dagster.leir.parser import ParseError, parse_expr
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_equation
from steptp_dagster.leir.walk import Located, Path, at, equations_in, iter_expr, loops_around
from steptp_dagster.strategies.facts import Value

#: ``function(program, *arguments)`` or ``function(before, after, *arguments)``.
Derivation = Callable[..., Value]


class DerivationError(ValueError):
    """A fact asks what cannot be answered about these programs."""


def path_of(value: Value) -> Path:
    """An argument as a path. Raises DerivationError for anything else."""
    if not isinstance(value, tuple):
        raise DerivationError(f"not a path: {value!r}")
    steps = []
    for step in value:
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise DerivationError(f"not a path: {value!r}")
        steps.append(step)
    return tuple(steps)


def name_of(value: Value) -> str:
    """An argument as a name. Raises DerivationError for anything else."""
    if not isinstance(value, str):
        raise DerivationError(f"not a name: {value!r}")
    return value


def integer_of(value: Value) -> int:
    """An argument as an integer. Raises DerivationError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise DerivationError(f"not an integer: {value!r}")
    return value


def statement_at(signed: SignedProgram, path: Value) -> Statement:
    """The statement that a path argument names. Raises DerivationError where there is none."""
    steps = path_of(path)
    if not steps:
        raise DerivationError("the empty path names no statement")
    try:
        return at(signed.program, steps)
    except IndexError as error:
        raise DerivationError(f"no statement at {steps}") from error


def equation_at(signed: SignedProgram, path: Value) -> Equation:
    """The equation that a path argument names. Raises DerivationError for anything else."""
    found = statement_at(signed, path)
    if not isinstance(found, Equation):
        raise DerivationError(f"the statement at {path} is a nest, not an equation")
    return found


def nest_at(signed: SignedProgram, path: Value) -> Nest:
    """The nest that a path argument names. Raises DerivationError for anything else."""
    found = statement_at(signed, path)
    if not isinstance(found, Nest):
        raise DerivationError(f"the statement at {path} is an equation, not a nest")
    return found


def loops_at(signed: SignedProgram, path: Value) -> tuple[Loop, ...]:
    """The loops around a statement, outermost first; a nest's own come last."""
    found = statement_at(signed, path)
    own = found.loops if isinstance(found, Nest) else ()
    return loops_around(signed.program, path_of(path)) + own


def loop_at(signed: SignedProgram, path: Value, index: Value) -> Loop:
    """The loop of that index at or around a statement. Raises DerivationError without one."""
    for loop in loops_at(signed, path):
        if loop.index == index:
            return loop
    raise DerivationError(f"no loop {index!r} around the statement at {path}")


def equations_at(signed: SignedProgram, path: Value) -> tuple[Located, ...]:
    """All equations of a statement, with the paths and loops that they have in the program."""
    statement, steps = statement_at(signed, path), path_of(path)
    return tuple(equations_in(statement, steps, loops_around(signed.program, steps)))


def read_expressions(equation: Equation) -> tuple[Expr, ...]:
    """The expressions whose tensors an equation reads: value, guard, the target's subscripts."""
    guard = () if equation.guard is None else (equation.guard,)
    return (equation.value, *guard, *equation.target.subscripts)


def expr_of(text: Value) -> Expr:
    """An argument as an expression. Raises DerivationError where it is none."""
    try:
        return parse_expr(name_of(text))
    except ParseError as error:
        raise DerivationError(f"no expression: {text!r}") from error


def part_named(signed: SignedProgram, path: Value, text: Value) -> Expr:
    """The part of a right side with a text. Raises DerivationError where there is none."""
    for node in iter_expr(equation_at(signed, path).value):
        if expr_text(node) == text:
            return node
    raise DerivationError(f"{text!r} is no part of the right side of {path!r}")


def dtype_of_part(signed: SignedProgram, path: Value, part: Expr) -> str:
    """The dtype in which a part of a right side is computed. DerivationError if it has none."""
    for node in typed_equation(equation_at(signed, path)).value.walk():
        if node.expr == part:
            return node.dtype.name
    raise DerivationError(f"{expr_text(part)!r} has no type")
