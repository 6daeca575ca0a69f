"""Finding weighted sums ``O=O+W*X`` whose weights ``W`` are a softmax, in every form.

The weights are followed through plain assignments (copies, views, the softmax itself) up to
``exp(S-M)/Z`` in the indices of the weighted sum. Maximum and sum may be plain passes, a running
maximum with a plain sum, or both running, each read directly or through copies. The weighted sum
may be a running one as well, written out as ``O=G/R``. So every program between a naive attention
and ``flashattention_wo_tiling`` matches.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Binary, Call, Expr, Index, Int, Loop, Nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, at, fresh_indices, indices_in, substitute
from steptp_dagster.strategies.matching import Renaming, distinguishes, instantiate, unify
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.normalisers import Normaliser, normalisers
from steptp_dagster.strategies.pieces import expanded
from steptp_dagster.strategies.running import last_step, row_of
from steptp_dagster.strategies.streaming import (
    Weighting,
    weighted_equation,
    weighted_parts,
)
from steptp_dagster.strategies.weights import (
    Product,
    Weights,
    exponential_at,
    product_of,
    softmax_at,
)


@dataclass(frozen=True, slots=True)
class Attention:
    """A weighted sum with softmax weights.

    ``path`` is the equation that ends in ``target``: the weighted sum itself, or the quotient
    that normalises one. ``reduction`` is the loop over a row, ``others`` are all other loops,
    outermost first, ``columns`` serial ones among them that only the operand uses. ``score`` and
    ``weighting`` are in the indices of these. ``maximum`` and ``total`` are what the weights read,
    ``running``: they are the last steps of running ones. ``chain`` are all tensors that the
    weights were followed through, ``maker`` is the equation of the maximum.

    ``weighted`` is the equation that sums up, if another one normalises, ``streamed`` whether it
    is a running sum, ``fused`` whether it runs in the loop of the running maximum; ``step`` is
    the loop over a row by its name at the equation that sums up.
    """

    path: Path
    target: Access
    score: Expr
    weighting: Weighting
    maximum: Access
    total: Access
    others: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    reduction: Loop
    chain: tuple[str, ...]
    maker: Path
    running: bool
    weighted: Path | None
    fused: bool
    step: str
    streamed: bool = False

    @property
    def rows(self) -> tuple[Loop, ...]:
        """The loops that weights use, and bound ones, outermost first."""
        return tuple(loop for loop in self.others if loop not in self.columns)


def find_attention(program: SignedProgram) -> tuple[Attention | Miss, ...]:
    """All weighted sums of softmax weights, in text order."""
    found = (
        _summed(program, statement) or _written_out(program, statement)
        for statement in Analysis.of(program).accesses.statements
    )
    return tuple(one for one in found if one is not None)


def _summed(program: SignedProgram, statement: Statement) -> Attention | Miss | None:
    """A plain weighted sum."""
    found = product_of(program, statement, softmax_at)
    return None if found is None else _judged(program, statement, found)


def _judged(program: SignedProgram, statement: Statement, product: Product) -> Attention | Miss:
    path = statement.path
    update = Analysis.of(program).updates[path]
    target = statement.equation.target
    nest = _own_nest(program, statement)
    if nest is None:
        return _shares(path, target)
    if update.init != "identity":
        return Miss(path, "start-not-identity", f"{target.name} adds to older values")
    if len(update.reduction_loops) != 1 or update.repeating_loops != update.reduction_loops:
        return Miss(path, "rows-differ", f"{target.name} reduces over several loops")
    reduction = next(x for x in nest.loops if x.index == update.reduction_loops[0])
    if reduction.kind not in ("L", "U"):
        message = f"loop {reduction.index} is of kind {reduction.kind}; a recurrence needs L or U"
        return Miss(path, "reduction-loop-not-serial", message)
    others = tuple(loop for loop in nest.loops if loop is not reduction)
    return _completed(program, statement, product, (reduction, reduction.index), others, None)


def _own_nest(program: SignedProgram, statement: Statement) -> Nest | None:
    """The top-level nest of an unguarded equation that stands alone in it, or None."""
    nest = at(program.program, statement.path[:1])
    if len(statement.path) != len(("nest", "equation")) or not isinstance(nest, Nest):
        return None
    return nest if len(nest.body) == 1 and statement.equation.guard is None else None


def _shares(path: Path, target: Access) -> Miss:
    return Miss(path, "not-alone", f"the sum {target.name} shares its nest or is guarded")


def _written_out(program: SignedProgram, statement: Statement) -> Attention | Miss | None:
    """A weighted sum by the quotient ``O=G/R`` that normalises it.

    ``G`` is the last step of a running weighted sum, or a plain sum with weights ``exp(S-M)``.
    """
    match statement.equation.value:
        case Binary("/", Access() as read, Access() as divisor):
            hidden: Expr | None = None
        case Binary(
            "/",
            Access() as read,
            Call("if_then_else", (condition, Int(value=1), Access() as divisor)),
        ):
            hidden = condition
        case _:
            return None
    writes = Analysis.of(program).accesses.writes.get(read.name, [])
    if len(writes) != 1 or Analysis.of(program).updates[statement.path].kind != "assignment":
        return None
    made = writes[0].statement
    own = _streamed_sum(program, made, read) or _plain_sum(program, made, read)
    if own is None:
        return None
    renaming = unify(own.read, own.target, {})
    names = None if renaming is None else _renamed_loops(made, renaming, own.loop, statement)
    if names is None:
        return None
    chain = [read.name]
    total = expanded(program, statement, divisor, chain, shifts=True)
    weighting = own.weighting.substituted(names)
    if not isinstance(total, Access) or weighting.hidden != hidden:
        return None
    step = names[own.loop.index]
    reduction = replace(own.loop, index=step.name) if isinstance(step, Index) else own.loop
    maximum = substitute(own.maximum, names)
    if not isinstance(maximum, Access):
        return None
    tensors = (*chain, *own.chain, total.name, maximum.name)
    weights = Weights(
        hidden, substitute(own.score, names), maximum, total, tuple(dict.fromkeys(tensors))
    )
    over = (reduction, own.loop.index)
    found = _judged_running(program, statement, made, Product(weights, weighting), over)
    return found if isinstance(found, Miss) else replace(found, streamed=own.streamed)


@dataclass(frozen=True, slots=True)
class _Sum:
    """A weighted sum that a quotient normalises, in its own indices.

    ``read`` and ``target`` are how the quotient reads its rows and how it writes them.
    """

    read: Access
    target: Access
    score: Expr
    maximum: Access
    weighting: Weighting
    loop: Loop
    chain: tuple[str, ...]
    streamed: bool


def _streamed_sum(program: SignedProgram, made: Statement, read: Access) -> _Sum | None:
    """The running weighted sum whose last step is read."""
    equation = made.equation
    parts = weighted_parts(equation.value)
    if parts is None or not equation.target.subscripts or equation.guard is not None:
        return None
    step = equation.target.subscripts[-1]
    loop = next((ref.loop for ref in made.chain if Index(ref.name) == step), None)
    if loop is None or parts[1].subscripts[-1:] != (step,):
        return None
    score, here, weighting = parts
    array, target = row_of(here), row_of(equation.target)
    expected = weighted_equation(score, array, target, weighting, loop.index, loop.start)
    if expected != equation or read.subscripts[-1] != last_step(read, loop).subscripts[-1]:
        return None
    last = last_step(array, loop)
    return _Sum(row_of(read), target, score, last, weighting, loop, (), streamed=True)


def _plain_sum(program: SignedProgram, made: Statement, read: Access) -> _Sum | None:
    """The plain sum with weights that nothing has normalised yet."""
    update = Analysis.of(program).updates[made.path]
    found = product_of(program, made, exponential_at)
    if found is None or made.equation.guard is not None or update.init != "identity":
        return None
    if len(update.reduction_loops) != 1 or update.repeating_loops != update.reduction_loops:
        return None
    loop = next(ref.loop for ref in made.chain if ref.name == update.reduction_loops[0])
    weights = found.weights
    if loop.kind not in ("L", "U"):
        return None
    return _Sum(
        read,
        made.equation.target,
        weights.score,
        weights.maximum,
        found.weighting,
        loop,
        weights.chain,
        streamed=False,
    )


def _renamed_loops(
    made: Statement, renaming: Renaming, loop: Loop, reader: Statement
) -> dict[str, Expr] | None:
    """The reader's indices for those of the running sum, a fresh one for its step if need be."""
    names: dict[str, Expr] = {old: Index(new) for old, new in renaming.items()}
    taken = {ref.name for ref in reader.chain}
    for ref in made.chain:
        if ref.name == loop.index:
            fresh = loop.index if loop.index not in taken else next(fresh_indices(taken))
            names[ref.name] = Index(fresh)
        elif ref.name not in names:
            if ref.loop.extent > 1:
                return None
            names[ref.name] = Int(ref.loop.start)
    return names


