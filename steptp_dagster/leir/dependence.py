"""Dependence services: may this loop run in parallel, may these loops be exchanged, ...

Every question is put about pairs of uses of one tensor of which one writes, under relations
between the loops that both stand under. The fast test (``apart``) proves most absences; isl
(``sets``) settles the rest. An answer is UNKNOWN only where subscripts or conditions depend on
tensor values, are not quasi-affine, or where isl exceeds its operation limit. UNKNOWN never means
legal.

A pure update conflicts with itself over its reduction loops. Such a *reduction* dependence is told
apart, since reordering it only reassociates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal

from steptp_dagster.leir import sets
from steptp_dagster.leir.accesses import Accesses, Chain, LoopRef, Use, common_loops
from steptp_dagster.leir.apart import proved_apart
from steptp_dagster.leir.ast import Equation
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.sets import Relation
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_equation
from steptp_dagster.leir.updates import Update, own_update
from steptp_dagster.leir.walk import Path
from steptp_dagster.leir.witness import witnessed


class Answer(Enum):
    """Whether there is a dependence."""

    NONE = "none"
    DEPENDENCE = "dependence"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two uses of one tensor that may touch one element. ``reduction``: a pure update's own."""

    tensor: str
    first: Path
    second: Path
    answer: Answer
    reduction: bool


@dataclass(frozen=True, slots=True)
class Carried:
    """What a loop carries: conflicts between different iterations, outer loops standing still.

    ``answer`` leaves out reductions; ``reduction`` is the answer for them alone.
    """

    answer: Answer
    reduction: Answer
    conflicts: tuple[Conflict, ...]


_NOTHING: Final = Carried(Answer.NONE, Answer.NONE, ())
Permutation = Literal["exact", "reassociated", "illegal", "unknown"]


def touch(first: Use, second: Use, relations: Sequence[Relation]) -> Answer:
    """Whether instances of two uses under ``relations`` touch one element of one tensor.

    The general question behind all others. A relation is (index of the first use, index of the
    second, one of ``= < > != *``); indices that no relation names are free.
    """
    if first.tensor != second.tensor or len(first.forms) != len(second.forms):
        return Answer.NONE
    if proved_apart(first, second, relations):
        return Answer.NONE
    if witnessed(first, second, relations):
        return Answer.DEPENDENCE
    constrained = [r for r in relations if r[2] != "*"]
    found = sets.overlap(first, second, constrained)
    if found is False:
        return Answer.NONE
    if found is None or first.opaque or second.opaque or first.on_data or second.on_data:
        return Answer.UNKNOWN
    return Answer.DEPENDENCE


def conflicting_pairs(
    first: Sequence[Use], second: Sequence[Use] | None = None
) -> Iterator[tuple[Use, Use]]:
    """Pairs of uses of one tensor of which one writes.

    With one sequence, all its unordered pairs, a write with itself included.
    """
    groups: dict[str, list[Use]] = {}
    for use in first:
        groups.setdefault(use.access.name, []).append(use)
    if second is None:
        for group in groups.values():
            if any(u.write for u in group):
                for i, one in enumerate(group):
                    for other in group[i:]:
                        if one.write or other.write:
                            yield one, other
        return
    for other in second:
        for one in groups.get(other.access.name, ()):
            if one.write or other.write:
                yield one, other


def worst(answers: Sequence[Answer]) -> Answer:
    """DEPENDENCE if there is one, else UNKNOWN if there is one, else NONE."""
    if Answer.DEPENDENCE in answers:
        return Answer.DEPENDENCE
    return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.NONE


def same(refs: Sequence[LoopRef]) -> list[Relation]:
    """The loops stand at one iteration."""
    return [(r.name, r.name, "=") for r in refs]


def free(refs: Sequence[LoopRef]) -> list[Relation]:
    """The loops are common but may stand anywhere."""
    return [(r.name, r.name, "*") for r in refs]


