"""May this loop have another kind? Answered by the checker on the program with that kind.

A ``B`` loop's index carries its axis, so changing to or from ``B`` also renames the index.
"""

import itertools
from dataclasses import replace

from steptp_dagster.leir.ast import Expr, Index, Kind, Loop, Nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.violation import Violation
from steptp_dagster.leir.walk import (
    Path,
    at,
    fresh_indices,
    index_names,
    loops_around,
    map_statement,
    replace_at,
    substitute,
)


def with_kind(
    signed: SignedProgram, path: Path, index: str, kind: Kind, axis: str = "tx"
) -> SignedProgram:
    """The program with loop ``index`` of the nest at ``path`` made a loop of ``kind``.

    A new ``B`` loop gets ``axis``, with letters appended where that index is taken; a loop that
    was ``B`` gets a fresh index. Raises KeyError where the nest has no such loop.
    """
    nest = at(signed.program, path)
    if not isinstance(nest, Nest) or index not in [loop.index for loop in nest.loops]:
        raise KeyError(f"no loop {index!r} at {path}")
    place = [loop.index for loop in nest.loops].index(index)
    old = nest.loops[place]
    taken = index_names(nest) | {x.index for x in loops_around(signed.program, path)}
    name = index
    if kind == "B" and old.axis != axis:
        letters = itertools.chain(("",), fresh_indices(()))
        name = next(axis + c for c in letters if axis + c not in taken)
    elif kind != "B" and old.kind == "B":
        name = next(fresh_indices(taken))

    def renamed(node: Expr) -> Expr:
        return substitute(node, {index: Index(name)})

    loop = Loop(kind, name, old.extent, old.start, pos=old.pos)
    loops = (*nest.loops[:place], loop, *nest.loops[place + 1 :])
    body = nest.body if name == index else tuple(map_statement(s, renamed) for s in nest.body)
    program = replace_at(signed.program, path, replace(nest, loops=loops, body=body))
    return SignedProgram(program, signed.signature)


def kind_legal(
    signed: SignedProgram, path: Path, index: str, kind: Kind, axis: str = "tx"
) -> tuple[Violation, ...]:
    """What would be wrong if loop ``index`` of the nest at ``path`` had ``kind``.

    Empty: legal. Violations that the program has anyway are left out. Raises KeyError where the
    nest has no such loop.
    """
    known = {(v.kind, v.path, v.message) for v in check(signed)}
    changed = with_kind(signed, path, index, kind, axis)
    return tuple(v for v in check(changed) if (v.kind, v.path, v.message) not in known)
