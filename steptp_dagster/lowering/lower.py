"""LEIR programs as flat TIR statements, one loop for one loop.

Every loop becomes a serial one. A program means the same with every kind replaced by ``L``, once
``l`` and ``s`` tensors have one instance per thread or block (``private.py``); that a kind is
legal is the static checker's business. Sibling thread loops run one after the other, which is
what the barrier between them means.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from math import prod

from tvm import tirx
from tvm.tirx import ForKind

from steptp_dagster.leir.ast import Equation, Loop, Statement
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import TypedEquation, typed_equation
from steptp_dagster.leir.walk import Path, accesses_in, equations, expressions
from steptp_dagster.lowering.abi import FlatFunction
from steptp_dagster.lowering.arena import Layout, lay_out
from steptp_dagster.lowering.expressions import Emitter, Tensor
from steptp_dagster.lowering.first_touch import Before, Initialisation, initialisations
from steptp_dagster.lowering.identity import Identity, identity_of
from steptp_dagster.lowering.jitter import Jittered
from steptp_dagster.lowering.machine import LLVM
from steptp_dagster.lowering.precision import Precision, dtype_in, equation_in, nest_in
from steptp_dagster.lowering.private import Instances, private_instances
from steptp_dagster.lowering.storage import EVALUATED_AS, STORED_AS, narrow
from steptp_dagster.lowering.tir import Node, Stmt, Variable, integer, real

_NO_INSTANCES = Instances((), ())


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program as TIR, with the memory it needs."""

    function: FlatFunction
    layout: Layout


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor as it is kept: LEIR dtype as written, axes of its instances, shape with them."""

    dtype: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What lowering a nest needs to know of the program around it.

    ``tensors``: the signature's in order, then the intermediates in text order. What a program
    computes in another precision has the same facts.
    """

    signed: SignedProgram
    tensors: Mapping[str, Kept]
    initialisations: Mapping[Before, Sequence[Initialisation]]

    def layout(self, precision: Precision) -> Layout:
        """The memory of a run."""
        kept = self.tensors.items()
        return lay_out([(name, dtype_in(t.dtype, precision), t.shape) for name, t in kept])


@dataclass(frozen=True, slots=True)
class _Scope:
    """TIR variables of the loops around a statement, by index name and by axis."""

    indices: dict[str, Variable]
    axes: dict[str, Variable]

    def within(self, loop: Loop, variable: Variable) -> "_Scope":
        axes = self.axes if loop.axis is None else {**self.axes, loop.axis: variable}
        return _Scope({**self.indices, loop.index: variable}, axes)


def facts_of(signed: SignedProgram) -> Facts:
    """The facts of a valid program. Raises Unlowerable where its first touches are undecidable."""
    return _facts(identity_of(signed))


@lru_cache(maxsize=128)
def _facts(identity: Identity) -> Facts:
    signed = identity.signed
    return Facts(signed, tensors_of(signed), initialisations(signed))


def tensors_of(signed: SignedProgram) -> Mapping[str, Kept]:
    """How all tensors are kept: the signature's in order, then the intermediates in text order."""
    return _tensors(identity_of(signed))


@lru_cache(maxsize=256)
def _tensors(identity: Identity) -> Mapping[str, Kept]:
    signed = identity.signed
    shapes = infer_shapes(signed)
    instances = private_instances(signed.program)
    dtypes = {v.name: v.dtype for v in signed.signature.variables}
    for located in equations(signed.program):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                dtypes.setdefault(access.name, access.dtype)
    tensors = {}
    for name, dtype in dtypes.items():
        own = instances.get(name, _NO_INSTANCES)
        tensors[name] = Kept(dtype, own.axes, (*own.extents, *shapes[name]))
    return tensors


def lower(signed: SignedProgram, precision: Precision = "working") -> Lowered:
    """Lower a valid program in a precision, its own unless told otherwise.

    Raises Unlowerable where the lowering does not cover a valid program; what it does with an
    invalid one is not specified.
    """
    facts = facts_of(signed)
    everything = range(len(signed.program.nests))
    function = lower_nests(facts, everything, tuple(facts.tensors), precision)
    return Lowered(function, facts.layout(precision))


