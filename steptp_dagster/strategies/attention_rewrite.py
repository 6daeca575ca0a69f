"""Writing a weighted sum of softmax weights in its streaming forms.

``prefix_sum_of_products`` makes the weighted sum a running one in its own nest, ``one_pass`` runs
it in one loop with the running maximum and sum, each step kept in an array, and ``rolling_state``
does the same with nothing but the state of the present step, private to the thread.
"""

from collections.abc import Iterable
from dataclasses import replace

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Statement,
)
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    fresh_indices,
    map_expr,
    map_program,
    replace_at,
    tensor_names,
)
from steptp_dagster.strategies.attention import Attention
from steptp_dagster.strategies.rewrite import nest_at, new_tensor_names
from steptp_dagster.strategies.running import row_of
from steptp_dagster.strategies.softmax_rewrite import pruned, state_tensor
from steptp_dagster.strategies.streaming import (
    MINUS_INF,
    ZERO,
    history_equations,
    indexed,
    shrink,
    term,
    weighted_equation,
)

#: Tensors of the rolling state: running maximum, sum of weights, weighted sum, next maximum,
#: factor of the old sums, weight.
ROLLING_STATE = 6


def prefix_sum_of_products(program: SignedProgram, found: Attention) -> SignedProgram:
    """The program with the weighted sum of every step, and the quotient of the last ones.

    ``found`` is a plain weighted sum whose maximum and sum are running ones.
    """
    weighted = _history(new_tensor_names(program, 1)[0], found.target, found.target.subscripts)
    running, total = row_of(found.maximum), row_of(found.total)
    step = _weighted_step(found, running, weighted)
    nests = (Nest(_summing_loops(program, found), (step,)), _written_out(found, weighted, total))
    new = replace_at(program.program, found.path[:1], *nests)
    return pruned(SignedProgram(new, program.signature), found.chain)


def _summing_loops(program: SignedProgram, found: Attention) -> tuple[Loop, ...]:
    """The loops of a plain weighted sum, in their order."""
    if found.weighted is None:
        return nest_at(program.program, found.path[:1]).loops
    return (*found.others, found.reduction)


def one_pass(program: SignedProgram, found: Attention) -> SignedProgram:
    """The program with maximum, sum and weighted sum of every step, made in one loop.

    Running ones that are there already and that nothing else reads move in under their names.
    """
    names = new_tensor_names(program, len(("maximum", "total", "weighted")))
    row = tuple(Index(loop.index) for loop in found.rows)
    running = _history(names[0], found.maximum, row)
    total = _history(names[1], found.total, row)
    weighted = _history(names[2], found.target, found.target.subscripts)
    loop = found.reduction
    body = (
        *history_equations(found.score, running, total, loop.index, loop.start),
        _under(found.columns, _weighted_step(found, running, weighted)),
    )
    nests = (Nest((*found.rows, loop), body), _written_out(found, weighted, total))
    new = replace_at(program.program, found.path[:1], *nests)
    result = pruned(SignedProgram(new, program.signature), streamed_names(program, found))
    return _under_old_names(result, zip(names, _old_names(program, found), strict=True))


def keeps_types(program: SignedProgram, found: Attention) -> bool:
    """Whether the running values that are there have the types that ``one_pass`` gives them."""
    accesses = Analysis.of(program).accesses
    tensors = [found.maximum, found.total]
    if found.weighted is not None:
        tensors.append(accesses.statement_at[found.weighted].equation.target)
    wanted = [state_tensor("A", like, "g").dtype for like in (found.maximum, found.total)]
    wanted.append(state_tensor("A", found.target, "g").dtype)
    return [access.dtype for access in tensors] == wanted


def rolling_state(program: SignedProgram, found: Attention) -> SignedProgram:
    """The program with the weighted sum made in one loop over state that each step overwrites."""
    names = new_tensor_names(program, ROLLING_STATE)
    new = replace_at(program.program, found.path[:1], _rolling_nest(found, names))
    return pruned(SignedProgram(new, program.signature), streamed_names(program, found))


