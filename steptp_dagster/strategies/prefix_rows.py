"""Plain passes over rows by themselves, and the running values that take their place."""

from dataclasses import replace

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Equation, Expr, Index, Int
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Operator
from steptp_dagster.leir.walk import map_expr
from steptp_dagster.strategies.misses import Miss, Reject
from steptp_dagster.strategies.passes import Pass, Passes
from steptp_dagster.strategies.rewrite import equation_at, new_tensor_names
from steptp_dagster.strategies.running import last_step
from steptp_dagster.strategies.softmax_rewrite import (
    Changes,
    place_of,
    rebuilt,
    state_tensor,
    under_rows,
)
from steptp_dagster.strategies.streaming import IDENTITY, history_equations, indexed


def find_passes(program: SignedProgram, ops: tuple[Operator, ...]) -> tuple[Pass | Miss, ...]:
    """All passes over rows by one of the operations, in text order."""
    finder = Passes(program)
    found: list[Pass | Miss] = []
    for statement in finder.accesses.statements:
        for op in ops:
            if finder.is_update(statement, op):
                try:
                    found.append(finder.whole(statement, op))
                except Reject as miss:
                    found.append(Miss(statement.path, miss.reason, miss.message))
    return tuple(found)


def prefix_maximum(program: SignedProgram, found: Pass) -> SignedProgram:
    """The program with the maximum of every step in an array, and the last one copied out.

    The array has the evaluation type of the maximum, since rounding keeps order.
    """
    loop = found.reduction.loop
    running = state_tensor(new_tensor_names(program, 1)[0], found.target, found.target.scope)
    step, _ = history_equations(found.operand, running, running, loop.index, loop.start)
    return _with_history(program, found, running, step)


def prefix_reduction(program: SignedProgram, found: Pass) -> SignedProgram:
    """The program with the value of every step in an array, and the last one copied out.

    The array has the type of the target, so that each step rounds as it did.
    """
    loop, target = found.reduction.loop, found.target
    running = replace(target, name=new_tensor_names(program, 1)[0])
    here = Index(loop.index)
    earlier = Binary("-", here, Int(1))
    first = Compare((earlier, Int(loop.start)), ("<",))
    old = Call("if_then_else", (first, IDENTITY[found.op], indexed(running, earlier)))

    def step_before(node: Expr) -> Expr:
        return old if isinstance(node, Access) and node.name == target.name else node

    value = map_expr(equation_at(program.program, found.path).value, step_before)
    return _with_history(program, found, running, Equation(indexed(running, here), value))


def _with_history(
    program: SignedProgram, found: Pass, running: Access, step: Equation
) -> SignedProgram:
    loop = found.reduction.loop
    copy = Equation(found.target, last_step(running, loop), found.guard)
    place = place_of(program.program, found.reduction, found.path)
    changes: Changes = {
        found.path: (replace(step, guard=found.guard),),
        **dict.fromkeys(found.inits, ()),
    }
    after = {place.path: under_rows(program.program, place, (copy,))}
    new = rebuilt(program.program, changes, after)
    return SignedProgram(new, program.signature)