def lower_nests(
    facts: Facts, positions: Sequence[int], names: Sequence[str], precision: Precision
) -> FlatFunction:
    """Top-level nests as one function on the tensors named, which must be all that they use."""
    table = {}
    for name in names:
        kept = facts.tensors[name]
        dtype = dtype_in(kept.dtype, precision)
        size = integer("int64", prod(kept.shape))
        buffer = tirx.decl_buffer((size,), STORED_AS[dtype], name, layout=None)
        table[name] = Tensor(buffer, dtype, kept.axes, kept.shape)
    statements = []
    for position in positions:
        # Places are counted nest by nest: the code of a nest is the same in every program.
        body = _Body(table, facts.initialisations, precision, count())
        nest = nest_in(facts.signed.program.nests[position], precision)
        statements.append(body.statement(nest, (position,), _Scope({}, {})))
    flat = [s for statement in statements for s in _unpacked(statement)]
    return FlatFunction(tuple(t.buffer for t in table.values()), tuple(flat))


@dataclass(frozen=True, slots=True)
class _Body:
    """Emits statements."""

    tensors: Mapping[str, Tensor]
    initialisations: Mapping[Before, Sequence[Initialisation]]
    precision: Precision
    places: Iterator[int]

    def statement(self, statement: Statement, path: Path, scope: _Scope) -> Stmt:
        """One statement with the initialisations that belong before it or inside it."""
        if isinstance(statement, Equation):
            before = self._before((path, 0), scope)
            return _sequence([*before, self._equation(statement, scope)])
        scopes = [scope]
        variables = []
        for loop in statement.loops:
            variables.append(tirx.Var(loop.index, "int64"))
            scopes.append(scopes[-1].within(loop, variables[-1]))
        inner = _sequence(
            [
                self.statement(child, (*path, position), scopes[-1])
                for position, child in enumerate(statement.body)
            ]
        )
        for depth in reversed(range(len(statement.loops))):
            inner = _for(statement.loops[depth], variables[depth], inner)
            inner = _sequence([*self._before((path, depth), scopes[depth]), inner])
        return inner

    def _before(self, where: Before, scope: _Scope) -> list[Stmt]:
        return [self._initialise(i, scope) for i in self.initialisations.get(where, ())]

    def _initialise(self, needed: Initialisation, scope: _Scope) -> Stmt:
        variables = []
        for _, _, loop in needed.loops:
            variables.append(tirx.Var(loop.index, "int64"))
            scope = scope.within(loop, variables[-1])
        equation = equation_in(needed.equation, self.precision)
        typed = typed_equation(equation)
        dtype = DTYPES[equation.target.dtype]
        source = "float64" if dtype.is_float else "int64"
        literal = (
            real(source, needed.identity)
            if dtype.is_float
            else integer(source, int(needed.identity))
        )
        result = self._store(typed, literal, source, scope)
        for (_, _, loop), variable in reversed(list(zip(needed.loops, variables, strict=True))):
            result = _for(loop, variable, result)
        return result

    def _equation(self, equation: Equation, scope: _Scope) -> Stmt:
        typed = typed_equation(equation)
        emitter = self._emitter(scope)
        value, source = emitter.value(typed.value), EVALUATED_AS[typed.value.dtype.name]
        if isinstance(emitter.machine, Jittered):
            value = emitter.machine.kept(equation.target.dtype, source, value)
        return self._store(typed, value, source, scope)

    def _store(self, typed: TypedEquation, value: Node, source: str, scope: _Scope) -> Stmt:
        """Store ``value`` (of TIR dtype ``source``) to the target where the guard holds."""
        emitter = self._emitter(scope)
        tensor, flat = emitter.address(typed.target)
        stored = narrow(tensor.dtype, source, value, emitter.machine)
        store = tirx.BufferStore(tensor.buffer, stored, [flat])
        if typed.guard is None:
            return store
        return tirx.IfThenElse(emitter.as_type(typed.guard, DTYPES["bool"]), store, None)

    def _emitter(self, scope: _Scope) -> Emitter:
        machine = Jittered(scope.indices, self.places) if self.precision == "jittered" else LLVM
        return Emitter(self.tensors, scope.indices, scope.axes, machine)


def _for(loop: Loop, variable: Variable, body: Stmt) -> Stmt:
    start, extent = integer("int64", loop.start), integer("int64", loop.extent)
    return tirx.For(variable, start, extent, ForKind.SERIAL, body)


def _sequence(statements: Sequence[Stmt]) -> Stmt:
    flat = [s for statement in statements for s in _unpacked(statement)]
    return flat[0] if len(flat) == 1 else tirx.SeqStmt(flat)


def _unpacked(statement: Stmt) -> list[Stmt]:
    return list(statement.seq) if isinstance(statement, tirx.SeqStmt) else [statement]
