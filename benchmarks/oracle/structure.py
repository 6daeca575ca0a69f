"""What a program may not be: kinds of loops, axes, scopes and vector lanes, and target limits."""

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Final

from benchmarks.oracle.axes import BLOCKS, THREADS
from benchmarks.oracle.cells import decoded
from benchmarks.oracle.running import Compiled, Outcome
from benchmarks.oracle.trees import accesses, nodes_of, parts_of
from steptp_dagster.leir.ast import Index

_BYTES: Final = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i16": 2, "i32": 4}
_LIMITS: Final = {"bx": 2**31 - 1, "by": 65535, "bz": 65535, "tx": 1024, "ty": 1024, "tz": 64}


def structure(compiled: Compiled) -> Iterator[str]:
    """Rules about kinds of loops, axes and scopes, and the limits of the target."""
    home: dict[str, tuple[int, frozenset[str]]] = {}
    threads: dict[int, frozenset[str]] = {}
    for i, node in ((i, n) for i, nest in enumerate(compiled.nests) for n in nest.nodes):
        kinds = [x.kind for x in node.loops]
        axes = [x.axis for x in node.loops if x.axis]
        if len(axes) != len(set(axes)):
            yield f"axis-repeated: {node.path}"
        if kinds.count("P") > 1:
            yield f"parallel-nested: {node.path}"
        for loop, where in zip(node.loops, node.where, strict=True):
            if loop.kind == "V":
                if where != node.where[-1] or loop.extent not in (1, 2, 4, 8, 16):
                    yield f"vector-loop: {loop.index} at {where[0]}"
                wide = [
                    _BYTES.get(a.dtype, 8 if a.dtype == "i64" else 1)
                    for part in (node.equation.target, node.equation.value)
                    for a in accesses(part)
                    if any(
                        isinstance(n, Index) and n.name == loop.index
                        for s in a.subscripts
                        for n in nodes_of(s)
                    )
                ]
                if wide and max(wide) * loop.extent > 16:
                    yield f"over-limits: vector of {max(wide) * loop.extent} bytes at {where[0]}"
        mine = frozenset(a for a in axes if a in THREADS)
        if threads.setdefault(i, mine) != mine:
            yield f"thread-structure: {node.path}"
        blocks = frozenset(a for a in axes if a in BLOCKS)
        for access in (a for p in parts_of(node.equation) for a in accesses(p)):
            if access.scope != "g":
                here = (i, blocks)
                if home.setdefault(access.name, here) != here:
                    yield f"scope-lifetime: {access.name}"
    for i, nest in enumerate(compiled.nests):
        largest: dict[str, int] = {}
        for loop in (x for node in nest.nodes for x in node.loops):
            if loop.axis:
                largest[loop.axis] = max(largest.get(loop.axis, 0), loop.start + loop.extent)
        if any(extent > _LIMITS[a] for a, extent in largest.items()):
            yield f"over-limits: axis in nest {i}"
        if prod(n for a, n in largest.items() if a in THREADS) > 1024:
            yield f"over-limits: threads in nest {i}"


def lanes(compiled: Compiled, outcome: Outcome) -> Iterator[str]:
    """Vector loops whose lanes are no neighbours: ``kind: words``."""
    shapes: dict[str, list[int]] = {}
    for name, cells in outcome.cells.items():
        if not cells or name not in {o.tensor for n in compiled.nodes for o in n.occurrences}:
            continue
        known = compiled.signed.signature.by_name.get(name)
        rank = len(known.shape) if known else rank_of(compiled, name)
        coordinates = [decoded(k)[-rank:] if rank else () for k in cells]
        shapes[name] = [max(c[d] for c in coordinates) + 1 for d in range(rank)]
    logged = ((node, logs) for i, logs in outcome.logs.items() for node in compiled.nests[i].nodes)
    for node, logs in logged:
        if not node.loops or node.loops[-1].kind != "V":
            continue
        width = node.loops[-1].extent
        for o in node.occurrences:
            shape = shapes.get(o.tensor, [])
            rank = len(shape)
            log = logs[o.log]
            for start in range(0, len(log), width):
                keys = log[start : start + width]
                if any(k < 0 for k in keys):
                    if any(k >= 0 for k in keys):
                        yield f"vector-lanes: {o.tensor} in some lanes only at {node.path}"
                        break
                    continue
                flat = []
                for key in keys:
                    place = 0
                    for c, extent in zip(decoded(key)[-rank:] if rank else (), shape, strict=True):
                        place = place * extent + c
                    flat.append(place)
                steps = {b - a for a, b in pairwise(flat)}
                if steps <= {1} or (steps == {0} and not o.write):
                    continue
                yield f"vector-lanes: {o.tensor} is not contiguous at {node.path}: {flat}"
                break


def rank_of(compiled: Compiled, name: str) -> int:
    """The number of subscripts of a tensor that the program writes."""
    return next(
        len(n.equation.target.subscripts) for n in compiled.nodes if n.equation.target.name == name
    )
