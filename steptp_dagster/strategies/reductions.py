"""The shape of one reduction: the chain of loops around a pure update, and its partial results."""

from dataclasses import dataclass, replace
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Inf,
    Int,
    Loop,
    Nest,
    Statement,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES, DType
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_equation
from steptp_dagster.leir.updates import Update
from steptp_dagster.leir.walk import (
    Path,
    indices_in,
    loops_around,
    map_equation,
    map_expr,
    substitute,
)
from steptp_dagster.strategies.rewrite import equation_at, nest_at

#: A nest needs a loop; one thread runs what no loop is left for.
ONE_THREAD: Final = Loop("B", "tx", 1)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A pure update that stands alone in its loops.

    ``path`` is the equation, ``top`` the outermost nest that holds nothing else, ``loops`` the
    loops from there on. ``over`` are the indices of the loops among them that reduce; loops of
    extent 1 do not count. ``again`` are the extents of the loops around ``top`` that come back to
    the same elements, so that a partial result needs an explicit start in each iteration.
    """

    path: Path
    top: Path
    equation: Equation
    update: Update
    loops: tuple[Loop, ...]
    over: frozenset[str]
    again: tuple[int, ...]

    @property
    def spatial(self) -> tuple[Loop, ...]:
        """The loops that do not reduce."""
        return tuple(loop for loop in self.loops if loop.index not in self.over)

    @property
    def candidates(self) -> tuple[Loop, ...]:
        """The loops that reduce, outermost first."""
        return tuple(loop for loop in self.loops if loop.index in self.over)

    @property
    def op(self) -> str:
        """The operation: ``+ * max min``."""
        return self.update.op or ""

    @property
    def guards_apart(self) -> tuple[Expr | None, bool]:
        """The part of the guard without reduction indices; whether the rest has any."""
        kept: Expr | None = None
        mixed = False
        for part in conjuncts(self.equation.guard):
            if indices_in(part) & self.over:
                mixed = True
            else:
                kept = part if kept is None else Binary("&", kept, part)
        return kept, mixed

    @property
    def explicit(self) -> bool:
        """Whether partial results are started by an equation of their own."""
        return bool(self.again) or self.guards_apart[1]

    @property
    def restarts(self) -> bool:
        """Whether the update as a whole runs several times on the same elements."""
        return any(extent > 1 for extent in self.again)

    @property
    def dtype(self) -> DType:
        """The type in which the update is evaluated: that of its partial results."""
        return typed_equation(self.equation).value.dtype


def reduction_at(program: SignedProgram, path: Path, update: Update) -> Reduction | None:
    """The reduction at ``path``; None where its innermost nest holds other statements."""
    top = path
    loops: tuple[Loop, ...] = ()
    while top[:-1] and len(nest_at(program.program, top[:-1]).body) == 1:
        top = top[:-1]
        loops = nest_at(program.program, top).loops + loops
    if not loops:
        return None
    outer = loops_around(program.program, top)
    over = frozenset(
        loop.index for loop in loops if loop.index in update.reduction_loops and loop.extent > 1
    )
    again = tuple(loop.extent for loop in outer if loop.index in update.repeating_loops)
    return Reduction(path, top, equation_at(program.program, path), update, loops, over, again)


def conjuncts(guard: Expr | None) -> tuple[Expr, ...]:
    """The parts of a guard that all have to hold."""
    if guard is None:
        return ()
    if isinstance(guard, Binary) and guard.op == "&":
        return conjuncts(guard.left) + conjuncts(guard.right)
    return (guard,)


def identity(op: str, dtype: DType) -> Expr | None:
    """The literal from which ``op`` starts; None where no literal denotes it."""
    if op == "+":
        return Int(0)
    if op == "*":
        return Int(1)
    if not dtype.is_float:
        return None
    return Unary("-", Inf()) if op == "max" else Inf()


def apply_op(op: str, left: Expr, right: Expr) -> Expr:
    """``left op right`` for one of ``+ * max min``."""
    if op in ("max", "min"):
        return Call(op, (left, right))
    return Binary(op, left, right)


def in_place_of(equation: Equation, old: str, new: Access) -> Equation:
    """The equation with every access to the tensor ``old`` replaced by ``new``."""

    def visit(node: Expr) -> Expr:
        return new if isinstance(node, Access) and node.name == old else node

    return map_equation(equation, lambda expr: map_expr(expr, visit))


def with_indices(equation: Equation, by: dict[str, Expr]) -> Equation:
    """The equation with indices replaced everywhere."""
    return map_equation(equation, lambda expr: substitute(expr, by))


def partial_access(reduction: Reduction, name: str, *more: Expr) -> Access:
    """The partial result ``name`` at the target's subscripts, with further ones behind."""
    target = reduction.equation.target
    return replace(
        target, name=name, dtype=reduction.dtype.name, subscripts=(*target.subscripts, *more)
    )


def started(
    reduction: Reduction,
    partial: Access,
    loops: tuple[Loop, ...],
    update: Equation,
    over: frozenset[str],
) -> tuple[Statement, ...]:
    """The statements that compute a partial result, with an explicit start where it needs one.

    ``loops`` are those of the update, of which ``over`` reduce.
    """
    if not reduction.explicit:
        return (Nest(loops, (update,)),)
    start = identity(reduction.op, DTYPES[partial.dtype])
    if start is None:
        raise ValueError(f"no literal for the start of {reduction.op} in {partial.dtype}")
    guard, _ = reduction.guards_apart
    init = Equation(partial, start, guard)
    outside = tuple(loop for loop in loops if loop.index not in over)
    inside = Nest(tuple(loop for loop in loops if loop.index in over), (update,))
    alone = one_thread(reduction)
    if outside:
        first: Statement = Nest(alone, (init,)) if alone else init
        return (Nest(outside, (first, inside)),)
    return (nested(reduction, (), init), inside)


def one_thread(reduction: Reduction) -> tuple[Loop, ...]:
    """A loop of one iteration per thread axis that the reduction is bound to.

    Beside a reduction over threads, what stands outside it is the work of one thread.
    """
    return tuple(Loop("B", loop.axis, 1) for loop in reduction.candidates if loop.axis is not None)


def nested(reduction: Reduction, loops: tuple[Loop, ...], equation: Equation) -> Statement:
    """An equation under loops, with one thread for the axes that the reduction is bound to.

    At the top level, where a kernel of its own begins, one thread is only needed without loops.
    """
    if len(reduction.top) == 1:
        return Nest(loops or (ONE_THREAD,), (equation,))
    header = loops + one_thread(reduction)
    return Nest(header, (equation,)) if header else equation
