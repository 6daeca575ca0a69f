"""Derivations from the syntax alone: texts, loops, accesses."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Final

from steptp_dagster.leir.ast import Access, Compare, Equation, Expr, Index, Inf, Unary
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.printer import loops_text as print_loops
from steptp_dagster.leir.printer import statement_text as print_statement
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    accesses_in,
    equations,
    expressions,
    indices_in,
    iter_expr,
    substitute,
)
from steptp_dagster.reasoning.kinds import (
    Derivation,
    DerivationError,
    equation_at,
    equations_at,
    loop_at,
    loops_at,
    name_of,
    nest_at,
    read_expressions,
    statement_at,
)
from steptp_dagster.strategies.facts import Value


def statement_text(signed: SignedProgram, path: Value) -> str:
    """Canonical text of a statement."""
    return print_statement(statement_at(signed, path))


def loops_text(signed: SignedProgram, path: Value) -> str:
    """Canonical text of a nest's loop header."""
    return print_loops(nest_at(signed, path).loops)


def header_text(signed: SignedProgram, path: Value) -> str:
    """Canonical text of all loops at and around a statement, outermost first."""
    return print_loops(loops_at(signed, path))


def target_text(signed: SignedProgram, path: Value) -> str:
    """Left side of an equation."""
    return expr_text(equation_at(signed, path).target)


def value_text(signed: SignedProgram, path: Value) -> str:
    """Right side of an equation."""
    return expr_text(equation_at(signed, path).value)


def guard_text(signed: SignedProgram, path: Value) -> str:
    """Guard of an equation, empty without one."""
    guard = equation_at(signed, path).guard
    return "" if guard is None else expr_text(guard)


def renamed_value(signed: SignedProgram, path: Value, renaming: Value) -> str:
    """Right side of an equation after replacing indices by indices, all at once."""
    if not isinstance(renaming, tuple):
        raise DerivationError(f"not a renaming: {renaming!r}")
    by: dict[str, Expr] = {}
    for entry in renaming:
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise DerivationError(f"not a renaming: {renaming!r}")
        by[name_of(entry[0])] = Index(name_of(entry[1]))
    return expr_text(substitute(equation_at(signed, path).value, by))


def statements(signed: SignedProgram, path: Value) -> int:
    """Number of statements directly in a nest, or of top-level nests for the empty path."""
    return len(signed.program.nests) if path == () else len(nest_at(signed, path).body)


def loops_around(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Indices of the loops at and around a statement, outermost first."""
    return tuple(loop.index for loop in loops_at(signed, path))


def loop_extent(signed: SignedProgram, path: Value, index: Value) -> int:
    """Extent of a loop."""
    return loop_at(signed, path, index).extent


def loop_start(signed: SignedProgram, path: Value, index: Value) -> int:
    """First value of a loop's index."""
    return loop_at(signed, path, index).start


def loop_kind(signed: SignedProgram, path: Value, index: Value) -> str:
    """Kind letter of a loop."""
    return loop_at(signed, path, index).kind


def trip_count(signed: SignedProgram, path: Value) -> int:
    """How often the loops at and around a statement run, guards not counted."""
    return prod(loop.extent for loop in loops_at(signed, path))


def _reads(equation: Equation) -> Iterator[Access]:
    for expr in read_expressions(equation):
        yield from accesses_in(expr)


def reads(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Names of the tensors that a statement reads, by first occurrence."""
    found = (a.name for located in equations_at(signed, path) for a in _reads(located.equation))
    return tuple(dict.fromkeys(found))


def writes(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Names of the tensors that a statement writes, by first occurrence."""
    found = (located.equation.target.name for located in equations_at(signed, path))
    return tuple(dict.fromkeys(found))


def read_texts(signed: SignedProgram, path: Value, tensor: Value) -> tuple[str, ...]:
    """Distinct read accesses to a tensor in a statement, by first occurrence."""
    found = (
        expr_text(a)
        for located in equations_at(signed, path)
        for a in _reads(located.equation)
        if a.name == tensor
    )
    return tuple(dict.fromkeys(found))


def write_texts(signed: SignedProgram, path: Value, tensor: Value) -> tuple[str, ...]:
    """Distinct written accesses to a tensor in a statement, by first occurrence."""
    targets = (located.equation.target for located in equations_at(signed, path))
    return tuple(dict.fromkeys(expr_text(t) for t in targets if t.name == tensor))


def _trips(located: Located) -> int:
    return prod(loop.extent for loop in located.loops)


def element_reads(signed: SignedProgram, path: Value, tensor: Value) -> int:
    """Occurrences of read accesses, each times the trip count of its equation."""
    return sum(
        _trips(located)
        for located in equations_at(signed, path)
        for a in _reads(located.equation)
        if a.name == tensor
    )


def element_writes(signed: SignedProgram, path: Value, tensor: Value) -> int:
    """Equations that write the tensor, each times its trip count."""
    return sum(
        _trips(located)
        for located in equations_at(signed, path)
        if located.equation.target.name == tensor
    )


def uses_index(signed: SignedProgram, path: Value, tensor: Value, index: Value) -> bool:
    """Whether some access to the tensor in a statement has the index in a subscript."""
    return any(
        name_of(index) in indices_in(access)
        for located in equations_at(signed, path)
        for expr in expressions(located.equation)
        for access in accesses_in(expr)
        if access.name == tensor
    )


def infinity_tests(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """What the right side of an equation compares with ``-inf``, by first occurrence, as text."""
    found = (
        expr_text(node.operands[0])
        for node in iter_expr(equation_at(signed, path).value)
        if isinstance(node, Compare) and node.operands[1:] == (Unary("-", Inf()),)
    )
    return tuple(dict.fromkeys(found))


def readers_of(signed: SignedProgram, tensor: Value) -> tuple[Value, ...]:
    """Paths of the equations that read a tensor; an update reads its own target."""
    return tuple(
        located.path
        for located in equations(signed.program)
        if any(a.name == tensor for a in _reads(located.equation))
    )


def writers_of(signed: SignedProgram, tensor: Value) -> tuple[Value, ...]:
    """Paths of the equations that write a tensor."""
    return tuple(
        located.path
        for located in equations(signed.program)
        if located.equation.target.name == tensor
    )


KINDS: Final[Mapping[str, Derivation]] = {
    f.__name__: f
    for f in (
        statement_text,
        loops_text,
        header_text,
        target_text,
        value_text,
        guard_text,
        renamed_value,
        statements,
        loops_around,
        loop_extent,
        loop_start,
        loop_kind,
        trip_count,
        reads,
        writes,
        read_texts,
        write_texts,
        element_reads,
        element_writes,
        uses_index,
        infinity_tests,
        readers_of,
        writers_of,
    )
}