def streamed_names(program: SignedProgram, found: Attention) -> tuple[str, ...]:
    """All tensors that the streaming form takes the place of, unless something else reads them."""
    return tuple(dict.fromkeys((*found.chain, *filter(None, _old_names(program, found)))))


def _old_names(program: SignedProgram, found: Attention) -> tuple[str | None, ...]:
    """The running maximum, sum and weighted sum that are there already."""
    weighted = None
    if found.weighted is not None:
        weighted = Analysis.of(program).accesses.statement_at[found.weighted].equation.target.name
    if not found.running:
        return None, None, weighted
    return found.maximum.name, found.total.name, weighted


def _history(name: str, like: Access, row: tuple[Expr, ...]) -> Access:
    """An array of running values in global memory, without its step."""
    return replace(state_tensor(name, like, "g"), subscripts=row)


def _weighted_step(found: Attention, running: Access, weighted: Access) -> Equation:
    return weighted_equation(
        found.score,
        running,
        weighted,
        found.weighting,
        found.reduction.index,
        found.reduction.start,
    )


def _written_out(found: Attention, weighted: Access, total: Access) -> Nest:
    """``O=G/R`` after the last step, in the loops of the weighted sum but the one over a row."""
    last = Int(found.reduction.start + found.reduction.extent - 1)
    quotient = found.weighting.normalised(indexed(weighted, last), indexed(total, last))
    return Nest(_outer(found, *found.others), (Equation(found.target, quotient),))


def _outer(found: Attention, *loops: Loop) -> tuple[Loop, ...]:
    """The loops, or one of extent 1 where there is none: a nest has a loop."""
    if loops:
        return loops
    used = {loop.index for loop in (*found.others, found.reduction)}
    return (Loop("L", next(fresh_indices(used)), 1),)


def _rolling_nest(found: Attention, names: tuple[str, ...]) -> Nest:
    """The nest over the rolling state; ``names`` in the order in which they occur."""
    wide = tuple(Index(loop.index) for loop in found.columns if loop.extent > 1)
    running, new = (_private(names[k], found.maximum) for k in (0, 3))
    total, factor, weight = (_private(names[k], found.total) for k in (1, 4, 5))
    weighted = replace(_private(names[2], found.target), subscripts=wide)
    scaled = found.weighting.kept(weighted, Binary("*", weighted, factor))
    product = found.weighting.product(weight)
    quotient = found.weighting.normalised(weighted, total)
    step: tuple[Statement, ...] = (
        Equation(new, Call("max", (running, found.score))),
        Equation(factor, shrink(running, new)),
        Equation(weight, term(found.score, new)),
        Equation(total, Binary("+", Binary("*", total, factor), weight)),
        _under(found.columns, Equation(weighted, Binary("+", scaled, product))),
        Equation(running, new),
    )
    return Nest(
        _outer(found, *found.rows),
        (
            Equation(running, MINUS_INF),
            Equation(total, ZERO),
            _under(found.columns, Equation(weighted, ZERO)),
            Nest((found.reduction,), step),
            _under(found.columns, Equation(found.target, quotient)),
        ),
    )


def _private(name: str, like: Access) -> Access:
    return replace(state_tensor(name, like, "l"), subscripts=())


def _under(loops: tuple[Loop, ...], equation: Equation) -> Statement:
    return Nest(loops, (equation,)) if loops else equation


def _under_old_names(
    program: SignedProgram, pairs: Iterable[tuple[str, str | None]]
) -> SignedProgram:
    """The program with new tensors called as the old ones, where those are gone."""
    left = tensor_names(program.program)
    names = {new: old for new, old in pairs if old is not None and old not in left}

    def visit(node: Expr) -> Expr:
        if isinstance(node, Access) and node.name in names:
            return replace(node, name=names[node.name])
        return node

    def mapped(expr: Expr) -> Expr:
        return map_expr(expr, visit)

    return SignedProgram(map_program(program.program, mapped), program.signature)