def _judged_running(
    program: SignedProgram,
    statement: Statement,
    made: Statement,
    product: Product,
    over: tuple[Loop, str],
) -> Attention | Miss:
    path, target = statement.path, statement.equation.target
    nest = _own_nest(program, statement)
    if nest is None:
        return _shares(path, target)
    extents = {ref.name: ref.loop.extent for ref in made.chain}
    reduced = Analysis.of(program).updates[made.path].reduction_loops
    rows = [name for name in extents if name not in reduced]
    forms = Analysis.of(program).accesses.by_statement[made.path][0].forms
    if not distinguishes(forms, rows, extents) or made.path[0] >= path[0]:
        message = f"an element of {made.equation.target.name} is written more than once"
        return Miss(path, "rows-differ", message)
    writes = Analysis.of(program).accesses.writes
    weighting = product.weighting
    moved = (weighting.operand, *(() if weighting.hidden is None else (weighting.hidden,)))
    for access in (one for expr in moved for one in accesses_in(expr)):
        late = any(w.statement.path[0] >= made.path[0] for w in writes.get(access.name, []))
        if late or access.scope != "g":
            message = f"{access.name} may be written after the running sum has read it"
            return Miss(path, "scores-change", message)
    return _completed(program, statement, product, over, nest.loops, made)


