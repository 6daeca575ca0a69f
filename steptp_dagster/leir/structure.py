"""Structural validity: names, ranks, annotations, indices, loop kinds, threads, scopes.

These rules can be read off the tree without asking which elements are touched. What breaks them
may leave deeper questions without meaning, so the result also says which tensors and whether the
whole program must be left out there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from steptp_dagster.leir.accesses import Accesses, Statement, Use
from steptp_dagster.leir.ast import BLOCK_AXES, THREAD_AXES, Access, Index, Loop, Nest
from steptp_dagster.leir.outline import Annotation
from steptp_dagster.leir.typing import type_violations, well_typed
from steptp_dagster.leir.uses import NestUses
from steptp_dagster.leir.violation import Violation
from steptp_dagster.leir.walk import Path, expressions, iter_expr

#: Legal numbers of lanes of a ``V`` loop; ``limits`` bounds their size in bytes.
VECTOR_WIDTHS: Final = (1, 2, 4, 8, 16)
#: Kinds of loops that may stand anywhere, as long as names and axes are distinct.
_FREE: Final = frozenset({"L", "U", "B"})


@dataclass(frozen=True, slots=True)
class Structure:
    """Violations, tensors that deeper checks leave out, and whether these make sense at all."""

    violations: tuple[Violation, ...]
    broken: frozenset[str]
    sound: bool


#: What makes deeper questions meaningless.
_UNSOUND: Final = ("index-rebound", "axis-repeated", "unbound-index")
#: A violation, the number of its rule, and the tensors that it makes deeper checks leave out.
_Found = tuple[int, Violation, tuple[str, ...]]
#: The rules that more than one nest takes part in; rule 4 is that of types.
_TENSORS: Final = 1
_SCOPES: Final = 3
_TYPES: Final = 4


def check_structure(accesses: Accesses) -> Structure:
    """Check everything that needs no question about elements."""
    found: list[_Found] = []
    for i, facts in enumerate(accesses.facts):
        found.extend(facts.found("structure", partial(_nest, accesses, i)))
    if not _agree(accesses):
        found.extend((_TENSORS, *v) for v in _tensors(accesses))
        found.extend((_SCOPES, *v) for v in _scopes(accesses))
    found.sort(key=lambda f: f[0])  # violations at one place stand in the order of the rules
    sound = not any(rule == _TYPES or v.kind in _UNSOUND for rule, v, _ in found)
    broken = frozenset(name for _, _, names in found for name in names)
    return Structure(tuple(v for _, v, _ in found), broken, sound)


def _nest(accesses: Accesses, i: int) -> tuple[_Found, ...]:
    """What one nest breaks by itself."""
    return tuple(_alone(accesses, i))


def _alone(accesses: Accesses, i: int) -> Iterator[_Found]:
    part = accesses.part(i)
    outline = accesses.known[i].outline
    if not (outline.distinct and outline.kinds <= _FREE):
        for violation in _loops(part.nest, (i,), []):
            yield 0, violation, ()
    if not outline.closed:
        for violation in _indices(part.statements):
            yield 0, violation, ()
    if "B" in outline.kinds:
        for violation, names in _threads(part):
            yield 2, violation, names
    for statement in () if outline.plain else part.statements:
        if not well_typed(statement.equation):
            for violation in type_violations(statement.equation, statement.path):
                yield _TYPES, violation, ()


def _agree(accesses: Accesses) -> bool:
    """Whether all nests surely agree on names, annotations and places of tensors."""
    known = accesses.signed.signature.by_name
    annotations: dict[str, Annotation] = {}
    for facts in accesses.facts:
        for touched in facts.outline.touched:
            name, annotation = touched.name, touched.annotation
            if annotation is None or (touched.blocks is None and annotation[1] != "g"):
                return False
            if name in annotations:
                if annotations[name] != annotation or annotation[1] != "g":
                    return False
                continue
            annotations[name] = annotation
            variable = known.get(name)
            if variable is not None:
                if annotation != (variable.dtype, "g", len(variable.shape)):
                    return False
                if variable.role != "output" and name in accesses.writers:
                    return False
            elif name not in accesses.writers:
                return False
    return True


def _loops(nest: Nest, path: Path, around: list[Loop]) -> Iterator[Violation]:
    """Names and kinds of the loops of a nest and the nests inside it."""
    outer = list(around)
    for k, loop in enumerate(nest.loops):
        if any(o.index == loop.index for o in outer):
            yield Violation(
                "index-rebound",
                f"loop {loop.index} stands inside another loop {loop.index}",
                path,
                loop.pos,
                loop.index,
                "an index that no enclosing loop binds",
            )
        if loop.axis is not None and any(o.axis == loop.axis for o in outer):
            yield Violation(
                "axis-repeated",
                f"the axis {loop.axis} is bound twice on one path",
                path,
                loop.pos,
                loop.index,
                "each hardware axis at most once on a path",
            )
        if loop.kind == "P" and any(o.kind == "P" for o in outer):
            yield Violation(
                "parallel-nested",
                f"P loop {loop.index} stands inside another P loop",
                path,
                loop.pos,
                f"P loop {loop.index}",
                "at most one P loop on a path",
            )
        if loop.kind in ("P", "B") and any(o.kind == "V" for o in outer):
            yield Violation(
                "parallel-in-vector",
                f"{loop.kind} loop {loop.index} stands inside a V loop",
                path,
                loop.pos,
                f"{loop.kind} loop {loop.index}",
                "no P or B loop inside a V loop",
            )
        if loop.kind == "V":
            inner = k + 1 < len(nest.loops) or any(isinstance(s, Nest) for s in nest.body)
            yield from _vector(path, loop.index, loop.extent, loop.pos, inner=inner)
        outer.append(loop)
    for j, child in enumerate(nest.body):
        if isinstance(child, Nest):
            yield from _loops(child, (*path, j), outer)


def _vector(path: Path, name: str, extent: int, pos: int, *, inner: bool) -> Iterator[Violation]:
    if inner:
        yield Violation(
            "vector-not-innermost",
            f"V loop {name} contains other loops",
            path,
            pos,
            f"loops inside V loop {name}",
            "V loops are innermost",
        )
    if extent not in VECTOR_WIDTHS:
        yield Violation(
            "vector-width",
            f"V loop {name} has {extent} lanes",
            path,
            pos,
            f"{extent} lanes",
            "one of " + ", ".join(map(str, VECTOR_WIDTHS)) + " lanes",
        )


def _indices(statements: list[Statement]) -> Iterator[Violation]:
    for statement in statements:
        bound = statement.bounds.box
        reported: set[str] = set()
        for root in expressions(statement.equation):
            for node in iter_expr(root):
                if not isinstance(node, Index) or node.name in bound or node.name in reported:
                    continue
                reported.add(node.name)
                around = ", ".join(bound) or "none"
                yield Violation(
                    "unbound-index",
                    f"no enclosing loop binds {node.name}",
                    statement.path,
                    node.pos,
                    node.name,
                    f"an index of an enclosing loop ({around})",
                )


def _tensors(accesses: Accesses) -> Iterator[tuple[Violation, tuple[str, ...]]]:
    known = accesses.signed.signature.by_name
    for name, uses in accesses.by_tensor.items():
        variable = known.get(name)
        writes = [u for u in uses if u.write]
        if variable is None:
            if not writes:
                first = uses[0]
                yield (
                    Violation(
                        "unknown-name",
                        f"{name} is neither in the signature nor written by any equation",
                        first.statement.path,
                        first.access.pos,
                        name,
                        "a variable of the signature or a written tensor",
                    ),
                    (name,),
                )
                continue
            defining = writes[0].access
            dtype, scope, rank = defining.dtype, defining.scope, len(defining.subscripts)
            kind = "annotation-conflict"
        else:
            dtype, scope, rank = variable.dtype, "g", len(variable.shape)
            kind = "known-variable-changed"
            if variable.role != "output" and writes:
                first = writes[0]
                yield (
                    Violation(
                        "input-written",
                        f"{name} is {_article(variable.role)} and is written",
                        first.statement.path,
                        first.access.pos,
                        f"an equation for {name}",
                        "inputs, parameters and constants are never written",
                    ),
                    (),
                )
        yield from _annotations(uses, kind, dtype, scope, rank)


def _article(role: str) -> str:
    return {"input": "an input", "param": "a parameter", "const": "a constant"}.get(role, role)


def _annotations(
    uses: list[Use], kind: str, dtype: str, scope: str, rank: int
) -> Iterator[tuple[Violation, tuple[str, ...]]]:
    """First conflicting annotation and first conflicting rank of one tensor."""
    conflict = mismatch = False
    for use in uses:
        access = use.access
        if not conflict and (access.dtype, access.scope) != (dtype, scope):
            conflict = True
            yield (
                Violation(
                    kind,
                    f"{access.name} is {dtype},{scope} and here {access.dtype},{access.scope}",
                    use.statement.path,
                    access.pos,
                    f"{access.dtype},{access.scope}",
                    f"{dtype},{scope}",
                ),
                (access.name,) if access.scope != scope else (),
            )
        if not mismatch and len(access.subscripts) != rank:
            mismatch = True
            yield (
                Violation(
                    "rank-mismatch",
                    f"{access.name} has rank {rank} and here {len(access.subscripts)} subscripts",
                    use.statement.path,
                    access.pos,
                    f"{len(access.subscripts)} subscripts",
                    f"{rank} subscripts",
                ),
                (access.name,),
            )


def _axes(statement: Statement, of: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in of if axis in statement.axes)


def _threads(part: NestUses) -> Iterator[tuple[Violation, tuple[str, ...]]]:
    """Under threads every equation of a nest stands under the same set of thread axes."""
    sets = [_axes(s, THREAD_AXES) for s in part.statements]
    widest = max(sets, key=len)
    for statement, axes in zip(part.statements, sets, strict=True):
        if axes == widest:
            continue
        private = {u.tensor for u in part.uses if u.access.scope != "g"}
        yield (
            Violation(
                "thread-structure",
                f"the equation stands under thread axes {_listed(axes)}, another one of this "
                f"nest under {_listed(widest)}",
                statement.path,
                statement.equation.pos,
                _listed(axes),
                _listed(widest),
            ),
            tuple(sorted(private)),
        )


def _listed(axes: tuple[str, ...]) -> str:
    return " ".join(axes) or "none"


def _scopes(accesses: Accesses) -> Iterator[tuple[Violation, tuple[str, ...]]]:
    """Where an ``l`` or ``s`` tensor lives: in one top-level nest, under one set of block axes."""
    homes: dict[str, tuple[int, tuple[str, ...]]] = {}
    reported: set[str] = set()
    for use in accesses.uses:
        access: Access = use.access
        if access.scope == "g" or access.name in reported:
            continue
        nest, blocks = use.statement.path[0], _axes(use.statement, BLOCK_AXES)
        home = homes.setdefault(access.name, (nest, blocks))
        if home[0] != nest:
            kind, found = "scope-lifetime", f"an access in nest {nest + 1}"
            required = f"all accesses in nest {home[0] + 1}"
            message = (
                f"{access.name} has scope {access.scope} and lives for one nest, but is used in "
                f"nests {home[0] + 1} and {nest + 1}"
            )
        elif home[1] != blocks:
            kind, found, required = "scope-blocks", _listed(blocks), _listed(home[1])
            message = (
                f"{access.name} has scope {access.scope} and is used under block axes "
                f"{_listed(home[1])} and under {_listed(blocks)}"
            )
        else:
            continue
        reported.add(access.name)
        yield (
            Violation(kind, message, use.statement.path, access.pos, found, required),
            (access.name,),
        )
