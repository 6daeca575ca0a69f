"""Running a program: nested loops over closures, in text order."""

import math
import random
from collections.abc import Callable, Mapping
from typing import Final, Literal

import numpy as np

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
from steptp_dagster.leir.interpreter.faults import Fault, InputError, Log, Run
from steptp_dagster.leir.interpreter.memory import (
    Key,
    LoopState,
    Memory,
    StatementState,
)
from steptp_dagster.leir.interpreter.structure import (
    kinds_and_threads,
    launch_loops,
    names_and_types,
    pure_update,
)
from steptp_dagster.leir.interpreter.types import Types
from steptp_dagster.leir.interpreter.values import Value, identity, rounding
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    equations,
    equations_in,
    expressions,
    indices_in,
)

Precision = Literal["working", "float64"]
Order = Literal["text", "reversed", "shuffled"]
_Action = Callable[[Env], None]
_OWNING_AXES: Final = {"g": (), "s": BLOCK_AXES, "l": BLOCK_AXES + THREAD_AXES}


def interpret(
    signed: SignedProgram,
    inputs: Mapping[str, np.ndarray],
    *,
    precision: Precision = "working",
    dynamic: bool = True,
    max_faults: int = 20,
    order: Order = "text",
    seed: int = 0,
) -> Run:
    """Run a program on NumPy inputs and watch what it does.

    ``inputs`` holds every input and parameter by name, in its declared shape, with values of its
    dtype; bf16 arrives and leaves as float32. ``precision="float64"`` makes every float tensor,
    temporary and literal a double. ``dynamic=False`` leaves out the checks of conflicts, blocks,
    partial values and coverage, which is faster. ``order`` runs the iterations of P, V and B
    loops as written, backwards or shuffled (by ``seed``): a valid program gives the same values,
    reassociated block reductions aside.

    A program without meaning (unknown names, wrong ranks or types) is not run: its outputs are
    NaN, or 0 for integers and bools, as are elements that the program does not write. Raises
    InputError if the inputs do not fit the signature.
    """
    log = Log(max_faults)
    names_and_types(signed, log)
    meaningless = bool(log.found)
    kinds_and_threads(signed, log)
    machine = _Machine(signed, inputs, log, precision == "float64", dynamic, _orders(order, seed))
    if not meaningless:
        machine.run()
    return Run(machine.outputs(), tuple(log.found))


def _orders(order: Order, seed: int) -> Callable[[range], "range | list[int]"]:
    if order == "text":
        return lambda iterations: iterations
    if order == "reversed":
        return lambda iterations: iterations[::-1]
    generator = random.Random(seed)

    def shuffled(iterations: range) -> list[int]:
        return generator.sample(iterations, len(iterations))

    return shuffled


class _Machine:
    """One run: memory, and the program as closures."""

    def __init__(
        self,
        signed: SignedProgram,
        inputs: Mapping[str, np.ndarray],
        log: Log,
        doubles: bool,
        dynamic: bool,
        order: Callable[[range], "range | list[int]"],
    ) -> None:
        self.signed = signed
        self.doubles = doubles
        self.dynamic = dynamic
        self.order = order
        self.statement: StatementState | None = None
        self.forms: dict[str, Access] = {}
        for located in equations(signed.program):
            for expr in expressions(located.equation):
                for access in accesses_in(expr):
                    self.forms.setdefault(access.name, access)
        known = signed.signature.by_name
        names = sorted({*self.forms, *known})
        self.dtypes = {n: known[n].dtype if n in known else self.forms[n].dtype for n in names}
        self.memory = Memory(
            shapes={v.name: v.shape for v in signed.signature.variables},
            ranks={
                n: len(known[n].shape) if n in known else len(self.forms[n].subscripts)
                for n in names
            },
            poison={n: math.nan if DTYPES[self.dtypes[n]].is_float else 0 for n in names},
            log=log,
            env=[],
            cells={n: {} for n in names},
        )
        for variable in signed.signature.sources:
            self.memory.cells[variable.name] = _cells(variable, inputs, doubles)

    def run(self) -> None:
        """Execute all nests, then the checks that need the end."""
        for i, nest in enumerate(self.signed.program.nests):
            _NestCompiler(self, nest, i).run()
        self.memory.settle_pending()
        if self.dynamic:
            self._check_coverage()

    def outputs(self) -> dict[str, np.ndarray]:
        """The outputs as arrays, poison where nothing was written."""
        result = {}
        for variable in self.signed.signature.outputs:
            dtype = DTYPES[variable.dtype]
            if not dtype.is_float:
                array = np.zeros(variable.shape, dtype.numpy)
            else:
                numpy = "float32" if dtype.name == "bf16" else dtype.numpy
                array = np.full(variable.shape, np.nan, "float64" if self.doubles else numpy)
            for key, value in self.memory.cells[variable.name].items():
                array[key] = value
            result[variable.name] = array
        return result

    def complain(self, kind: str, message: str) -> None:
        """Record a fault of the statement that is running."""
        if self.statement is not None:
            self.memory.fault(kind, message, self.statement, "")

    def _check_coverage(self) -> None:
        for variable in self.signed.signature.outputs:
            cells = self.memory.cells[variable.name]
            lacking = next((key for key in np.ndindex(variable.shape) if key not in cells), None)
            if lacking is not None:
                message = f"{variable.name} at {list(lacking)} is never written"
                self.memory.log.report("output-not-covered", message, (), variable.name)


def _cells(variable: Variable, inputs: Mapping[str, np.ndarray], doubles: bool) -> dict[Key, Value]:
    """All elements of an input, parameter or constant, rounded to its dtype."""
    dtype = DTYPES[variable.dtype]
    if variable.values is not None:
        array = np.array(variable.values).reshape(variable.shape)
    elif variable.name not in inputs:
        raise InputError(f"{variable.name} is missing")
    else:
        array = np.asarray(inputs[variable.name])
        if array.shape != variable.shape:
            raise InputError(
                f"{variable.name} has shape {list(array.shape)}, not {list(variable.shape)}"
            )
        if variable.low is not None and variable.high is not None:
            inside = (array >= variable.low) & (array <= variable.high)
            if not bool(np.all(inside)):
                raise InputError(f"{variable.name} leaves {variable.low}..{variable.high}")
    convert: Callable[[float], Value]
    if dtype.is_float:
        convert = float if doubles else rounding(dtype.name)
        flat: list[Value] = array.astype("float64").ravel().tolist()
    else:
        convert = int if dtype.is_integer else bool
        flat = array.ravel().tolist()
    return dict(zip(np.ndindex(variable.shape), map(convert, flat), strict=True))


class _NestCompiler:
    """One top-level nest as closures."""

    def __init__(self, machine: _Machine, nest: Nest, index: int) -> None:
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
        reduced = [i for i, x in enumerate(loops) if x.index not in used and i not in owners]
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


__all__ = ["Fault", "Run", "interpret"]