class Dependences:
    """Dependence questions about one program; what a loop carries is kept with its nest."""

    def __init__(self, accesses: Accesses, updates: Mapping[Path, Update]) -> None:
        self.accesses = accesses
        self.updates = updates

    def loop(self, path: Path, index: str) -> LoopRef:
        """The loop ``index`` of the nest at ``path``. Raises KeyError where there is none."""
        for ref in self.accesses.part(path[0]).loops_of[path]:
            if ref.name == index:
                return ref
        raise KeyError(f"no loop {index!r} in the nest at {path}")

    def uses_in(self, ref: LoopRef) -> list[Use]:
        """Uses inside a loop."""
        return self.accesses.touching(ref.path)

    def is_reduction(self, first: Use, second: Use) -> bool:
        """Whether both uses are the target of one pure update that takes operands in any order."""
        if first.statement is not second.statement:
            return False
        equation = first.statement.equation
        update = own_update(self.accesses.part(first.statement.path[0]), first.statement)
        ours = update.kind == "update" and first.tensor == equation.target.name
        return ours and any_order(equation, update)

    def carried(self, ref: LoopRef) -> Carried:
        """What a loop carries."""
        known = self.accesses.part(ref.path[0]).carried
        if ref not in known:  # what a loop carries depends on its nest alone
            known[ref] = self._carries(ref)
        return known[ref]

    def _carries(self, ref: LoopRef) -> Carried:
        conflicts = []
        chains: tuple[Chain, Chain] | None = None
        relations: list[Relation] = []
        for one, other in conflicting_pairs(self.uses_in(ref)):
            if chains is None or one.chain is not chains[0] or other.chain is not chains[1]:
                chains = one.chain, other.chain  # most pairs stand in the same loops
                depth = one.chain.index(ref)
                common = common_loops(one.chain, other.chain)
                relations = [
                    *same(one.chain[:depth]),
                    (ref.name, ref.name, "!="),
                    *free(one.chain[depth + 1 : common]),
                ]
            answer = touch(one, other, relations)
            if answer is not Answer.NONE:
                conflicts.append(self._conflict(one, other, answer))
        if not conflicts:
            return _NOTHING
        plain = [c.answer for c in conflicts if not c.reduction]
        reductions = [c.answer for c in conflicts if c.reduction]
        return Carried(worst(plain), worst(reductions), tuple(conflicts))

    def _conflict(self, one: Use, other: Use, answer: Answer) -> Conflict:
        return Conflict(
            one.tensor,
            one.statement.path,
            other.statement.path,
            answer,
            self.is_reduction(one, other),
        )

    def permutation(self, path: Path, order: Sequence[str]) -> Permutation:
        """The verdict on putting the loops of the nest at ``path`` into another order."""
        loops = self.accesses.loops_of[path]
        by_name = {r.name: r for r in loops}
        if sorted(by_name) != sorted(order) or len(order) != len(loops):
            raise ValueError(f"{list(order)} is no order of {[r.name for r in loops]}")
        new = [by_name[name] for name in order]
        answers: list[Answer] = []
        reassociates = False
        for one, other in conflicting_pairs(self.accesses.touching(path)):
            both = [(one, other)] if one is other else [(one, other), (other, one)]
            for source, sink in both:
                answer = self._reversed(source, sink, loops, new)
                if answer is Answer.NONE:
                    continue
                if self.is_reduction(one, other):
                    reassociates = reassociates or _rounds(self.updates, one)
                else:
                    answers.append(answer)
        found = worst(answers)
        if found is not Answer.NONE:
            return "illegal" if found is Answer.DEPENDENCE else "unknown"
        return "reassociated" if reassociates else "exact"

    def _reversed(
        self, source: Use, sink: Use, old: Sequence[LoopRef], new: Sequence[LoopRef]
    ) -> Answer:
        """Whether some pair runs source first in the old order and sink first in the new one."""
        outer = source.chain[: source.chain.index(old[0])]
        common = common_loops(source.chain, sink.chain)
        inner = source.chain[len(outer) + len(old) : common]
        answers = []
        for k, first in enumerate(old):
            for later in old[k + 1 :]:
                place = new.index(later)
                if place > new.index(first):
                    continue
                how = {r.name: "*" for r in old}
                for r in (*old[:k], *new[:place]):
                    how[r.name] = "="
                how[first.name], how[later.name] = "<", ">"
                relations = [*same(outer), *((n, n, h) for n, h in how.items()), *free(inner)]
                answers.append(touch(source, sink, relations))
        return worst(answers)

    def fusion(self, first: Path, second: Path, common: int) -> Answer:
        """Whether sharing the ``common`` leading loops of two sibling nests reverses anything.

        The second nest must follow the first; its loops are matched by position. Raises
        ValueError where the paths are no siblings in this order, or where extents or starts of
        the loops to be shared differ.
        """
        if first[:-1] != second[:-1] or first[-1] >= second[-1]:
            raise ValueError(f"{first} and {second} are no siblings in text order")
        mine, yours = self.accesses.loops_of[first], self.accesses.loops_of[second]
        pairs = list(zip(mine[:common], yours[:common], strict=True))
        if len(pairs) < common or any(
            (a.loop.extent, a.loop.start) != (b.loop.extent, b.loop.start) for a, b in pairs
        ):
            raise ValueError(f"the {common} leading loops of {first} and {second} differ")
        answers = []
        for one, other in conflicting_pairs(
            self.accesses.touching(first), self.accesses.touching(second)
        ):
            outer = same(one.chain[: one.chain.index(mine[0])])
            for k, (a, b) in enumerate(pairs):
                relations = [
                    *outer,
                    *((c.name, d.name, "=") for c, d in pairs[:k]),
                    (a.name, b.name, ">"),
                    *((c.name, d.name, "*") for c, d in pairs[k + 1 :]),
                ]
                answers.append(touch(one, other, relations))
                if answers[-1] is Answer.DEPENDENCE:
                    return Answer.DEPENDENCE
        return worst(answers)

    def swap(self, first: Path, second: Path) -> Answer:
        """Whether two sibling statements conflict, so that their order matters."""
        if first[:-1] != second[:-1]:
            raise ValueError(f"{first} and {second} are no siblings")
        answers = []
        outer = len(first) - 1
        for one, other in conflicting_pairs(
            self.accesses.touching(first), self.accesses.touching(second)
        ):
            around = [r for r in one.chain if len(r.path) <= outer]
            answers.append(touch(one, other, same(around)))
        return worst(answers)


