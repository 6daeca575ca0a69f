"""Plain passes over rows: reductions ``X=X op e`` in the form that a recurrence can take over.

``Passes`` has the checks; each raises ``Reject`` with the reason why not.
"""

from dataclasses import dataclass, replace
from typing import Final

from steptp_dagster.leir.accesses import LoopRef, Statement, Use, common_loops
from steptp_dagster.leir.affine import names_in
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Operator, Update
from steptp_dagster.leir.walk import Path, accesses_in, indices_in
from steptp_dagster.strategies.dataflow import flow_at
from steptp_dagster.strategies.matching import Renaming, distinguishes, same_domain, unify
from steptp_dagster.strategies.misses import Reject
from steptp_dagster.strategies.streaming import is_identity

#: What the reductions are called in messages.
NAMES: Final[dict[Operator, str]] = {
    "max": "maximum",
    "min": "minimum",
    "+": "sum",
    "*": "product",
}


@dataclass(frozen=True, slots=True)
class Pass:
    """A reduction over rows, in its own indices.

    ``path`` is its equation, ``op`` the operation, ``target`` what it reduces to and ``operand``
    what by, ``reduction`` the loop over a row, ``again`` outer loops in which the target is used
    anew. ``guard`` is the condition on which a row is there, ``inits`` the equations that start it
    explicitly. ``shown`` is what others read of it: the target, or the last step of a running
    value, whose ``target`` is written without that subscript (``prefix``).
    """

    path: Path
    target: Access
    operand: Expr
    guard: Expr | None
    reduction: LoopRef
    shown: Access
    inits: tuple[Path, ...] = ()
    again: tuple[LoopRef, ...] = ()
    prefix: bool = False
    op: Operator = "max"


class Passes:
    """The equations of one program, and questions about those that are plain passes."""

    def __init__(self, program: SignedProgram) -> None:
        """Analyse the program."""
        self.program = program
        analysis = Analysis.of(program)
        self.accesses, self.updates = analysis.accesses, analysis.updates

    def is_update(self, statement: Statement, op: Operator) -> bool:
        """Whether the equation is a pure update by this operation."""
        path = statement.path
        if not flow_at(self.program.program.nests[path[0]], path[1:]).may_update_by(op):
            return False
        update = self.updates[path]
        return update.kind == "update" and update.op == op and not update.subtract

    def update(self, statement: Statement) -> Update:
        """What the equation does to its target."""
        return self.updates[statement.path]

    def plain(self, statement: Statement, op: Operator) -> Pass:
        """A plain pass by that operation, without its start and its readers."""
        target, operand = statement.equation.target, self.update(statement).operand
        if op in ("max", "min"):
            self.require_float(target)
        reduction, again = self.reduction(statement, op)
        if operand is None or reduction.name not in indices_in(operand):
            raise Reject("scores-differ", f"the scores do not depend on loop {reduction.name}")
        guard = statement.equation.guard
        return Pass(statement.path, target, operand, guard, reduction, target, again=again, op=op)

    def whole(self, statement: Statement, op: Operator) -> Pass:
        """A plain pass by itself, with all that makes it one over whole rows in order."""
        found = self.plain(statement, op)
        require_serial(found.reduction)
        if found.reduction.loop.extent == 1:
            raise Reject("row-of-one", f"loop {found.reduction.name} runs once")
        row_guard(statement, statement, found.reduction, {r.name: r.name for r in statement.chain})
        inits = self.start(found, statement)
        self.uses_are_late(statement, found.reduction, set())
        return replace(found, inits=inits)

    def require_float(self, target: Access) -> None:
        """Reject targets that are no floats."""
        if not DTYPES[target.dtype].is_float:
            raise Reject("not-floating", f"{target.name} is of type {target.dtype}, not a float")

    def reduction(self, statement: Statement, op: Operator) -> tuple[LoopRef, tuple[LoopRef, ...]]:
        """The loop over a row, and outer loops in which the accumulator is used anew."""
        target, what = self.accesses.by_statement[statement.path][0], NAMES[op]
        unused = unused_loops(statement, target)
        if not unused:
            raise Reject("several-reduction-loops", f"the {what} reduces over no loop")
        if len(unused) > 1 and self.update(statement).init == "identity":
            names = ", ".join(ref.name for ref in unused)
            raise Reject("several-reduction-loops", f"the {what} reduces over {names}")
        rows = [ref.name for ref in statement.chain if ref not in unused]
        if not distinguishes(target.forms, rows, extents_of(statement)):
            raise Reject("rows-overlap", f"two rows may share an element of {target.tensor}")
        return unused[-1], unused[:-1]

    def rows_apart(self, statement: Statement, reduction: LoopRef) -> None:
        """Reject running values that the next row overwrites."""
        target = self.accesses.by_statement[statement.path][0]
        rows = [ref.name for ref in statement.chain if ref is not reduction]
        if not distinguishes(target.forms[:-1], rows, extents_of(statement)):
            raise Reject("rows-overlap", "maximum or sum of a row is overwritten by the next row")

    def written_once(self, statement: Statement) -> bool:
        """Whether no other equation writes the tensor."""
        return len(self.accesses.writes[statement.equation.target.name]) == 1

    def start(self, found: Pass, statement: Statement) -> tuple[Path, ...]:
        """The explicit start of an accumulator, if it has one; nothing else may write it.

        ``found`` is the pass by ``statement``.
        """
        reduction, what = found.reduction, NAMES[found.op]
        target = statement.equation.target
        writers = [use.statement for use in self.accesses.writes[target.name]]
        others = [w for w in writers if w is not statement]
        implicit = self.update(statement).init == "identity"
        if implicit and not others:
            return ()
        if implicit or len(others) != 1 or others[0].order > statement.order:
            raise Reject("written-elsewhere", f"{target.name} has other writers than the {what}")
        init = others[0]
        if not is_identity(found.op, init.equation.value):
            raise Reject("start-not-identity", f"the {what} does not start from its identity")
        shared = common_loops(init.chain, statement.chain)
        if (
            any(ref not in statement.chain[:shared] for ref in found.again)
            or reduction in init.chain
        ):
            raise Reject("start-not-identity", f"the {what} is not started once per row")
        renaming = unify(target, init.equation.target, shared_loops(statement, init))
        rows = [ref.loop for ref in statement.chain if ref is not reduction]
        same = renaming is not None and same_domain(rows, [r.loop for r in init.chain], renaming)
        if renaming is None or not same or not same_guard(statement, init, renaming):
            raise Reject("start-not-identity", f"the {what} is started over other rows")
        return (init.path,)

    def uses_are_late(self, made: Statement, loop: LoopRef, own: set[Path]) -> None:
        """All readers but ``own`` come after the last step of the loop that makes the value."""
        for use in self.accesses.by_tensor[made.equation.target.name]:
            reader = use.statement
            if use.write or reader is made or reader.path in own:
                continue
            if reader.order < made.order or loop in reader.chain:
                raise Reject("read-too-early", f"{use.tensor} is read before its last value stands")


