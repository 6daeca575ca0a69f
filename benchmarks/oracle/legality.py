"""Whether a program is legal, as far as a run shows; nests that were found clean are kept."""

from collections.abc import Container

from benchmarks.oracle.cells import decoded
from benchmarks.oracle.conflicts import NestRun
from benchmarks.oracle.running import Compiled, Outcome
from benchmarks.oracle.structure import rank_of, structure
from steptp_dagster.leir.ast import Nest

Key = tuple[Nest, tuple[Nest, ...]]


def keys_of(compiled: Compiled) -> tuple[Key, ...]:
    """For each nest what its legality depends on: itself, and who wrote its tensors before."""
    found: list[Key] = []
    for i, nest in enumerate(compiled.nests):
        before = [n for n in compiled.nests[:i] if not n.written.isdisjoint(nest.written)]
        found.append((nest.nest, tuple(n.nest for n in before)))
    return tuple(found)


def doubtful(compiled: Compiled, clean: Container[Key]) -> frozenset[int]:
    """The nests that must be logged to say whether the program is legal."""
    wanted: set[int] = set()
    for i, key in enumerate(keys_of(compiled)):
        if key not in clean:
            nest = compiled.nests[i]
            wanted.add(i)
            wanted |= {
                k for k in range(i) if not compiled.nests[k].written.isdisjoint(nest.written)
            }
    return frozenset(wanted)


def illegal(compiled: Compiled, outcome: Outcome, clean: set[Key]) -> list[str]:
    """What a run shows to be illegal, as ``kind: words``. Nests in ``clean`` are passed over.

    Nests without faults are added to ``clean``. The run has logged all ``doubtful`` nests.
    """
    found = [*structure(compiled)]
    for i, key in enumerate(keys_of(compiled)):
        if key in clean:
            continue
        nest = compiled.nests[i]
        before = {
            (o.tensor, k)
            for j in range(i)
            if not compiled.nests[j].written.isdisjoint(nest.written)
            for n in compiled.nests[j].nodes
            for o in n.occurrences
            if o.write
            for k in outcome.logs[j][o.log]
        }
        faults = list(NestRun(nest, outcome.logs[i], before).faults())
        found += [f"{fault} (nest {i})" for fault in faults]
        if not faults:
            clean.add(key)
    for name, cells in outcome.cells.items():
        if name not in compiled.signed.signature.by_name:
            rank = rank_of(compiled, name)
            for key_ in cells:
                coordinates = decoded(key_)[-rank:] if rank else ()
                if any(c < 0 for c in coordinates):
                    found.append(f"out-of-bounds: {name} is written at {list(coordinates)}")
                    break
    return found
