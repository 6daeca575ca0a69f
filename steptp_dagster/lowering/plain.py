"""The program as people write it for TVM: what token counts of LEIR are compared with.

Buffers have the tensors' shapes, loops their kinds (threads bound), indices 32 bits, and arithmetic
the dtypes of its operands. It says what the program computes in TVM's language and nothing of how
this project makes it exact, so it is shorter than what verification runs, and it is never run.

There are two forms. *Blocks*: what TVM's own schedules take and print, what it makes of tensor
expressions, and what people compile: each equation is a block that declares its axes, what it reads
and writes, and how a reduction starts. *Loops*: plain loops around stores, the shortest TIR of all.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

import tvm
from tvm import ir, s_tir, tirx
from tvm.tirx import ForKind

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Real,
    Statement,
    Unary,
)
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, equations_in, expressions, indices_in
from steptp_dagster.lowering.cuda.threads import CUDA_NAMES
from steptp_dagster.lowering.first_touch import Before, Initialisation, initialisations
from steptp_dagster.lowering.tir import Buffer, Node, PrimFunc, Stmt, Variable, integer, real

_INDEX: Final = "int32"
# Kinds of block axes and bound loops in TVM's numbering (tirx.IterVar).
_SPATIAL: Final = 0
_THREAD_INDEX: Final = 1
_REDUCED: Final = 2
#: The loops around a statement with their variables, outermost first.
_Around = tuple[tuple[Loop, Variable], ...]
_DTYPES: Final = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "bool": "bool",
}
_SCOPES: Final = {"g": "global", "s": "shared", "l": "local"}
_KINDS: Final = {
    "L": ForKind.SERIAL,
    "P": ForKind.PARALLEL,
    "V": ForKind.VECTORIZED,
    "U": ForKind.UNROLLED,
    "B": ForKind.THREAD_BINDING,
}


def _power(base: Node, exponent: Node) -> Node:
    """``tirx.power``, which warns on standard error of every exponent from 3 on."""
    if "float" not in _type(base):
        return tirx.power(base, exponent)
    return tirx.call_intrin(_type(base), "tirx.pow", base, exponent)


_OPERATORS: Final[dict[str, Callable[[Node, Node], Node]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": tirx.div,
    "//": tirx.floordiv,
    "%": tirx.floormod,
    "**": _power,
    "&": tirx.And,
    "|": tirx.Or,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": tirx.EQ,
    "!=": tirx.NE,
    "max": tirx.max,
    "min": tirx.min,
}


def loops_function(signed: SignedProgram) -> PrimFunc:
    """A valid program as plain loops in one function ``main`` of all its global tensors."""
    buffers = _buffers(signed)
    writer = _Loops(buffers, initialisations(signed))
    parts = [writer.statement(nest, (i,), ()) for i, nest in enumerate(signed.program.nests)]
    return _function([b for b in buffers.values() if b.scope() == "global"], _sequence(parts))


def blocks_function(signed: SignedProgram, *, all_global: bool = False) -> PrimFunc:
    """A valid program as blocks in one function ``main`` of its known variables.

    With ``all_global`` of all its global tensors: kernels cannot allocate global memory, and what
    one kernel alone uses TVM would allocate there.
    """
    buffers = _buffers(signed)
    writer = _Blocks(buffers, initialisations(signed))
    parts = [writer.statement(nest, (i,), ()) for i, nest in enumerate(signed.program.nests)]
    given = {variable.name for variable in signed.signature.variables}
    if all_global:
        given |= {name for name, buffer in buffers.items() if buffer.scope() == "global"}
    known = [buffers.pop(name) for name in tuple(buffers) if name in given]
    root = s_tir.SBlock([], [], [], "root", _sequence(parts), alloc_buffers=list(buffers.values()))
    return _function(known, s_tir.SBlockRealize([], True, root))


def script(function: PrimFunc) -> str:
    """A function as TVM prints it."""
    return str(function.script())


def _function(parameters: list[Buffer], body: Stmt) -> PrimFunc:
    named = {"global_symbol": "main", "s_tir": True, "tirx.noalias": True}
    return tirx.PrimFunc(parameters, body, attrs=ir.make_node("ir.DictAttrs", **named))


def _buffers(signed: SignedProgram) -> dict[str, Buffer]:
    """Buffers of all tensors: the known variables in order, then the others in text order."""
    shapes = infer_shapes(signed)
    declared = {v.name: (v.dtype, "g") for v in signed.signature.variables}
    for nest in signed.program.nests:
        for access in _accesses(nest):
            declared.setdefault(access.name, (access.dtype, access.scope))
    return {
        name: tirx.decl_buffer(shapes[name] or (1,), _DTYPES[dtype], name, scope=_SCOPES[scope])
        for name, (dtype, scope) in declared.items()
    }


def cuda_source(signed: SignedProgram) -> str:
    """The whole CUDA file that TVM makes of the program's blocks; raises what TVM raises.

    TVM refuses some programs (vectors of halves of odd width, for one) and makes wrong code of
    others (sibling loops of different extents on one axis): a text to count, not to run.
    """
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"})
    executable = tvm.compile(blocks_function(signed, all_global=True), target=target)
    return str(executable.mod.imports[0].inspect_source())


def _accesses(nest: Nest) -> list[Access]:
    return [
        access
        for located in equations_in(nest)
        for expr in expressions(located.equation)
        for access in accesses_in(expr)
    ]


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Writes expressions; ``scope`` maps indices to the variables that stand for them."""

    buffers: Mapping[str, Buffer]

    def subscripts(self, access: Access, scope: Mapping[str, Variable]) -> list[Node]:
        """The subscripts of an access; a scalar is a buffer of one element."""
        found = [self.expr(subscript, scope, _INDEX) for subscript in access.subscripts]
        return found or [integer(_INDEX, 0)]

    def expr(self, expr: Expr, scope: Mapping[str, Variable], wanted: str) -> Node:
        """An expression; literals take the dtype ``wanted`` where nothing else fixes one."""
        match expr:
            case Int():
                return _number(expr.value, wanted)
            case Real():
                return _number(expr.value, wanted if "float" in wanted else "float32")
            case Inf():
                return _number(float("inf"), wanted)
            case Index():
                return scope[expr.name]
            case Access():
                return tirx.BufferLoad(self.buffers[expr.name], self.subscripts(expr, scope))
            case Unary():
                return -self.expr(expr.operand, scope, wanted)
            case Binary():
                left, right = self.pair(expr.left, expr.right, scope, wanted)
                if expr.op == "/" and "int" in _type(left):
                    left, right = (tirx.Cast("float32", side) for side in (left, right))
                return _OPERATORS[expr.op](left, right)
            case Compare():
                links = [
                    _OPERATORS[op](*self.pair(left, right, scope, _INDEX))
                    for op, left, right in zip(
                        expr.ops, expr.operands, expr.operands[1:], strict=False
                    )
                ]
                whole = links[0]
                for link in links[1:]:
                    whole = tirx.And(whole, link)
                return whole
            case Call():
                return self.call(expr, scope, wanted)
        assert_never(expr)

    def call(self, call: Call, scope: Mapping[str, Variable], wanted: str) -> Node:
        """A function of TIR by the same name."""
        if call.function == "if_then_else":
            condition, *branches = call.arguments
            chosen = self.pair(branches[0], branches[1], scope, wanted)
            return tirx.if_then_else(self.expr(condition, scope, _INDEX), *chosen)
        if len(call.arguments) == 2:
            return _OPERATORS[call.function](*self.pair(*call.arguments, scope, wanted))
        (argument,) = call.arguments
        value = self.expr(argument, scope, wanted)
        if "int" in _type(value) and call.function != "abs":
            value = tirx.Cast("float32", value)
        return getattr(tirx, call.function)(value)

    def pair(
        self, left: Expr, right: Expr, scope: Mapping[str, Variable], wanted: str
    ) -> tuple[Node, Node]:
        """Two operands in one dtype: that of the one which is no literal, the wider of two."""
        if _is_literal(left) and not _is_literal(right):
            other = self.expr(right, scope, wanted)
            return self.expr(left, scope, _type(other)), other
        one = self.expr(left, scope, wanted)
        other = self.expr(right, scope, _type(one) if _is_literal(right) else wanted)
        first, second = _type(one), _type(other)
        if first == second:
            return one, other
        dtype = max((first, second), key=lambda name: ("float" in name, _width(name)))
        return tuple(
            side if _type(side) == dtype else tirx.Cast(dtype, side) for side in (one, other)
        )

    def value(self, equation: Equation, scope: Mapping[str, Variable]) -> Node:
        """The value of an equation."""
        return self.expr(equation.value, scope, _DTYPES[equation.target.dtype])

    def store(self, equation: Equation, value: Node, scope: Mapping[str, Variable]) -> Stmt:
        """A store to the target of an equation, where its guard holds."""
        buffer = self.buffers[equation.target.name]
        if _type(value) != str(buffer.dtype):
            value = tirx.Cast(str(buffer.dtype), value)
        store = tirx.BufferStore(buffer, value, self.subscripts(equation.target, scope))
        if equation.guard is None:
            return store
        return tirx.IfThenElse(self.expr(equation.guard, scope, _INDEX), store, None)


