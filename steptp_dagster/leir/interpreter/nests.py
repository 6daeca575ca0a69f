"""One top-level nest as closures: loops, and equations with their checks."""

from collections.abc import Callable
from typing import Final

from steptp_dagster.leir.ast import (
    BLOCK_AXES,
    THREAD_AXES,
    Access,
    Equation,
    Loop,
    Nest,
    Statement,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.interpreter.expressions import Closure, Compiler, Env
from steptp_dagster.leir.interpreter.machine import Machine
from steptp_dagster.leir.interpreter.memory import (
    Key,
    LoopState,
    StatementState,
)
from steptp_dagster.leir.interpreter.structure import (
    launch_loops,
    pure_update,
)
from steptp_dagster.leir.interpreter.types import Types
from steptp_dagster.leir.interpreter.values import Value, identity
from steptp_dagster.leir.walk import (
    Path,
    equations_in,
    indices_in,
)

_Action = Callable[[Env], None]
_OWNING_AXES: Final = {"g": (), "s": BLOCK_AXES, "l": BLOCK_AXES + THREAD_AXES}


class NestCompiler:
    """One top-level nest as closures."""

    def __init__(self, machine: Machine, nest: Nest, index: int) -> None:
        self.machine = machine
        self.nest = nest
        self.path: Path = (index,)
        self.launch = launch_loops(nest, self.path)
        located = list(equations_in(nest, self.path))
        # Only a tensor that the nest writes can be in conflict there.
        self.written = {e.equation.target.name for e in located} if machine.dynamic else set()
        self.has_blocks = any(x.axis in BLOCK_AXES for e in located for x in e.loops)

    def run(self) -> None:
        """Execute the nest."""
        action = self._statement(self.nest, self.path, (), ())
        depth = max(len(located.loops) for located in equations_in(self.nest))
        memory = self.machine.memory
        memory.by_block.clear()
        memory.in_every_launch = min(
            len(self._launch_around(e.path)) for e in equations_in(self.nest, self.path)
        )
        memory.env[:] = [0] * depth
        action(memory.env)

    def _launch_around(self, path: Path) -> range:
        """Places of the launch loops around a statement."""
        return range(sum(path[: len(p)] == p for p in self.launch))

    def _statement(
        self,
        statement: Statement,
        path: Path,
        loops: tuple[Loop, ...],
        states: tuple[LoopState, ...],
    ) -> _Action:
        if isinstance(statement, Equation):
            return self._equation(statement, path, loops, states)
        own = tuple(LoopState(x.index, x.kind in "PVB") for x in statement.loops)
        inner_loops, inner_states = loops + statement.loops, states + own
        for k, state in enumerate(own, len(loops)):
            state.steady = self._steady(inner_loops[: k + 1])
        actions = [
            self._statement(s, (*path, i), inner_loops, inner_states)
            for i, s in enumerate(statement.body)
        ]
        for depth in reversed(range(len(statement.loops))):
            loop, state = statement.loops[depth], own[depth]
            actions = [self._loop(loop, state, len(loops) + depth, actions)]
        return actions[0]

    def _steady(self, loops: tuple[Loop, ...]) -> tuple[int, ...] | None:
        """See ``LoopState.steady``; ``loops`` end with the loop in question."""
        around = list(enumerate(loops[:-1]))
        if loops[-1].axis not in THREAD_AXES:
            return None
        if all(loop.kind == "B" for i, loop in around if i >= len(self.launch)):
            return None
        return tuple(i for i, loop in around if i < len(self.launch) or loop.kind == "B")

    def _loop(self, loop: Loop, state: LoopState, slot: int, actions: list[_Action]) -> _Action:
        iterations = range(loop.start, loop.start + loop.extent)
        order, active = self.machine.order, self.machine.memory.active
        checked = state.checked
        watched = self.machine.dynamic and (checked or bool(state.accumulators))

        def run(env: Env) -> None:
            if watched:
                state.seen, state.touchers = {}, {}
                active.append(state)
            for value in order(iterations) if checked else iterations:
                env[slot] = state.now = value
                for action in actions:
                    action(env)
            if watched:
                active.pop()

        return run

    def _equation(
        self,
        equation: Equation,
        path: Path,
        loops: tuple[Loop, ...],
        states: tuple[LoopState, ...],
    ) -> _Action:
        machine, memory = self.machine, self.machine.memory
        slots = {loop.index: i for i, loop in enumerate(loops)}
        axes = {loop.axis: i for i, loop in enumerate(loops) if loop.axis}
        update = pure_update(equation, loops)
        used = frozenset(n for s in equation.target.subscripts for n in indices_in(s))
        launch = tuple(self._launch_around(path))
        owners = _owners(equation.target.scope, launch, axes)
        reduced = [
            i
            for i, loop in enumerate(loops)
            if loop.extent > 1 and loop.index not in used and i not in owners
        ]
        state = StatementState(
            path=path,
            slots=tuple(slots.items()),
            launch=launch,
            blocks=tuple(axes.get(a, -1) for a in BLOCK_AXES),
            exempt=tuple(states[i] for i in reduced if update and loops[i].axis in THREAD_AXES),
        )
        if update and reduced:
            states[reduced[0]].accumulators.append(state)
        target = equation.target
        dtype = DTYPES[machine.dtypes[target.name]]
        stored = "f64" if dtype.is_float and machine.doubles else dtype.name
        context = DTYPES[stored].evaluation.name if dtype.is_float else "f64"
        types = Types(context, doubles=machine.doubles)

        def reader(access: Access) -> Closure:
            own = update is not None and access.name == target.name
            return self._reader(access, self._key(access, compiler, launch, axes), state, own)

        compiler = Compiler(types, slots, reader, machine.complain)
        condition = None if equation.guard is None else compiler.condition(equation.guard)
        raw, own_type = compiler.typed(equation.value, context if dtype.is_float else dtype.name)
        value = compiler.converted(raw, own_type, stored)
        locate = self._key(target, compiler, launch, axes)
        touch = self._toucher(target, state)
        name, begin = target.name, None if update is None else identity(update.op, stored)

        def run(env: Env) -> None:
            machine.statement = state
            if condition is not None and not condition(env):
                return
            key = locate(env)
            if begin is not None:
                memory.start_update(name, key, begin, state)
            result = value(env)
            memory.write(name, key, result, state)
            if touch is not None:
                touch(key, True, begin is not None)

        return run

    def _key(
        self, access: Access, compiler: Compiler, launch: tuple[int, ...], axes: dict[str, int]
    ) -> Callable[[Env], Key]:
        """Where an access goes: launch, block and thread of ``l`` and ``s``, then the subscript."""
        subscripts = tuple(compiler.subscript(s) for s in access.subscripts)
        if access.scope == "g":
            return _key_of(subscripts)
        owners = _owners(access.scope, launch, axes)
        present = tuple(int(a in axes) for a in _OWNING_AXES[access.scope])
        return lambda env: (
            *present,
            *(env[slot] for slot in owners),
            *(int(s(env)) for s in subscripts),
        )

    def _reader(
        self, access: Access, locate: Callable[[Env], Key], state: StatementState, own: bool
    ) -> Closure:
        name, memory = access.name, self.machine.memory
        cells, touch = memory.cells[name], self._toucher(access, state)
        if touch is None:

            def read(env: Env) -> Value:
                key = locate(env)
                value = cells.get(key)
                return memory.missing(name, key, state) if value is None else value

            return read

        def watched(env: Env) -> Value:
            key = locate(env)
            touch(key, False, own)
            value = cells.get(key)
            return memory.missing(name, key, state) if value is None else value

        return watched

    def _toucher(
        self, access: Access, state: StatementState
    ) -> Callable[[Key, bool, bool], None] | None:
        """The checks of an access, or None where it cannot be in conflict."""
        name, memory = access.name, self.machine.memory
        if name not in self.written:
            return None
        if not (self.has_blocks and access.scope == "g"):
            return lambda key, write, own: memory.touch(name, key, write, state, own)

        def both(key: Key, write: bool, own: bool) -> None:
            memory.touch(name, key, write, state, own)
            memory.touch_across_blocks(name, key, write, state)

        return both


def _owners(scope: str, launch: tuple[int, ...], axes: dict[str, int]) -> tuple[int, ...]:
    """Places of the loops that choose the instance of an ``l`` or ``s`` tensor."""
    if scope == "g":
        return ()
    return (*launch, *(axes[a] for a in _OWNING_AXES[scope] if a in axes))


def _key_of(subscripts: tuple[Closure, ...]) -> Callable[[Env], Key]:
    match subscripts:
        case ():
            return lambda env: ()
        case (a,):
            return lambda env: (int(a(env)),)
        case (a, b):
            return lambda env: (int(a(env)), int(b(env)))
    return lambda env: tuple([int(s(env)) for s in subscripts])