def unused_loops(statement: Statement, target: Use) -> tuple[LoopRef, ...]:
    """Enclosing loops on which the written element does not depend, outermost first.

    Loops of extent 1 count only where there is no other; then it is the innermost one that the
    equation's value uses, or else the innermost one.
    """
    used = frozenset(name for form in target.forms for name in names_in(form))
    unused = tuple(ref for ref in statement.chain if ref.name not in used)
    wide = tuple(ref for ref in unused if ref.loop.extent > 1)
    read = indices_in(statement.equation.value)
    return wide or tuple(ref for ref in unused if ref.name in read)[-1:] or unused[-1:]


def require_serial(ref: LoopRef) -> None:
    """Reject loops whose iterations do not run one after another."""
    if ref.loop.kind not in ("L", "U"):
        message = f"loop {ref.name} is of kind {ref.loop.kind}; a recurrence needs L or U"
        raise Reject("reduction-loop-not-serial", message)


def row_guard(
    first: Statement, second: Statement, reduction: LoopRef, renaming: Renaming
) -> Expr | None:
    """The guard of both passes, which must pick whole rows, the same in both."""
    guard = first.equation.guard
    if not same_guard(first, second, renaming):
        raise Reject("guarded-update", "maximum and sum run under different guards")
    if guard is not None and reduction.name in indices_in(guard):
        raise Reject("guarded-update", "the guard leaves out parts of rows")
    if guard is not None and any(True for _ in accesses_in(guard)):
        raise Reject("guarded-update", "the guard reads a tensor")
    return guard


def same_guard(pattern: Statement, other: Statement, renaming: Renaming) -> bool:
    """Whether two equations run under one guard, up to the names of loops."""
    ours, theirs = pattern.equation.guard, other.equation.guard
    if ours is None or theirs is None:
        return ours is theirs
    return unify(ours, theirs, renaming) is not None


def shared_loops(a: Statement, b: Statement) -> Renaming:
    """The identity on the loops that both statements stand under."""
    count = common_loops(a.chain, b.chain)
    return {ref.name: ref.name for ref in a.chain[:count]}


def extents_of(statement: Statement) -> dict[str, int]:
    """The extents of the loops around an equation, by index."""
    return {ref.name: ref.loop.extent for ref in statement.chain}