@dataclass(frozen=True, slots=True)
class _Loops(_Expressions):
    """Writes statements as loops and stores, starts of sums in front of their loops."""

    initialisations: Mapping[Before, list[Initialisation]]

    def statement(self, statement: Statement, path: Path, around: _Around) -> Stmt:
        """A statement inside the loops ``around`` it."""
        if isinstance(statement, Equation):
            return _sequence([*self.starts((path, 0), around), self.equation(statement, around)])
        inside = [around]
        for loop in statement.loops:
            variable = tirx.Var(loop.index, _INDEX)
            inside.append((*inside[-1], (loop, variable)))
        inner = _sequence(
            [
                self.statement(child, (*path, i), inside[-1])
                for i, child in enumerate(statement.body)
            ]
        )
        for depth in reversed(range(len(statement.loops))):
            if depth == 0 and len(path) == 1:
                inner = _sequence([*self.allocations(statement), inner])
            inner = _for(*inside[depth + 1][-1], inner)
            inner = _sequence([*self.starts((path, depth), inside[depth]), inner])
        return inner

    def allocations(self, nest: Nest) -> list[Stmt]:
        """Allocations of the local and shared tensors of a top-level nest."""
        own = {a.name: a for a in _accesses(nest) if a.scope != "g"}
        return [tirx.AllocBuffer(self.buffers[name]) for name in own]

    def starts(self, where: Before, around: _Around) -> list[Stmt]:
        """The stores of identities that belong in front of a loop or an equation."""
        found: list[Stmt] = []
        for start in self.initialisations.get(where, ()):
            own = tuple((loop, tirx.Var(loop.index, _INDEX)) for _, _, loop in start.loops)
            identity = _number(start.identity, _DTYPES[start.equation.target.dtype])
            store = self.store(start.equation, identity, _scope((*around, *own)))
            for loop, variable in reversed(own):
                store = _for(loop, variable, store)
            found.append(store)
        return found

    def equation(self, equation: Equation, around: _Around) -> Stmt:
        """The store of an equation."""
        scope = _scope(around)
        return self.store(equation, self.value(equation, scope), scope)


