"""LEIR programs as CUDA programs: one kernel per top-level nest and launch, host loops around.

The device functions are written in the form TVM's CUDA code generator takes, so that no pass of
TVM runs: its thread-binding, storage and barrier passes assume what LEIR does not promise
(equal extents of sibling loops, for one) and diagnose nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final

import tvm
from tvm import ir, tirx
from tvm.tirx.build import codegen_build

from steptp_dagster.leir.ast import Equation, Loop, Nest
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.limits import AXIS_LIMITS, SHARED_BYTES, THREADS_PER_BLOCK
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Update, classify
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    equations,
    equations_in,
    expressions,
    nests_in,
)
from steptp_dagster.lowering.arena import lay_out
from steptp_dagster.lowering.cuda.body import Body, Part
from steptp_dagster.lowering.cuda.program import (
    CudaKernel,
    CudaProgram,
    HostLoop,
    HostStep,
    Launch,
)
from steptp_dagster.lowering.cuda.prologue import PROLOGUE
from steptp_dagster.lowering.cuda.threads import CUDA_NAMES, Standing, Team
from steptp_dagster.lowering.expressions import Tensor
from steptp_dagster.lowering.first_touch import Before, Initialisation, initialisations
from steptp_dagster.lowering.private import launch_depth
from steptp_dagster.lowering.storage import STORED_AS
from steptp_dagster.lowering.tir import (
    Buffer,
    PrimFunc,
    Stmt,
    TirType,
    Variable,
    integer,
    prim,
)
from steptp_dagster.lowering.unlowerable import Unlowerable

_DEVICE_LAUNCH: Final = 2
_THREAD_INDEX: Final = 1
#: A loop around an equation that the host would otherwise have to run itself.
_ONCE: Final = Loop("L", "once", 1)
#: Makes sequences of one statement acceptable.
_NOTHING: Final = tirx.Evaluate(integer("int32", 0))
_FIRST: Final = 'extern "C" __global__'
_SCOPES: Final = {"g": "global", "s": "shared", "l": "local"}


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What is known of each tensor of a program: LEIR dtype, scope, shape."""

    dtypes: Mapping[str, str]
    scopes: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, signed: SignedProgram) -> "_Kinds":
        dtypes = {v.name: v.dtype for v in signed.signature.variables}
        scopes = dict.fromkeys(dtypes, "g")
        for located in equations(signed.program):
            for expr in expressions(located.equation):
                for access in accesses_in(expr):
                    dtypes.setdefault(access.name, access.dtype)
                    scopes.setdefault(access.name, access.scope)
        return cls(dtypes, scopes, infer_shapes(signed))


def lower(signed: SignedProgram) -> CudaProgram:
    """Lower a valid program to CUDA text, geometry and launches.

    Raises Unlowerable: ``launch-limits`` for a grid or block that no GPU launches,
    ``shared-memory`` where shared tensors and the scratch of reductions over threads do not fit,
    ``scope-across-kernels`` where a local or shared tensor would live longer than its kernel.
    """
    kinds = _Kinds.of(signed)
    host = _Host(kinds, initialisations(signed), classify(signed))
    schedule: list[HostStep] = []
    for position, nest in enumerate(signed.program.nests):
        schedule += host.nest(nest, (position,), launch_depth(nest))
    global_names = [name for name, scope in kinds.scopes.items() if scope == "g"]
    layout = lay_out([(n, kinds.dtypes[n], kinds.shapes[n]) for n in global_names])
    texts = _texts(host.functions)
    source = PROLOGUE + "".join(texts)
    return CudaProgram(source, texts, tuple(host.kernels), tuple(schedule), layout)