def any_order(equation: Equation, update: Update) -> bool:
    """Whether the order of a pure update's operands matters for nothing but rounding.

    It does matter where each step converts what it computed: a float sum that is cut to an
    integer, a maximum that wraps to a narrower type, a truth value made of a sum of numbers.
    """
    target = DTYPES[equation.target.dtype]
    if target.is_float:
        return True
    if target.kind == "bool":
        if update.operand is None:
            return False
        operand = typed_equation(replace(equation, value=update.operand)).value
        return operand.dtype.kind == "bool"
    evaluated = typed_equation(equation).value.dtype
    if evaluated.is_float:
        return False
    return update.op in ("+", "*") or evaluated == target


def _rounds(updates: Mapping[Path, Update], use: Use) -> bool:
    """Whether another order of a pure update's operands may change the result's bits."""
    update = updates[use.statement.path]
    return update.op in ("+", "*") and DTYPES[use.access.dtype].is_float


def of(signed: SignedProgram) -> Dependences:
    """The dependence services of a program (kept by ``Analysis``)."""
    from steptp_dagster.leir.analysis import Analysis

    return Analysis.of(signed).dependences


def carried(signed: SignedProgram, path: Path, index: str) -> Carried:
    """What the loop ``index`` of the nest at ``path`` carries. Raises KeyError without the loop."""
    services = of(signed)
    return services.carried(services.loop(path, index))


def can_interchange(signed: SignedProgram, path: Path, first: str, second: str) -> Permutation:
    """The verdict on exchanging two loops of the nest at ``path``."""
    order = [r.name for r in of(signed).accesses.loops_of[path]]
    i, j = order.index(first), order.index(second)
    order[i], order[j] = second, first
    return of(signed).permutation(path, order)


def can_permute(signed: SignedProgram, path: Path, order: Sequence[str]) -> Permutation:
    """The verdict on reordering all loops of the nest at ``path``.

    ``exact``: same results, bit for bit. ``reassociated``: only sums or products of floats are
    accumulated in another order (``max`` and ``min`` and integers stay exact). Loop kinds and
    hardware axes are not looked at. Raises ValueError if ``order`` is no order of the loops.
    """
    return of(signed).permutation(path, order)


def can_fuse(signed: SignedProgram, first: Path, second: Path, common: int) -> Answer:
    """Whether fusing two adjacent sibling nests over ``common`` leading loops breaks something.

    NONE: legal. See ``Dependences.fusion``.
    """
    return of(signed).fusion(first, second, common)


def can_move(signed: SignedProgram, path: Path, past: Path) -> Answer:
    """Whether the statement at ``path`` may move past its sibling ``past`` and all between them.

    NONE: no conflict, so their order does not matter. Raises ValueError for non-siblings.
    """
    low, high = sorted((path[-1], past[-1]))
    crossed = [(*path[:-1], i) for i in range(low, high + 1) if i != path[-1]]
    services = of(signed)
    if path[:-1] != past[:-1]:
        raise ValueError(f"{path} and {past} are no siblings")
    return worst([services.swap(path, other) for other in crossed])