@dataclass(frozen=True, slots=True)
class _Blocks(_Loops):
    """Writes equations as blocks, starts of sums inside them."""

    def allocations(self, nest: Nest) -> list[Stmt]:
        """None: the root block allocates all."""
        return []

    def starts(self, where: Before, around: _Around) -> list[Stmt]:
        """None: blocks have them."""
        return []

    def equation(self, equation: Equation, around: _Around) -> Stmt:
        """A block with an axis for each loop around the equation."""
        target = equation.target
        used = {i for subscript in target.subscripts for i in indices_in(subscript)}
        starts = [i for found in self.initialisations.values() for i in found]
        start = next((i for i in starts if i.equation == equation), None)
        scope = {loop.index: tirx.Var(f"v_{loop.index}", _INDEX) for loop, _ in around}
        axes = [
            tirx.IterVar(
                ir.Range(integer(_INDEX, loop.start), integer(_INDEX, loop.start + loop.extent)),
                scope[loop.index],
                # One block or thread has nothing to sum over with others.
                _REDUCED
                if start and loop.index not in used and (loop.kind != "B" or loop.extent > 1)
                else _SPATIAL,
            )
            for loop, _ in around
        ]
        init = None
        if start is not None:
            identity = _number(start.identity, _DTYPES[target.dtype])
            init = tirx.BufferStore(
                self.buffers[target.name], identity, self.subscripts(target, scope)
            )
        reads = dict.fromkeys(
            a for e in expressions(equation) for a in accesses_in(e) if a != target
        )
        block = s_tir.SBlock(
            axes,
            [self.region(access, scope) for access in reads],
            [self.region(target, scope)],
            target.name,
            self.store(equation, self.value(equation, scope), scope),
            init,
        )
        return s_tir.SBlockRealize([variable for _, variable in around], True, block)

    def region(self, access: Access, scope: Mapping[str, Variable]) -> Node:
        """The one element that an access touches."""
        one = integer(_INDEX, 1)
        ranges = [ir.Range.from_min_extent(at, one) for at in self.subscripts(access, scope)]
        return tirx.BufferRegion(self.buffers[access.name], ranges)


def _is_literal(expr: Expr) -> bool:
    return isinstance(expr.operand if isinstance(expr, Unary) else expr, Int | Real | Inf)


def _type(node: Node) -> str:
    return str(node.ty.dtype)


def _width(dtype: str) -> int:
    return int("".join(c for c in dtype if c.isdigit()) or 1)


def _number(value: float, dtype: str) -> Node:
    if "float" in dtype:
        return real(dtype, float(value))
    return integer(dtype, int(value))


def _scope(around: _Around) -> dict[str, Variable]:
    return {loop.index: variable for loop, variable in around}


def _for(loop: Loop, variable: Variable, body: Stmt) -> Stmt:
    thread = None
    if loop.axis is not None:
        tag = CUDA_NAMES[loop.axis]
        thread = tirx.IterVar(None, tag, _THREAD_INDEX, tag)
    start, extent = integer(_INDEX, loop.start), integer(_INDEX, loop.extent)
    return tirx.For(variable, start, extent, _KINDS[loop.kind], body, thread)


def _sequence(statements: list[Stmt]) -> Stmt:
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.seq if isinstance(statement, tirx.SeqStmt) else [statement])
    return flat[0] if len(flat) == 1 else tirx.SeqStmt(flat)
