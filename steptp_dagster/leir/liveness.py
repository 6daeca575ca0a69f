"""Which equations have an effect: backwards from the outputs, through everything that is read.

An equation is alive if its target is an output, or if a living equation may read an element that
it wrote. Values, guards, conditions and subscripts all read. Whether a read may find an element
is asked of the dependence analysis; what it cannot exclude counts as a read.
"""

from steptp_dagster.leir.accesses import Accesses, Use, common_loops
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.dependence import Answer, same, touch
from steptp_dagster.leir.sets import Relation
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path


def dead_equations(signed: SignedProgram) -> tuple[Path, ...]:
    """Paths of all equations of a valid program without effect on any output, in text order.

    Removing all of them at once changes no output; afterwards nothing more is dead.
    """
    accesses = Analysis.of(signed).accesses
    known = signed.signature.by_name
    alive = {s.path for s in accesses.statements if s.equation.target.name in known}
    waiting = sorted(alive)
    while waiting:
        for path in _sources(accesses, waiting.pop()):
            if path not in alive:
                alive.add(path)
                waiting.append(path)
    return tuple(s.path for s in accesses.statements if s.path not in alive)


def _sources(accesses: Accesses, reader: Path) -> list[Path]:
    """The equations that may have written what the equation at ``reader`` reads."""
    found: list[Path] = []
    for use in accesses.by_statement[reader]:
        if use.write:
            continue
        found += [
            write.statement.path
            for write in accesses.writes.get(use.tensor, ())
            if write.statement.path not in found and _may_find(write, use)
        ]
    return found


def _may_find(write: Use, read: Use) -> bool:
    """Whether an instance of the write may come before one of the read on the same element."""
    common = read.chain[: common_loops(write.chain, read.chain)]
    orders: list[list[Relation]] = [
        [*same(common[:k]), (ref.name, ref.name, "<")] for k, ref in enumerate(common)
    ]
    if write.statement.order < read.statement.order:
        orders.append(same(common))
    # iterations of parallel loops have no order, so that both directions count
    orders += [
        [*same(common[:k]), (ref.name, ref.name, ">")]
        for k, ref in enumerate(common)
        if ref.loop.kind in ("B", "P", "V")
    ]
    return any(touch(write, read, order) is not Answer.NONE for order in orders)
