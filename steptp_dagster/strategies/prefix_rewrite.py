"""Running maxima and running sums of exponentials beside the values that they end in.

Unlike ``online_softmax``, which redirects the readers of maximum and sum, these rewritings keep
both tensors: a copy of the last step takes the place of the reduction.
"""

from dataclasses import replace

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Equation, Program, Statement
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.prefix_rows import Maximum, last_step
from steptp_dagster.strategies.rewrite import equation_at, new_tensor_names
from steptp_dagster.strategies.softmax_rewrite import place_of, rebuilt, state_tensor, under_rows
from steptp_dagster.strategies.softmax_rows import Rows
from steptp_dagster.strategies.streaming import history_equations


def prefix_maximum(program: SignedProgram, rows: Maximum) -> Program:
    """The program with the maximum of every step in an array, and the last one copied out."""
    loop = rows.reduction.loop
    running = state_tensor(new_tensor_names(program, 1)[0], rows.maximum, rows.maximum.scope)
    step, _ = history_equations(rows.score, running, running, loop.index, loop.start)
    copy = Equation(rows.maximum, last_step(running, loop), rows.guard)
    place = place_of(program.program, rows)
    changes: dict[Path, tuple[Statement, ...]] = {
        rows.max_path: (replace(step, guard=rows.guard),),
        **dict.fromkeys(rows.inits, ()),
    }
    after = {place.path: under_rows(program.program, place, (copy,))}
    return rebuilt(program.program, changes, after, lambda node: node)


def prefix_sum(program: SignedProgram, rows: Rows) -> Program:
    """The program with the sum of every step in an array beside the running maximum.

    Where the maximum is not a running one yet, it becomes one. Sum and maximum are copied out,
    the maximum only where something else than the sum reads it.
    """
    loop = rows.reduction.loop
    names = list(new_tensor_names(program, 1 if rows.prefix else 2))
    total = state_tensor(names[-1], rows.total, rows.total.scope)
    copies = [Equation(rows.total, last_step(total, loop), rows.guard)]
    if rows.prefix:
        running = rows.maximum
        own = equation_at(program.program, rows.max_path)
    else:
        running = state_tensor(names[0], rows.maximum, rows.maximum.scope)
        own = history_equations(rows.score, running, total, loop.index, loop.start)[0]
        own = replace(own, guard=rows.guard)
        if read_elsewhere(program, rows):
            copies.insert(0, Equation(rows.maximum, last_step(running, loop), rows.guard))
    _, step = history_equations(rows.score, running, total, loop.index, loop.start)
    place = place_of(program.program, rows)
    changes: dict[Path, tuple[Statement, ...]] = {
        rows.max_path: (own, replace(step, guard=rows.guard)),
        rows.sum_path: (),
        **dict.fromkeys(rows.inits, ()),
    }
    after = {place.path: under_rows(program.program, place, tuple(copies))}
    return rebuilt(program.program, changes, after, lambda node: node)


def read_elsewhere(program: SignedProgram, rows: Rows) -> bool:
    """Whether something else than the sum and its own update needs the maximum."""
    if rows.maximum.name in {v.name for v in program.signature.outputs}:
        return True
    own = {rows.max_path, rows.sum_path, *rows.inits}
    uses = Analysis.of(program).accesses.by_tensor[rows.maximum.name]
    return any(use.statement.path not in own for use in uses)