@dataclass(slots=True)
class _Host:
    """Cuts nests into launches; collects kernels with their device functions."""

    kinds: _Kinds
    initialisations: Mapping[Before, Sequence[Initialisation]]
    updates: Mapping[Path, Update]
    kernels: list[CudaKernel] = field(default_factory=list)
    functions: dict[str, PrimFunc] = field(default_factory=dict)

    def nest(
        self, nest: Nest, path: Path, launches: int, depth: int = 0, outer: tuple[Loop, ...] = ()
    ) -> list[HostStep]:
        """The nest from its loop ``depth`` on, of which ``launches`` more loops are the host's."""
        if launches == 0:
            return [self._kernel(nest, path, depth, outer)]
        first: list[HostStep] = [
            self._initialising(i, path[0], outer)
            for i in self.initialisations.get((path, depth), ())
        ]
        if depth < len(nest.loops):
            loop = nest.loops[depth]
            body = self.nest(nest, path, launches - 1, depth + 1, (*outer, loop))
            return [*first, HostLoop(loop.index, loop.start, loop.extent, tuple(body))]
        self._refuse_shared_lifetime(nest)
        steps = first
        for i, child in enumerate(nest.body):
            below = (*path, i)
            if isinstance(child, Nest):
                steps += self.nest(child, below, launches, 0, outer)
            else:
                steps.append(self._kernel(Nest((_ONCE,), (child,)), below, 0, outer))
        return steps

    def _refuse_shared_lifetime(self, nest: Nest) -> None:
        if len(nest.body) < 2:
            return
        for child in nest.body:
            for located in equations_in(child):
                if located.equation.target.scope != "g":
                    name = located.equation.target.name
                    message = f"{name} would have to live from one launch to the next"
                    raise Unlowerable("scope-across-kernels", message)

    def _kernel(self, nest: Nest, path: Path, depth: int, outer: tuple[Loop, ...]) -> HostStep:
        """One kernel for what is left of a nest below the host's loops."""
        inner = (loop for p, n in nests_in(nest) if p for loop in n.loops)
        own = [*nest.loops[depth:], *inner]
        used = [e.equation for e in equations_in(nest)]

        def emit(body: Body, standing: Standing) -> Part:
            return body.nest(nest, path, depth, standing)

        return self._made(path[0], Team.of(own), used, outer, emit)

    def _initialising(self, needed: Initialisation, nest: int, outer: tuple[Loop, ...]) -> HostStep:
        """A kernel of its own for identities that the host has to place between launches."""
        loops = [loop for _, _, loop in needed.loops]

        def emit(body: Body, standing: Standing) -> Part:
            return body.initialise(needed, standing)

        return self._made(nest, Team.of(loops), [needed.equation], outer, emit)

    def _made(
        self,
        nest: int,
        team: Team,
        used: Sequence[Equation],
        outer: tuple[Loop, ...],
        emit: Callable[[Body, Standing], Part],
    ) -> HostStep:
        _refuse_large(team)
        table, own = self._tensors(used)
        indices = {loop.index: tirx.Var(loop.index, "int64") for loop in outer}
        body = Body(team, dict(table), self.initialisations, self.updates)
        part = emit(body, Standing(team, indices, {}))
        shared = [t for t in body.tensors.values() if t.buffer.scope() == "shared"]
        size = sum(DTYPES[t.dtype].bytes * prod(t.shape) for t in shared)
        if size > SHARED_BYTES:
            message = f"{size} bytes of shared memory, more than {SHARED_BYTES}"
            raise Unlowerable("shared-memory", message)
        name = f"kernel_{len(self.kernels)}"
        kernel = CudaKernel(
            name=name,
            nest=nest,
            tensors=tuple(own),
            indices=tuple(indices),
            geometry=team.geometry,
            shared_bytes=size,
            barriers=body.barriers,
        )
        self.kernels.append(kernel)
        private = [t.buffer for t in body.tensors.values() if t.buffer.scope() != "global"]
        buffers = [table[n].buffer for n in own]
        self.functions[name] = _function(name, buffers, private, list(indices.values()), team, part)
        return Launch(kernel)

    def _tensors(self, used: Sequence[Equation]) -> tuple[dict[str, Tensor], list[str]]:
        """Buffers of the tensors of a kernel, and the names of the global ones, in text order."""
        names = dict.fromkeys(
            access.name for eq in used for expr in expressions(eq) for access in accesses_in(expr)
        )
        table = {}
        for name in names:
            dtype, shape = self.kinds.dtypes[name], self.kinds.shapes[name]
            scope = self.kinds.scopes[name]
            buffer = tirx.decl_buffer(
                (integer("int64", prod(shape)),),
                STORED_AS[dtype],
                name,
                layout=None,
                scope=_SCOPES[scope],
            )
            table[name] = Tensor(buffer, dtype, (), shape)
        return table, [n for n in names if self.kinds.scopes[n] == "g"]


def _refuse_large(team: Team) -> None:
    for axis, extent in team.extents.items():
        if extent > AXIS_LIMITS[axis]:
            message = f"{extent} along {axis}, more than {AXIS_LIMITS[axis]}"
            raise Unlowerable("launch-limits", message)
    if team.geometry.threads > THREADS_PER_BLOCK:
        message = f"{team.geometry.threads} threads in a block, more than {THREADS_PER_BLOCK}"
        raise Unlowerable("launch-limits", message)


def _function(
    name: str,
    buffers: Sequence[Buffer],
    private: Sequence[Buffer],
    indices: Sequence[Variable],
    team: Team,
    part: Part,
) -> PrimFunc:
    """The device function: pointers and launch indices in, thread axes around the statements."""
    pointers = [tirx.Var(f"{b.name}_data", _pointer(b)) for b in buffers]
    body: Stmt = tirx.SeqStmt([*(tirx.AllocBuffer(b) for b in private), *part.statements, _NOTHING])
    for axis in reversed(tuple(team.extents)):
        extent = integer("int32", team.extents[axis])
        count = tirx.IterVar(
            ir.Range(integer("int32", 0), extent),
            team.variables[axis],
            _THREAD_INDEX,
            CUDA_NAMES[axis],
        )
        body = tirx.AttrStmt(count, "thread_extent", extent, body)
    declared = [tirx.DeclBuffer(b, data=p) for b, p in zip(buffers, pointers, strict=True)]
    return tirx.PrimFunc(
        [*pointers, *indices],
        tirx.SeqStmt([*declared, body, _NOTHING]),
        attrs=ir.make_node(
            "ir.DictAttrs",
            **{
                "global_symbol": name,
                "s_tir": True,
                "tirx.noalias": True,
                "tirx.is_global_func": True,
                "calling_conv": _DEVICE_LAUNCH,
            },
        ),
    )


def _pointer(buffer: Buffer) -> TirType:
    return ir.PointerType(prim(str(buffer.dtype)), "global")


def _texts(functions: Mapping[str, PrimFunc]) -> tuple[str, ...]:
    """The CUDA text of each device function, without declarations in front of them."""
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    host = tvm.target.Target("llvm")
    module = tirx.transform.BindTarget(target.with_host(host))(tvm.IRModule(dict(functions)))
    _, *pieces = str(codegen_build(module, target).inspect_source()).split(_FIRST)
    defined = [piece for piece in pieces if "{" in piece]
    by_name = {name: piece for piece in defined for name in functions if f" {name}(" in piece}
    return tuple(f"{_FIRST}{by_name[name]}" for name in functions)