def _completed(
    program: SignedProgram,
    statement: Statement,
    product: Product,
    over: tuple[Loop, str],
    others: tuple[Loop, ...],
    made: Statement | None,
) -> Attention | Miss:
    """The weighted sum with its maximum and sum, and its loops told apart.

    ``over`` is the loop over a row and its name at the equation that sums up.
    """
    weights, (reduction, step) = product.weights, over
    way = _made(program, statement, weights, reduction)
    if isinstance(way, Miss):
        return way
    used = indices_in(weights.score) | indices_in(weights.maximum) | indices_in(weights.total)
    if weights.hidden is not None:
        used |= indices_in(weights.hidden)
        if reduction.index in indices_in(weights.hidden):
            return Miss(statement.path, "rows-differ", "single weights of a row are hidden")
    columns = tuple(loop for loop in others if loop.index not in used and loop.kind in ("L", "U"))
    return Attention(
        statement.path,
        statement.equation.target,
        weights.score,
        product.weighting,
        weights.maximum,
        weights.total,
        others,
        columns,
        reduction,
        (*weights.chain, *way.state),
        way.maker.path,
        way.running,
        None if made is None else made.path,
        made is not None and way.reduction in made.chain,
        step,
    )


def _made(
    program: SignedProgram, statement: Statement, found: Weights, reduction: Loop
) -> Normaliser | Miss:
    """How maximum and sum are made, if they are those of the rows of the weights."""
    path = statement.path
    softmax = _softmax(found.score, found.maximum, found.total)
    for way in normalisers(program):
        if (way.maximum.name, way.total.name) != (found.maximum.name, found.total.name):
            continue
        solved = instantiate(_softmax(way.score, way.maximum, way.total), softmax, {})
        if solved is None or not _same_rows(way, solved, reduction):
            continue
        changed = _changed(program, way, statement)
        if changed is not None:
            return Miss(path, "scores-change", changed)
        return way
    message = f"{found.maximum.name} and {found.total.name} are not those of a row of the sum"
    return Miss(path, "rows-differ", message)


def _softmax(score: Expr, maximum: Expr, total: Expr) -> Expr:
    return Binary("/", Call("exp", (Binary("-", score, maximum),)), total)


def _same_rows(way: Normaliser, solved: Mapping[str, Expr], reduction: Loop) -> bool:
    """Whether the solved indices run over one row, in order, as the weighted sum does."""
    loop = way.reduction.loop
    if solved.get(loop.index) != Index(reduction.index):
        return False
    if (loop.start, loop.extent) != (reduction.start, reduction.extent):
        return False
    others = [expr for name, expr in solved.items() if name != loop.index]
    return not any(reduction.index in indices_in(expr) for expr in others)


def _changed(program: SignedProgram, way: Normaliser, statement: Statement) -> str | None:
    """Why the scores may have changed between the maximum and the weighted sum, or None."""
    nest = statement.path[0]
    if max(way.maker.path[0], way.last.path[0]) >= nest:
        return "maximum and sum are computed in the nest of the weighted sum"
    accesses = Analysis.of(program).accesses
    for name in dict.fromkeys(access.name for access in accesses_in(way.score)):
        for write in accesses.writes.get(name, []):
            maker = write.statement
            if maker.path[0] < way.maker.path[0]:
                continue
            extents = {ref.name: ref.loop.extent for ref in maker.chain}
            once = distinguishes(write.forms, extents, extents)
            plain = Analysis.of(program).updates[maker.path].kind == "assignment"
            if maker.order > way.maker.order or not (once and plain) or write.access.scope != "g":
                return f"{name} may be written after the maximum was taken"
    return None
