"""The body of one kernel: statements, barriers where threads meet, reductions over threads.

Barriers stand between neighbouring statements below which thread loops open and of which one
writes a shared or global tensor that the other touches, and at the end of serial loops around
such neighbours. Data passes between threads nowhere else (``leir.races``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tvm import ir, tirx
from tvm.tirx import ForKind

from steptp_dagster.leir.ast import Access, Binary, Call, Equation, Expr, Index, Int, Loop, Nest
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.typing import TypedEquation, typed_equation
from steptp_dagster.leir.updates import Update
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    expressions,
    fresh_indices,
    fresh_tensors,
)
from steptp_dagster.lowering.cuda.threads import Standing, Team
from steptp_dagster.lowering.expressions import Emitter, Tensor
from steptp_dagster.lowering.first_touch import Before, Initialisation
from steptp_dagster.lowering.machine import CUDA
from steptp_dagster.lowering.storage import EVALUATED_AS, STORED_AS, narrow
from steptp_dagster.lowering.tir import Node, Stmt, integer, prim, real

#: Serial loops of these kinds are unrolled; lanes of a vector are independent.
_UNROLLED: Final = ("U", "V")


@dataclass(frozen=True, slots=True)
class Part:
    """TIR statements with the shared and global tensors that they read and write.

    ``meets`` says that threads exchange data somewhere inside, so that a loop around ends with a
    barrier.
    """

    statements: tuple[Stmt, ...]
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    meets: bool = False

    def before(self, later: "Part") -> bool:
        """Whether a barrier has to stand between this part and a later one."""
        return bool(self.writes & (later.reads | later.writes) or self.reads & later.writes)


@dataclass(slots=True)
class Body:
    """Emits the statements of one kernel and counts what they need.

    ``scratch`` holds the shared tensors that reductions over threads add, by dtype.
    """

    team: Team
    tensors: dict[str, Tensor]
    initialisations: Mapping[Before, Sequence[Initialisation]]
    updates: Mapping[Path, Update]
    scratch: dict[str, Tensor] = field(default_factory=dict)
    barriers: int = 0

    def nest(self, nest: Nest, path: Path, depth: int, standing: Standing) -> Part:
        """The nest from its loop number ``depth`` on, with the initialisations in front of it."""
        first = [self.initialise(i, standing) for i in self._before(path, depth)]
        if depth == len(nest.loops):
            inner = [
                self.nest(child, (*path, i), 0, standing)
                if isinstance(child, Nest)
                else self._statement(child, (*path, i), standing)
                for i, child in enumerate(nest.body)
            ]
            return self.sequence([*first, *inner], standing)
        loop = nest.loops[depth]
        variable = None if loop.axis is not None else tirx.Var(loop.index, "int64")
        below = self.nest(nest, path, depth + 1, standing.within(loop, variable))
        if variable is not None:
            below = self._loop(loop, variable, below, standing)
        return self.sequence([*first, below], standing)

    def _statement(self, equation: Equation, path: Path, standing: Standing) -> Part:
        first = [self.initialise(i, standing) for i in self._before(path, 0)]
        return self.sequence([*first, self._equation(equation, path, standing)], standing)

    def _before(self, path: Path, depth: int) -> Sequence[Initialisation]:
        return self.initialisations.get((path, depth), ())

    def sequence(self, parts: Sequence[Part], standing: Standing) -> Part:
        """Parts one after the other, with barriers where one needs what others did."""
        statements: list[Stmt] = []
        since = Part(())
        meets = any(part.meets for part in parts)
        for part in parts:
            if standing.threads_meet and since.before(part):
                statements.append(self._barrier())
                since, meets = Part(()), True
            statements += part.statements
            since = Part((), since.reads | part.reads, since.writes | part.writes)
        return Part(
            tuple(statements),
            frozenset().union(*(part.reads for part in parts)),
            frozenset().union(*(part.writes for part in parts)),
            meets,
        )

    def _barrier(self) -> Stmt:
        self.barriers += 1
        call = ir.Call("tirx.tvm_storage_sync", [ir.StringImm("shared")], ret_ty=prim("int32"))
        return tirx.Evaluate(call)

    def _loop(self, loop: Loop, variable: Node, below: Part, standing: Standing) -> Part:
        statements = list(below.statements)
        if below.meets and standing.threads_meet:
            statements.append(self._barrier())
        kind = ForKind.UNROLLED if loop.kind in _UNROLLED else ForKind.SERIAL
        return replace(below, statements=(_serial(loop, variable, _joined(statements), kind),))

    def initialise(self, needed: Initialisation, standing: Standing) -> Part:
        """Write the identity of an update over the loops that choose its elements."""
        serial: list[tuple[Loop, Node]] = []
        for _, _, loop in needed.loops:
            variable = None if loop.axis is not None else tirx.Var(loop.index, "int64")
            if variable is not None:
                serial.append((loop, variable))
            standing = standing.within(loop, variable)
        typed = typed_equation(needed.equation)
        dtype = DTYPES[needed.equation.target.dtype]
        source = "float64" if dtype.is_float else "int64"
        value = (
            real(source, needed.identity)
            if dtype.is_float
            else integer(source, int(needed.identity))
        )
        statement = self._store(typed, value, source, standing)
        for loop, variable in reversed(serial):
            statement = _serial(loop, variable, statement)
        part = _touched(needed.equation)
        return replace(part, statements=(statement,), reads=part.reads - part.writes)

    def _equation(self, equation: Equation, path: Path, standing: Standing) -> Part:
        update = self.updates[path]
        together = [
            axis
            for axis in self.team.thread_axes
            if axis in standing.axes
            and standing.axes[axis].index in update.repeating_loops
            and self.team.extents[axis] > 1
        ]
        if together:
            return self._reduction(equation, update, tuple(together), standing)
        typed = typed_equation(equation)
        value = self._emitter(standing).value(typed.value)
        stored = self._store(typed, value, EVALUATED_AS[typed.value.dtype.name], standing)
        return replace(_touched(equation), statements=(stored,))

    def _reduction(
        self, equation: Equation, update: Update, axes: tuple[str, ...], standing: Standing
    ) -> Part:
        """An update whose operands come from many threads: one of them takes them in order.

        Each thread leaves its operand in shared memory and says whether it has one; between two
        barriers, the first thread along the reduced axes updates the target, in text order.
        """
        if update.op is None or update.operand is None:
            raise TypeError("only a pure update reduces over threads")
        evaluated = typed_equation(replace(equation, value=update.operand)).value
        operands, present = self._scratch(evaluated.dtype.name), self._scratch("bool")
        thread = next(fresh_indices(standing.indices))
        here = _at(standing, thread, self.team.thread())
        leave = replace(equation, target=_element(operands, thread), value=update.operand)
        mark = replace(equation, target=_element(present, thread), value=Int(1))
        statements = [
            self._plain(replace(mark, value=Int(0), guard=None), here),
            _where(
                standing.taking_part(), _joined([self._plain(leave, here), self._plain(mark, here)])
            ),
            self._barrier(),
        ]
        ordered = sorted(axes, key=list(standing.axes).index)
        variables = {axis: tirx.Var(f"{axis}_in_turn", "int64") for axis in ordered}
        in_turn = _at(standing, thread, self.team.thread(variables))
        for axis in ordered:
            in_turn = _at(in_turn, standing.axes[axis].index, variables[axis])
        combined = _combined(equation.target, update, _element(operands, thread))
        flag = self._emitter(in_turn).value(typed_equation(mark).target)
        taken = _where(flag, self._plain(replace(equation, value=combined, guard=None), in_turn))
        for axis in reversed(ordered):
            taken = _serial(standing.axes[axis], variables[axis], taken)
        for axis in ordered:
            taken = _where(tirx.EQ(self.team.index(axis), integer("int64", 0)), taken)
        statements += [_where(standing.taking_part(*ordered), taken), self._barrier()]
        return replace(_touched(equation), statements=tuple(statements))

    def _scratch(self, dtype: str) -> Tensor:
        """A shared tensor with one element per thread; reductions share it by dtype."""
        if dtype not in self.scratch:
            name = next(fresh_tensors(self.tensors))
            size = self.team.geometry.threads
            buffer = tirx.decl_buffer(
                (integer("int64", size),), STORED_AS[dtype], name, layout=None, scope="shared"
            )
            self.tensors[name] = self.scratch[dtype] = Tensor(buffer, dtype, (), (size,))
        return self.scratch[dtype]

    def _plain(self, equation: Equation, standing: Standing) -> Stmt:
        """An equation by every thread that comes here."""
        typed = typed_equation(equation)
        value = self._emitter(standing).value(typed.value)
        return self._guarded(typed, value, EVALUATED_AS[typed.value.dtype.name], standing)

    def _store(self, typed: TypedEquation, value: Node, source: str, standing: Standing) -> Stmt:
        """A store by the threads that take part."""
        return _where(standing.taking_part(), self._guarded(typed, value, source, standing))

    def _guarded(self, typed: TypedEquation, value: Node, source: str, standing: Standing) -> Stmt:
        emitter = self._emitter(standing)
        tensor, flat = emitter.address(typed.target)
        store = tirx.BufferStore(tensor.buffer, narrow(tensor.dtype, source, value, CUDA), [flat])
        if typed.guard is None:
            return store
        return _where(emitter.as_type(typed.guard, DTYPES["bool"]), store)

    def _emitter(self, standing: Standing) -> Emitter:
        return Emitter(self.tensors, standing.indices, {}, CUDA)


def _at(standing: Standing, index: str, value: Node) -> Standing:
    return replace(standing, indices={**standing.indices, index: value})


def _element(tensor: Tensor, index: str) -> Access:
    return Access(str(tensor.buffer.name), tensor.dtype, "s", (Index(index),))


def _combined(target: Access, update: Update, operand: Access) -> Expr:
    if update.op in ("max", "min"):
        return Call(update.op, (target, operand))
    return Binary("-" if update.subtract else str(update.op), target, operand)


def _where(condition: Node | None, statement: Stmt) -> Stmt:
    return statement if condition is None else tirx.IfThenElse(condition, statement, None)


def _serial(loop: Loop, variable: Node, body: Stmt, kind: Any = ForKind.SERIAL) -> Stmt:  # noqa: ANN401 - TVM's enum
    start, extent = integer("int64", loop.start), integer("int64", loop.extent)
    return tirx.For(variable, start, extent, kind, body)


def _joined(statements: Sequence[Stmt]) -> Stmt:
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def _touched(equation: Equation) -> Part:
    """The shared and global tensors of an equation, without statements."""
    reads = {
        access.name
        for expr in (*equation.target.subscripts, *expressions(equation)[1:])
        for access in accesses_in(expr)
        if access.scope != "l"
    }
    target = equation.target
    writes = {target.name} if target.scope != "l" else set()
    return Part((), frozenset(reads), frozenset(writes))
