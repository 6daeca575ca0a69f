"""Annotation conflicts: one tensor written with several dtypes or scopes.

The defining occurrence is the signature's entry, else the tensor's first write in text order. A
read that contradicts it is rewritten, with a note. A write that contradicts it stays, for
validity to find: rewriting it would change what is stored.
"""

from collections.abc import Mapping
from dataclasses import replace

from steptp_dagster.leir.ast import Access, Equation, Expr, Nest, Program
from steptp_dagster.leir.notes import Note
from steptp_dagster.leir.signature import Signature
from steptp_dagster.leir.walk import equations, map_expr

Annotation = tuple[str, str]


def definitions(program: Program, signature: Signature | None) -> dict[str, Annotation]:
    """The defining (dtype, scope) of every tensor that is known or written."""
    known = () if signature is None else signature.variables
    found = {variable.name: (variable.dtype, "g") for variable in known}
    for located in equations(program):
        target = located.equation.target
        found.setdefault(target.name, (target.dtype, target.scope))
    return found


def normalise(
    program: Program,
    signature: Signature | None,
    text: str,
    used: Mapping[str, set[Annotation]],
) -> tuple[Program, tuple[Note, ...]]:
    """Give reads their defining annotation; one note per rewritten read.

    ``used`` holds the annotations that occur per tensor: where all agree with their definition,
    the program is returned as it is, without a walk.
    """
    known = {} if signature is None else signature.by_name
    if all(
        len(found) == 1 and (name not in known or (known[name].dtype, "g") in found)
        for name, found in used.items()
    ):
        return program, ()
    defined = definitions(program, signature)
    rewriter = _Rewriter(text, defined)
    nests = tuple(rewriter.nest(nest) for nest in program.nests)
    return Program(nests), tuple(rewriter.notes)


class _Rewriter:
    """Rebuilds nests with every read annotated as its definition says."""

    def __init__(self, text: str, defined: Mapping[str, Annotation]) -> None:
        self.text = text
        self.defined = defined
        self.notes: list[Note] = []

    def nest(self, nest: Nest) -> Nest:
        """The nest with all reads rewritten."""
        body = tuple(self.nest(s) if isinstance(s, Nest) else self.equation(s) for s in nest.body)
        return replace(nest, body=body)

    def equation(self, old: Equation) -> Equation:
        """The equation with all reads rewritten, those in subscripts of the target too."""
        subscripts = tuple(map_expr(e, self.read) for e in old.target.subscripts)
        guard = None if old.guard is None else map_expr(old.guard, self.read)
        target = replace(old.target, subscripts=subscripts)
        return replace(old, target=target, value=map_expr(old.value, self.read), guard=guard)

    def read(self, node: Expr) -> Expr:
        """The access with its defining annotation; other nodes as they are."""
        if not isinstance(node, Access):
            return node
        found = (node.dtype, node.scope)
        wanted = self.defined.get(node.name, found)
        if wanted == found:
            return node
        message = (
            f"{node.name} is read as {','.join(found)} but defined as {','.join(wanted)}: "
            "the definition wins"
        )
        self.notes.append(Note.at(message, self.text, node.pos))
        return replace(node, dtype=wanted[0], scope=wanted[1])
