"""The same statements through TVM's own pipeline: several times slower, kept as a cross-check.

It uses TVM's standard calling convention and all its passes, so that a mistake in ``abi`` (or a
pass that changes results) shows as a difference.
"""

from collections.abc import Mapping

import tvm
from tvm import ir, tirx

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering.abi import OptLevel, target
from steptp_dagster.lowering.arena import Arena
from steptp_dagster.lowering.kernel import Array, sources
from steptp_dagster.lowering.lower import lower
from steptp_dagster.lowering.precision import Precision, in_precision


def run_by_default(
    signed: SignedProgram,
    inputs: Mapping[str, Array],
    precision: Precision = "working",
    level: OptLevel = 1,
) -> dict[str, Array]:
    """Outputs by name, as ``lowering.run`` gives them."""
    as_run = in_precision(signed, precision)
    lowered = lower(as_run)
    statements = list(lowered.function.body)
    function = tirx.PrimFunc(
        list(lowered.function.buffers),
        statements[0] if len(statements) == 1 else tirx.SeqStmt(statements),
        attrs=ir.make_node(
            "ir.DictAttrs", **{"global_symbol": "main", "s_tir": True, "tirx.noalias": True}
        ),
    )
    executable = tvm.compile(function, target=target(level))
    arena = Arena(lowered.layout)
    found = sources(as_run.signature, inputs)
    for name, value in found.items():
        arena.write(name, value)
    executable["main"](*arena.arrays())
    arena.check(found)
    return {v.name: arena.read(v.name) for v in as_run.signature.outputs}
