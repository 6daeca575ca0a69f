"""Identity of programs: canonical text, content id, and a hash that ignores names.

``leir_id`` tells texts apart; ``structural_hash`` is equal for programs that differ only in the
names of indices and tensors and in the order of operands of commutative operators.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Final, assert_never

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Program,
    Real,
    Statement,
    Unary,
)
from steptp_dagster.leir.fileform import header_text, variable_text
from steptp_dagster.leir.printer import statement_text, to_text
from steptp_dagster.leir.signature import Signature, SignedProgram
from steptp_dagster.leir.walk import (
    accesses_in,
    equations,
    equations_in,
    expressions,
    fresh_indices,
    fresh_tensors,
    map_equation,
    map_expr,
    map_statement,
    substitute,
)

_COMMUTATIVE_OPS: Final = ("+", "*", "&", "|")
_COMMUTATIVE_COMPARISONS: Final = (("==",), ("!=",))
_COMMUTATIVE_FUNCTIONS: Final = ("max", "min")


def canonical_text(program: SignedProgram | Program) -> str:
    """The unique text of a program."""
    return to_text(program.program if isinstance(program, SignedProgram) else program)


def digest(text: str) -> str:
    """BLAKE2b of the UTF-8 text: 16 bytes as 32 hexadecimal digits."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def leir_id(signed: SignedProgram) -> str:
    """The content id of a program: canonical text, signature and constant values."""
    return digest(f"{header_text(signed.signature)}{to_text(signed.program)}")


def structural_hash(signed: SignedProgram) -> str:
    """A hash that names do not influence.

    Indices count by their place among the enclosing loops, known variables by their place in the
    signature, other tensors by the order of their first writes (a write is one per equation, so
    that order depends neither on names nor on the order of operands). Operands of ``+ * & | max
    min == !=`` are sorted by their own nameless texts; sums are not re-associated.
    """
    names = _tensor_numbers(signed)
    header = [_nameless_header(signed.signature)]
    body = [_statement_key(nest, {}, names) for nest in signed.program.nests]
    return digest("\n".join(header + body))


def _nameless_header(signature: Signature) -> str:
    """The signature with its names left out."""
    return "\n".join(variable_text(replace(v, name="A")) for v in signature.variables)


def _tensor_numbers(signed: SignedProgram) -> dict[str, str]:
    """A nameless name for every tensor of the program."""
    names = [variable.name for variable in signed.signature.variables]
    located = list(equations(signed.program))
    names += [e.equation.target.name for e in located]
    # Only invalid programs use tensors that are nowhere written; they count in text order.
    names += [a.name for e in located for x in expressions(e.equation) for a in accesses_in(x)]
    return {name: f"#{n}" for n, name in enumerate(dict.fromkeys(names))}


def _statement_key(
    statement: Statement, indices: Mapping[str, str], names: Mapping[str, str], depth: int = 0
) -> str:
    if isinstance(statement, Equation):
        target = _key(statement.target, indices, names)
        guard = "" if statement.guard is None else _key(statement.guard, indices, names)
        return f"{target}={_key(statement.value, indices, names)}:{guard};"
    inner = dict(indices)
    heads = []
    for loop in statement.loops:
        inner[loop.index] = f"${depth}"
        depth += 1
        heads.append(f"{loop.kind}{loop.axis or ''}{loop.start},{loop.extent}")
    body = "".join(_statement_key(s, inner, names, depth) for s in statement.body)
    return f"{' '.join(heads)}[{body}]"


def _key(expr: Expr, indices: Mapping[str, str], names: Mapping[str, str]) -> str:
    """A nameless text of an expression, fully parenthesised, commutative operands sorted."""

    def key(part: Expr) -> str:
        return _key(part, indices, names)

    match expr:
        case Int():
            return str(expr.value)
        case Real():
            return expr.text
        case Inf():
            return "inf"
        case Index():
            return indices.get(expr.name, expr.name)
        case Access():
            head = f"{names[expr.name]}{expr.dtype}{expr.scope}"
            return f"{head}[{','.join(map(key, expr.subscripts))}]"
        case Unary():
            return f"-({key(expr.operand)})"
        case Binary():
            sides = [key(expr.left), key(expr.right)]
            if expr.op in _COMMUTATIVE_OPS:
                sides.sort()
            return f"({expr.op} {' '.join(sides)})"
        case Compare():
            parts = [key(operand) for operand in expr.operands]
            if expr.ops in _COMMUTATIVE_COMPARISONS:
                parts.sort()
            return f"({','.join(expr.ops)} {' '.join(parts)})"
        case Call():
            arguments = [key(argument) for argument in expr.arguments]
            if expr.function in _COMMUTATIVE_FUNCTIONS:
                arguments.sort()
            return f"{expr.function}({' '.join(arguments)})"
    assert_never(expr)


# -- one nest, for caches of compiled kernels --------------------------------------------------


@dataclass(frozen=True, slots=True)
class CanonicalNest:
    """A nest under generated names.

    ``text`` is its canonical text with indices and tensors renamed in order of appearance;
    ``tensors`` are the original names in that order: two nests with one ``text`` compute the same
    from the tensors listed.
    """

    text: str
    tensors: tuple[str, ...]


def canonical_nest(nest: Nest) -> CanonicalNest:
    """The nest with generated names: tensors A, C, D ... by appearance, indices by depth.

    An index keeps its hardware axis, followed by the letters of its depth.
    """
    renamed = _renamed_indices(nest, {})
    located = equations_in(renamed)
    appear = (a.name for e in located for x in expressions(e.equation) for a in accesses_in(x))
    tensors = tuple(dict.fromkeys(appear))
    names = dict(zip(tensors, fresh_tensors(()), strict=False))

    def rename(node: Expr) -> Expr:
        return replace(node, name=names[node.name]) if isinstance(node, Access) else node

    result = map_statement(renamed, lambda expr: map_expr(expr, rename))
    return CanonicalNest(statement_text(result), tensors)


def _renamed_indices(nest: Nest, outer: Mapping[str, str], depth: int = 0) -> Nest:
    names = dict(outer)
    loops: list[Loop] = []
    for loop in nest.loops:
        letters = next(islice(fresh_indices(()), depth, None))
        depth += 1
        names[loop.index] = f"{loop.axis or ''}{letters}"
        loops.append(replace(loop, index=names[loop.index]))
    by: dict[str, Expr] = {old: Index(new) for old, new in names.items()}
    body = tuple(
        _renamed_indices(statement, names, depth)
        if isinstance(statement, Nest)
        else map_equation(statement, lambda expr: substitute(expr, by))
        for statement in nest.body
    )
    return replace(nest, loops=tuple(loops), body=body)
