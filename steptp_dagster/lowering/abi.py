"""Compiling many functions at once, with the smallest calling convention TVM's runtime takes.

Making machine code takes a millisecond for each function of LLVM, however small, and a fifth of
that for a nest in it; so several flat functions share one, and a number selects which one runs.

A function receives one pointer to a table: that number, how many times to run, the distance in
bytes between the data of one run and the next, and the addresses of the buffers for the first
run. All shapes are static. Statements are built in the form the code generator takes (flat
buffers, no thread axes, no intrinsics of TIR), so that no pass has to run; compiling through TVM's
default pipeline gives the same bits (``default_pipeline``), for five times the time.

No fused multiply-add (``-fma``): a contraction would round once where LEIR rounds twice. TVM
sets no fast-math flag and keeps the order of every sum.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import tvm
from tvm import ir, tirx
from tvm.tirx import ForKind
from tvm.tirx.build import codegen_build

from steptp_dagster.lowering.tir import (
    Buffer,
    CompiledFunction,
    Node,
    PrimFunc,
    Stmt,
    Target,
    TirType,
    Variable,
    integer,
    prim,
)

OptLevel = Literal[0, 1]

_VOID_POINTER: Final = ir.PointerType(ir.PrimType("void"))
# Field numbers of tirx.tvm_struct_get: the pointer in a packed argument, an int64 array element.
_ANY_POINTER: Final = 15
_INT64_ELEMENT: Final = 17
_PACKED_CONVENTION: Final = 1
#: Passes of LLVM's code generator that make code faster or smaller, never other results. TVM's
#: JIT runs them at every level; without them making code takes less than half the time.
_NEEDLESS_PASSES: Final = (
    *("lsr", "cgp", "ssc", "peephole", "copyprop", "post-ra", "branch-fold", "block-placement"),
    *("machine-cse", "machine-dce", "machine-licm", "machine-sink", "postra-machine-licm"),
    *("postra-machine-sink", "early-ifcvt", "early-taildup", "tail-duplicate", "mergeicmps"),
    *("constant-hoisting", "partial-libcall-inlining", "expand-reductions", "select-optimize"),
)
_QUICK_CODE: Final = (
    "-fast-isel:bool=true",
    "-enable-misched:bool=false",
    "-enable-post-misched:bool=false",
    "-experimental-debug-variable-locations:bool=false",
    *(f"-disable-{name}:bool=true" for name in _NEEDLESS_PASSES),
)
#: Words of the table before the addresses: what to run, how often, and bytes between the runs.
_HEAD: Final = 3
#: Flat functions in one function of LLVM, by level: what optimises looks at all of it at once.
_TOGETHER: Final = {0: 16, 1: 1}


@dataclass(frozen=True, slots=True)
class FlatFunction:
    """A lowered nest or program: its buffers in the order of the table, and its statements."""

    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled flat function: a function of LLVM, and its number there."""

    function: CompiledFunction
    number: int


def target(level: OptLevel) -> Target:
    """The LLVM target used for verification: IEEE arithmetic, AVX2 and half conversions."""
    return plain_target(level, _QUICK_CODE if level == 0 else ())


def plain_target(level: OptLevel | None, options: Sequence[str] = ()) -> Target:
    """The target with options for LLVM's code generator; ``level`` None is TVM's own choice."""
    described = {"kind": "llvm", "mcpu": "x86-64-v3", "mattr": ["-fma"]}
    chosen = {} if level is None else {"opt-level": level}
    given = {"cl-opt": list(options)} if options else {}
    return tvm.target.Target({**described, **chosen, **given})


def compile_functions(functions: Mapping[str, FlatFunction], level: OptLevel) -> dict[str, Entry]:
    """Compile all functions in one module; the results are for ``call``."""
    if not functions:
        return {}
    chosen = target(level)
    names, size = list(functions), _TOGETHER[level]
    groups = [names[first : first + size] for first in range(0, len(names), size)]
    packed = {
        f"group{i}": _packed(f"group{i}", [functions[name] for name in group])
        for i, group in enumerate(groups)
    }
    module = tirx.transform.BindTarget(chosen.with_host(chosen))(tvm.IRModule(packed))
    library = codegen_build(module, chosen)
    found = {}
    for i, group in enumerate(groups):
        function = library[f"group{i}"]
        found.update({name: Entry(function, number) for number, name in enumerate(group)})
    return found


def call(entry: Entry, addresses: "np.ndarray[Any, Any]", runs: int, distance: int) -> None:
    """Run a compiled function ``runs`` times, on buffers at these addresses (int64).

    Each run's buffers are ``distance`` bytes after those of the run before. All are 64-byte
    aligned.
    """
    table = np.empty(_HEAD + len(addresses), np.int64)
    table[:_HEAD], table[_HEAD:] = (entry.number, runs, distance), addresses
    entry.function(ctypes.c_void_p(table.ctypes.data))


def _packed(name: str, group: Sequence[FlatFunction]) -> PrimFunc:
    self_handle = tirx.Var("self_handle", _VOID_POINTER)
    args = tirx.Var("args", _VOID_POINTER)
    count = tirx.Var("num_args", prim("int32"))
    result = tirx.Var("result", _VOID_POINTER)
    table = tirx.Var("table", _VOID_POINTER)
    which = tirx.Var("which", "int64")
    runs, distance = tirx.Var("runs", "int64"), tirx.Var("distance", "int64")
    chosen = [
        tirx.IfThenElse(
            tirx.EQ(which, integer("int64", number)),
            _repeated(function, table, runs, distance),
            None,
        )
        for number, function in enumerate(group)
    ]
    statements = [
        tirx.Bind(table, _field(args, 0, _ANY_POINTER, _VOID_POINTER)),
        tirx.Bind(which, _word(table, 0)),
        tirx.Bind(runs, _word(table, 1)),
        tirx.Bind(distance, _word(table, 2)),
        *chosen,
        tirx.Return(integer("int32", 0)),
    ]
    return tirx.PrimFunc(
        [self_handle, args, count, result],
        tirx.SeqStmt(statements),
        ret_type=prim("int32"),
        attrs=ir.make_node(
            "ir.DictAttrs",
            **{
                "global_symbol": f"__tvm_ffi_{name}",
                "s_tir": True,
                "tirx.noalias": True,
                "calling_conv": _PACKED_CONVENTION,
            },
        ),
    )


def _repeated(function: FlatFunction, table: Variable, runs: Variable, distance: Variable) -> Stmt:
    """A flat function on the buffers of one run after the other."""
    run = tirx.Var("run", "int64")
    once: list[Stmt] = []
    for position, buffer in enumerate(function.buffers):
        pointer = ir.PointerType(prim(str(buffer.dtype)), "global")
        address = tirx.Add(_word(table, _HEAD + position), tirx.Mul(run, distance))
        once.append(tirx.DeclBuffer(buffer, data=tirx.reinterpret(pointer, address)))
    once.extend(function.body)
    return tirx.For(run, integer("int64", 0), runs, ForKind.SERIAL, tirx.SeqStmt(once))


def _word(table: Node, position: int) -> Node:
    return _field(table, position, _INT64_ELEMENT, prim("int64"))


def _field(handle: Node, position: int, kind: int, dtype: TirType) -> Node:
    arguments = [handle, integer("int32", position), integer("int32", kind)]
    return ir.Call("tirx.tvm_struct_get", arguments, ret_ty=dtype)
