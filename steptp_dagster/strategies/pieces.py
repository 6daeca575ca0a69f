"""What stands between a maximum or a sum and the equations that use it: copies, ``S-M``, ``exp``.

A hand-written softmax stores ``S-M`` or ``exp(S-M)`` before it sums up; ``unfolded`` reads such
an equation as if everything were written out in it.
"""

from collections.abc import Collection, Mapping

from steptp_dagster.leir.accesses import Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Binary, Call, Equation, Expr, Nest
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    accesses_in,
    children,
    iter_expr,
    substitute,
    with_children,
)
from steptp_dagster.strategies.dataflow import Flow, flows, writes_of
from steptp_dagster.strategies.definitions import Problem, definition, operand_problem
from steptp_dagster.strategies.streaming import shift_of, streamed_total, unshifted_total

#: Tensors with the plain assignment that defines each.
Pieces = Mapping[str, Statement]


def pieces(program: SignedProgram, names: Collection[str], *, shifts: bool = False) -> Pieces:
    """Tensors that copies, differences and exponentials of the named tensors define.

    Each is written by one assignment without a guard, directly or through other pieces. With
    ``shifts`` a ``finite_shift`` counts as a copy of the maximum in it, and a ``shifted_total`` as
    one of the sum.
    """
    analysis = Analysis.of(program)
    found: dict[str, Statement] = {}
    known = set(names)
    for i, nest in enumerate(program.program.nests):
        for flow in _piece_flows(nest):
            if flow.target in known or known.isdisjoint(flow.read):
                continue
            if not shifts and (is_shift(flow.equation) or _is_shifted_total(flow.equation)):
                continue
            path = (i, *flow.path)
            if len(writes_of(analysis.accesses, flow.target)) != 1:
                continue
            if analysis.updates[path].kind != "assignment":
                continue
            found[flow.target] = analysis.accesses.statement_at[path]
            known.add(flow.target)
    return found


@per_nest
def _piece_flows(nest: Nest) -> tuple[Flow, ...]:
    """The equations of a nest that may define pieces, by their form."""
    return tuple(
        flow for flow in flows(nest) if flow.equation.guard is None and _is_piece(flow.equation)
    )


def is_shift(equation: Equation) -> bool:
    """Whether an equation defines a ``finite_shift`` of a maximum of its own type."""
    maximum = shift_of(equation.value)
    return (
        maximum != equation.value
        and isinstance(maximum, Access)
        and maximum.dtype == equation.target.dtype
    )


def _is_shifted_total(equation: Equation) -> bool:
    """Whether an equation copies a running sum out for readers that have a ``finite_shift``."""
    return unshifted_total(equation.value) != equation.value


def _unshifted(program: SignedProgram, expr: Expr) -> Expr:
    """The sum in a ``shifted_total``, if the maximum in it is the one that the sum runs beside."""
    total = unshifted_total(expr)
    if total == expr:
        return expr
    match expr, total:
        case Call(arguments=(_, Access() as maximum, _)), Access() if (
            maximum.subscripts == total.subscripts
        ):
            writes = Analysis.of(program).accesses.writes.get(total.name, [])
            if any(_subtracts(use.statement.equation.value, maximum.name) for use in writes):
                return total
    return expr


def _subtracts(value: Expr, maximum: str) -> bool:
    """Whether a sum's equation has an exponential of something minus the tensor."""
    for node in iter_expr(value):
        match node:
            case Call("exp", (Binary("-", right=Access() as right),)) if right.name == maximum:
                return True
    return False


def _is_piece(equation: Equation) -> bool:
    match equation.value:
        case Access() | Binary("-") | Call("exp"):
            return True
    special = streamed_total(unshifted_total(equation.value)) != equation.value
    return special or is_shift(equation)


def unfolded(
    program: SignedProgram, reader: Statement, expr: Expr, known: Pieces, seen: list[str]
) -> Expr:
    """The expression with pieces replaced by their definitions, in the reader's indices.

    A ``faithful_total`` is read as the streamed sum in it, a ``finite_shift`` as the maximum. What
    cannot be replaced, since operands may have changed or subscripts cannot be solved, stays. The
    names of those that were replaced are added to ``seen``.
    """
    if isinstance(expr, Access):
        if expr.name not in known:
            return expr
        new = substituted(program, known[expr.name], reader, expr)
        if new is None or new == expr:
            return expr
        seen.append(expr.name)
        if is_shift(known[expr.name].equation):
            new = shift_of(new)
        return unfolded(program, reader, streamed_total(_unshifted(program, new)), known, seen)
    if not any(access.name in known for access in accesses_in(expr)):
        return expr
    below = tuple(unfolded(program, reader, child, known, seen) for child in children(expr))
    return with_children(expr, below)


def expanded(
    program: SignedProgram, reader: Statement, expr: Expr, seen: list[str], *, shifts: bool = False
) -> Expr:
    """The expression with the accesses that it consists of replaced by their definitions.

    A ``faithful_total`` is read as the streamed sum in it; with ``shifts`` a ``finite_shift`` as
    the maximum and a ``shifted_total`` as the sum.
    """
    writes = Analysis.of(program).accesses.writes
    while isinstance(expr, Access):
        made = [use.statement for use in writes.get(expr.name, [])]
        if len(made) != 1:
            return expr
        new = substituted(program, made[0], reader, expr)
        if new is None or new == expr:
            return expr
        seen.append(expr.name)
        if shifts:
            new = shift_of(new) if is_shift(made[0].equation) else _unshifted(program, new)
        expr = streamed_total(new)
    return expr


def substituted(
    program: SignedProgram, made: Statement, reader: Statement, access: Access
) -> Expr | None:
    """The definition by the assignment ``made`` of what the reader reads, or None."""
    if Analysis.of(program).updates[made.path].kind != "assignment":
        return None
    if made.equation.guard is not None or made is reader:
        return None
    producer, consumer = _located(made), _located(reader)
    solved = definition(program.program, producer, consumer, access)
    if isinstance(solved, Problem):
        return None
    if operand_problem(program, producer, consumer, solved) is not None:
        return None
    return substitute(made.equation.value, solved)


def _located(statement: Statement) -> Located:
    return Located(statement.path, tuple(ref.loop for ref in statement.chain), statement.equation)
