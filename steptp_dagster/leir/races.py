"""Validity of parallel loops: conflicts between iterations, threads and blocks.

* ``loop-conflict``: two iterations of one P, V or B loop touch one element and one of them writes.
  Exempt is the block reduction: a pure update over a thread axis that its target does not use.
* ``cross-block``: two blocks of one launch touch one ``g`` element and one of them writes, also by
  way of different loops or of different iterations of a serial loop inside the launch.
* ``thread-communication``: data passes between threads by way of different iterations of a serial
  loop around one and the same thread loop, where no barrier between sibling loops separates them.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from steptp_dagster.leir.accesses import Accesses, LoopRef, Use, common_loops
from steptp_dagster.leir.ast import BLOCK_AXES, THREAD_AXES
from steptp_dagster.leir.dependence import (
    Answer,
    Conflict,
    Dependences,
    conflicting_pairs,
    free,
    same,
    touch,
)
from steptp_dagster.leir.sets import Relation
from steptp_dagster.leir.updates import Update, own_update
from steptp_dagster.leir.violation import Violation
from steptp_dagster.leir.walk import Path

_PARALLEL: Final = frozenset({"P", "V", "B"})


def check_races(
    accesses: Accesses, dependences: Dependences, broken: frozenset[str]
) -> Iterator[Violation]:
    """All conflicts of parallel loops, without tensors that are ``broken``."""
    loops: list[Violation] = []
    blocks: list[Violation] = []
    for i, facts in enumerate(accesses.facts):
        if facts.outline.kinds.isdisjoint(_PARALLEL):
            continue
        left_out = tuple([name for name in facts.outline.order if name in broken] if broken else ())
        check = partial(_nest, accesses, dependences, broken, i)
        for rule, violation in facts.found(("races", left_out), check):
            (blocks if rule else loops).append(violation)
    yield from loops
    yield from blocks


def _nest(
    accesses: Accesses, dependences: Dependences, broken: frozenset[str], i: int
) -> tuple[tuple[int, Violation], ...]:
    """The conflicts within one nest; those between blocks have the number 1."""
    found: list[tuple[int, Violation]] = []
    outline = accesses.facts[i].outline
    loops_of = accesses.part(i).loops_of
    for path in sorted(loops_of):
        for ref in loops_of[path]:
            if ref.loop.kind in ("P", "V", "B"):
                here = list(_loop(dependences, ref, broken))
                found.extend((0, v) for v in here)
                if ref.loop.axis in THREAD_AXES and not here:
                    found.extend((0, v) for v in _threads(accesses, dependences, ref, broken))
    if any(touched.blocks is None or touched.blocks for touched in outline.touched):
        found.extend((1, v) for v in _blocks(accesses, i, broken))
    return tuple(found)


def _loop(dependences: Dependences, ref: LoopRef, broken: frozenset[str]) -> Iterator[Violation]:
    """At most one violation per tensor."""
    reported: set[str] = set()
    for conflict in dependences.carried(ref).conflicts:
        if conflict.tensor in broken or conflict.tensor in reported:
            continue
        if _is_block_reduction(dependences, conflict, ref):
            continue
        reported.add(conflict.tensor)
        yield _conflict(dependences, conflict, ref)


def _is_block_reduction(dependences: Dependences, conflict: Conflict, ref: LoopRef) -> bool:
    if not conflict.reduction or ref.loop.axis not in THREAD_AXES:
        return False
    return ref.name in _own(dependences.accesses, conflict.first).reduction_loops


def _own(accesses: Accesses, path: Path) -> Update:
    part = accesses.part(path[0])
    return own_update(part, part.by_statement[path][0].statement)


def _conflict(dependences: Dependences, conflict: Conflict, ref: LoopRef) -> Violation:
    loop = ref.loop
    surely = conflict.answer is Answer.DEPENDENCE
    part = dependences.accesses.part(conflict.second[0])
    pos = part.by_statement[conflict.second][0].statement.equation.pos
    return Violation(
        "loop-conflict" if surely else "undecided",
        f"iterations of {loop.kind} loop {loop.index} {'' if surely else 'may '}touch one element "
        f"of {conflict.tensor}, and one of them writes it",
        conflict.second,
        pos,
        f"a conflict on {conflict.tensor} between iterations of {loop.index}",
        f"independent iterations of {loop.kind} loop {loop.index}",
    )


def _threads(
    accesses: Accesses, dependences: Dependences, ref: LoopRef, broken: frozenset[str]
) -> Iterator[Violation]:
    reported: set[str] = set()
    uses = accesses.touching(ref.path)
    if not any(r.loop.kind != "B" for use in uses[:1] for r in use.chain[: use.chain.index(ref)]):
        return  # no serial loop around: no other iteration of one
    for one, other in conflicting_pairs(uses):
        depth = one.chain.index(ref)
        launch = one.statement.launch
        serial = [r for r in one.chain[launch:depth] if r.loop.kind != "B"]
        if not serial or one.tensor in broken or one.tensor in reported:
            continue
        update = _own(accesses, one.statement.path)
        if dependences.is_reduction(one, other) and ref.name in update.reduction_loops:
            continue
        common = common_loops(one.chain, other.chain)
        # blocks and other threads stand still: those are questions of their own loops
        relations: list[Relation] = [
            (r.name, r.name, "*" if r in serial else "=") for r in one.chain[:depth]
        ]
        relations += [(ref.name, ref.name, "!="), *free(one.chain[depth + 1 : common])]
        answer = touch(one, other, relations)
        if answer is Answer.NONE:
            continue
        reported.add(one.tensor)
        surely = answer is Answer.DEPENDENCE
        yield Violation(
            "thread-communication" if surely else "undecided",
            f"{one.tensor} {'passes' if surely else 'may pass'} between threads of loop {ref.name} "
            f"from one iteration of loop {serial[-1].name} to another",
            other.statement.path,
            other.access.pos,
            f"{one.tensor} shared by iterations of {serial[-1].name} within one thread loop",
            "data passes between threads only between sibling thread loops",
        )


def _blocks(accesses: Accesses, nest: int, broken: frozenset[str]) -> Iterator[Violation]:
    uses = [u for u in accesses.touching((nest,)) if u.access.scope == "g"]
    if not any(axis in u.statement.axes for u in uses for axis in BLOCK_AXES):
        return
    reported: set[str] = set()
    for one, other in conflicting_pairs(uses):
        if one.tensor in broken or one.tensor in reported:
            continue
        for axis, answer in _between_blocks(one, other):
            if answer is Answer.NONE:
                continue
            reported.add(one.tensor)
            surely = answer is Answer.DEPENDENCE
            yield Violation(
                "cross-block" if surely else "undecided",
                f"blocks along {axis} {'' if surely else 'may '}touch one element of "
                f"{one.tensor} within a launch, and one of them writes it",
                other.statement.path,
                other.access.pos,
                f"{one.tensor} shared by blocks along {axis}",
                "blocks of one launch share no element that one of them writes",
            )
            break


def _between_blocks(one: Use, other: Use) -> Iterator[tuple[str, Answer]]:
    """Answers per block axis, those left out that the axis' own loop answers already."""
    common = common_loops(one.chain, other.chain)
    launch = min(one.statement.launch, other.statement.launch, common)
    mine, yours = one.statement.axes, other.statement.axes
    for axis in BLOCK_AXES:
        if axis not in mine and axis not in yours:
            continue
        relations = same(one.chain[:launch])
        if axis in mine and axis in yours:
            shared = {r.name for r in one.chain[:common]}
            relations += [r for r in free(one.chain[launch:common]) if r[0] != mine[axis]]
            if mine[axis] in shared and not any(
                r.loop.kind != "B" for r in one.chain[launch : _place(one, mine[axis])]
            ):
                continue  # nothing serial around: exactly the loop's own question
            relations.append((mine[axis], yours[axis], "!="))
        else:
            relations += free(one.chain[launch:common])
        yield axis, touch(one, other, relations)


def _place(use: Use, name: str) -> int:
    return [r.name for r in use.chain].index(name)
