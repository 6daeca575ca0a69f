"""The same statements through TVM's own pipeline: several times slower, the same bits.

It uses TVM's standard calling convention and all its passes, so that a mistake in ``abi`` (or a
pass that changes results) shows as a difference. And where a release of TVM no longer takes what
``abi`` hands to its code generator, programs still run (``verify.engine``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import ir, tirx

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering.abi import OptLevel, plain_target
from steptp_dagster.lowering.arena import Arena, Layout
from steptp_dagster.lowering.kernel import Array, sources
from steptp_dagster.lowering.lower import Lowered, lower
from steptp_dagster.lowering.precision import Precision, in_precision
from steptp_dagster.lowering.tir import CompiledFunction, PrimFunc


@dataclass(frozen=True, slots=True)
class DefaultKernel:
    """A program built by TVM's defaults. ``signed`` is as lowered."""

    signed: SignedProgram
    precision: Precision
    layout: Layout
    function: CompiledFunction

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """As ``lowering.Kernel.run``."""
        arena = Arena(self.layout)
        found = sources(self.signed.signature, inputs)
        for name, value in found.items():
            arena.write(name, value)
        self.function(*arena.arrays())
        arena.check(found)
        return {v.name: arena.read(v.name) for v in self.signed.signature.outputs}

    def run_many(self, inputs: Mapping[str, Array], count: int) -> dict[str, Array]:
        """As ``lowering.Kernel.run_many``, one run after the other."""
        each = [self.run({name: v[i] for name, v in inputs.items()}) for i in range(count)]
        names = [v.name for v in self.signed.signature.outputs]
        return {name: np.stack([outputs[name] for outputs in each]) for name in names}


def build_by_default(
    signed: SignedProgram,
    precision: Precision = "working",
    level: OptLevel | None = 1,
    *,
    as_text: bool = False,
) -> DefaultKernel:
    """Build a valid program; ``level`` None is TVM's own choice.

    ``as_text`` prints the function as TVMScript and parses it again. Raises what ``lower`` raises.
    """
    as_run = in_precision(signed, precision)
    lowered = lower(as_run, precision)
    function = primitive(lowered)
    if as_text:
        function = tvm.script.from_source(function.script())
    executable = tvm.compile(function, target=plain_target(level))
    return DefaultKernel(as_run, precision, lowered.layout, executable["main"])


def primitive(lowered: Lowered) -> PrimFunc:
    """A lowered program as a function of its buffers, named ``main``."""
    statements = list(lowered.function.body)
    attributes = {"global_symbol": "main", "s_tir": True, "tirx.noalias": True}
    return tirx.PrimFunc(
        list(lowered.function.buffers),
        statements[0] if len(statements) == 1 else tirx.SeqStmt(statements),
        attrs=ir.make_node("ir.DictAttrs", **attributes),
    )


def run_by_default(
    signed: SignedProgram,
    inputs: Mapping[str, Array],
    precision: Precision = "working",
    level: OptLevel = 1,
) -> dict[str, Array]:
    """Outputs by name, as ``lowering.run`` gives them."""
    return build_by_default(signed, precision, level).run(inputs)
