"""Derivations by the analyses of ``leir``: variables, updates, dependences, cost."""

from collections.abc import Mapping
from math import prod
from typing import Final

from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.cost import cost as cost_of
from steptp_dagster.leir.dependence import Answer, can_move, carried
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.liveness import dead_equations as find_dead
from steptp_dagster.leir.parallelism import parallelism
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import Typing
from steptp_dagster.leir.updates import Update, classify
from steptp_dagster.leir.walk import Path, accesses_in, equations, expressions
from steptp_dagster.reasoning.kinds import (
    Derivation,
    DerivationError,
    equation_at,
    name_of,
    path_of,
    statement_at,
)
from steptp_dagster.strategies.facts import Value


def role_of(signed: SignedProgram, tensor: Value) -> str:
    """Role of a known variable, or ``intermediate``."""
    known = signed.signature.by_name.get(name_of(tensor))
    if known is not None:
        return known.role
    _annotations(signed, tensor)
    return "intermediate"


def is_output(signed: SignedProgram, tensor: Value) -> bool:
    """Whether a tensor is an output of the program."""
    return role_of(signed, tensor) == "output"


def _annotations(signed: SignedProgram, tensor: Value) -> tuple[str, str]:
    known = signed.signature.by_name.get(name_of(tensor))
    if known is not None:
        return known.dtype, "g"
    for located in equations(signed.program):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                if access.name == tensor:
                    return access.dtype, access.scope
    raise DerivationError(f"no tensor {tensor!r}")


def dtype_of(signed: SignedProgram, tensor: Value) -> str:
    """Dtype of a tensor, from the signature or its first occurrence."""
    return _annotations(signed, tensor)[0]


def scope_of(signed: SignedProgram, tensor: Value) -> str:
    """Scope of a tensor, from its first occurrence; known variables are global."""
    return _annotations(signed, tensor)[1]


def shape_of(signed: SignedProgram, tensor: Value) -> tuple[int, ...]:
    """Shape of a tensor, in elements."""
    shapes = infer_shapes(signed)
    if tensor not in shapes:
        raise DerivationError(f"no tensor {tensor!r}")
    return tuple(shapes[name_of(tensor)])


def elements_of(signed: SignedProgram, tensor: Value) -> int:
    """Number of elements of one instance of a tensor."""
    return prod(shape_of(signed, tensor))


def bytes_of(signed: SignedProgram, tensor: Value) -> int:
    """Size of one instance of a tensor, in bytes."""
    return elements_of(signed, tensor) * DTYPES[dtype_of(signed, tensor)].bytes


def evaluation_dtype(_: SignedProgram, dtype: Value) -> str:
    """The dtype in which values of a dtype take part in arithmetic."""
    if dtype not in DTYPES:
        raise DerivationError(f"no dtype {dtype!r}")
    return DTYPES[name_of(dtype)].evaluation.name


def expression_dtype(signed: SignedProgram, path: Value) -> str:
    """The evaluation dtype of the right side of an equation."""
    equation = equation_at(signed, path)
    return Typing(signed).expr_dtype(equation.value, equation.target.dtype).name


def _update(signed: SignedProgram, path: Value) -> Update:
    equation_at(signed, path)
    return classify(signed)[path_of(path)]


def update_kind(signed: SignedProgram, path: Value) -> str:
    """What an equation is: assignment, update (pure) or recurrence."""
    return str(_update(signed, path).kind)


def update_op(signed: SignedProgram, path: Value) -> str:
    """Operation of a pure update, empty for other equations."""
    return str(_update(signed, path).op or "")


def update_init(signed: SignedProgram, path: Value) -> str:
    """How a pure update starts, empty for other equations."""
    return str(_update(signed, path).init or "")


def reduction_loops(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Indices of the enclosing loops that the target's subscripts do not use."""
    return tuple(_update(signed, path).reduction_loops)


def depends(signed: SignedProgram, path: Value, index: Value) -> str:
    """What the loop of that index at or around a statement carries.

    ``reduction``: nothing but the accumulation of pure updates.
    """
    found = carried(signed, _nest_of_loop(signed, path_of(path), name_of(index)), name_of(index))
    if found.answer is Answer.NONE and found.reduction is not Answer.NONE:
        return "reduction"
    return found.answer.name.lower()


def _nest_of_loop(signed: SignedProgram, path: Path, index: str) -> Path:
    for depth in range(len(path), 0, -1):
        statement = statement_at(signed, path[:depth])
        if isinstance(statement, Nest) and index in {loop.index for loop in statement.loops}:
            return path[:depth]
    raise DerivationError(f"no loop {index!r} around the statement at {path}")


def conflict(signed: SignedProgram, first: Value, second: Value) -> str:
    """Whether two statements of one body conflict, or one of those between them with the first.

    ``none``: their order does not matter; else ``dependence`` or ``unknown``.
    """
    statement_at(signed, first)
    statement_at(signed, second)
    try:
        return can_move(signed, path_of(first), path_of(second)).name.lower()
    except ValueError as error:
        raise DerivationError(str(error)) from error


def dead_equations(signed: SignedProgram) -> tuple[Value, ...]:
    """Paths of the equations that no output depends on."""
    return find_dead(signed)


def cost(signed: SignedProgram, figure: Value) -> int:
    """A figure of ``leir.cost``; ``bytes_read_g`` is bytes read from scope ``g``."""
    found = cost_of(signed)
    match name_of(figure):
        case "flops":
            return found.flops
        case "iterations":
            return found.iterations
        case "nests":
            return found.nests
        case "loops":
            return found.loops
        case "equations":
            return found.equations
        case "loop_depth":
            return found.loop_depth
        case "bytes_read_g" | "bytes_read_s" | "bytes_read_l" as name:
            return found.bytes_read.get(name[-1], 0)
        case "bytes_written_g" | "bytes_written_s" | "bytes_written_l" as name:
            return found.bytes_written.get(name[-1], 0)
        case "launches":
            return parallelism(signed.program).launches
        case "at_once":
            return parallelism(signed.program).at_once
        case "barriers":
            return parallelism(signed.program).barriers
    raise DerivationError(f"no cost figure {figure!r}")


KINDS: Final[Mapping[str, Derivation]] = {
    f.__name__: f
    for f in (
        role_of,
        is_output,
        dtype_of,
        scope_of,
        shape_of,
        elements_of,
        bytes_of,
        evaluation_dtype,
        expression_dtype,
        update_kind,
        update_op,
        update_init,
        reduction_loops,
        depends,
        conflict,
        dead_equations,
        cost,
    )
}
