"""Which tensors the equations of a nest read and write: the edges of a program's data flow.

What a tensor's values depend on is worked out group by group: tensors that depend on each other
form one group (a strongly connected component, R. Tarjan 1972), and all that a group depends on
besides comes before it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.accesses import Accesses, Statement, Use
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
    Nest,
    Unary,
)
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.updates import Operator
from steptp_dagster.leir.walk import Path, accesses_in, equations_in

#: How operators without a name of their own are called in ``Flow.operators``.
MINUS: Final = "minus"
COMPARE: Final = "compare"
INFINITY: Final = "inf"
#: The operators of which an equation has one if it is an update by an operation.
_WRITTEN: Final[dict[Operator, tuple[str, ...]]] = {
    "max": ("max",),
    "min": ("min",),
    "+": ("+", "-"),
    "*": ("*",),
}


@dataclass(frozen=True, slots=True)
class Flow:
    """What one equation writes and reads; ``path`` is its place below the top-level nest.

    ``read`` are the tensors in value, guard and all subscripts; the target is among them only
    where the equation reads its own target. ``equation`` is one of equal ones, whatever their
    positions in the text. ``subtracted`` are the differences in its value by the tensor that is
    subtracted. ``operators`` are the operators and functions in its value, conditions included but
    not subscripts, with ``MINUS`` for a sign, ``COMPARE`` for any comparison, and ``INFINITY``.
    ``beside`` is what else it computes: its guard and subscripts that are no plain indices or
    numbers.
    """

    path: Path
    equation: Equation
    target: str
    read: frozenset[str]
    subtracted: Mapping[str, tuple[Binary, ...]]
    operators: frozenset[str]
    beside: tuple[Expr, ...]

    def may_update_by(self, op: Operator) -> bool:
        """Whether the equation may be a pure update by an operation, as far as operators tell."""
        return self.target in self.read and not self.operators.isdisjoint(_WRITTEN[op])


@per_nest
def flows(nest: Nest) -> tuple[Flow, ...]:
    """The flow of every equation of a nest, in text order."""
    return tuple([_flow(one.path, one.equation) for one in equations_in(nest)])


@per_nest
def _by_path(nest: Nest) -> Mapping[Path, Flow]:
    return {flow.path: flow for flow in flows(nest)}


def flow_at(nest: Nest, path: Path) -> Flow:
    """The flow of one equation, by its path below the nest. Raises KeyError where none stands."""
    return _by_path(nest)[path]


def writes_of(accesses: Accesses, name: str) -> list[Use]:
    """All writes of a tensor, in text order; none where the program only reads it."""
    return accesses.writes_until(name, len(accesses.known))


def _flow(path: Path, equation: Equation) -> Flow:
    """One walk over an equation."""
    read: set[str] = set()
    operators: set[str] = set()
    differences: dict[str, tuple[Binary, ...]] = {}
    beside: list[Expr] = [s for s in equation.target.subscripts if not isinstance(s, Index | Int)]
    if equation.guard is not None:
        beside.append(equation.guard)
    waiting: list[Expr] = [equation.value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Access):
            read.add(node.name)
            beside += [s for s in node.subscripts if not isinstance(s, Index | Int)]
        elif isinstance(node, Binary):
            operators.add(node.op)
            if node.op == "-" and isinstance(node.right, Access):
                name = node.right.name
                differences[name] = (*differences.get(name, ()), node)
            waiting.append(node.left)
            waiting.append(node.right)
        elif isinstance(node, Call):
            operators.add(node.function)
            waiting += node.arguments
        elif isinstance(node, Unary):
            operators.add(MINUS)
            waiting.append(node.operand)
        elif isinstance(node, Compare):
            operators.add(COMPARE)
            waiting += node.operands
        elif isinstance(node, Inf):
            operators.add(INFINITY)
    for expr in beside:
        read.update([access.name for access in accesses_in(expr)])
    return Flow(
        path,
        equation,
        equation.target.name,
        frozenset(read),
        differences,
        frozenset(operators),
        tuple(beside),
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Tensors that depend on each other, and the equations that write them, in text order.

    ``cyclic``: some equation reads one of the group's own tensors.
    """

    names: tuple[str, ...]
    statements: tuple[Statement, ...]
    cyclic: bool


class Groups:
    """The groups of one program, handed out once each, as they are needed."""

    def __init__(self, accesses: Accesses) -> None:
        """``accesses`` are those of the program."""
        self._accesses = accesses
        self._nests = accesses.signed.program.nests
        self._done: set[str] = set()

    def leading_to(self, names: Iterable[str]) -> Iterator[Group]:
        """Groups not handed out before that the named tensors depend on, first things first."""
        for name in names:
            if name not in self._done and name in self._accesses.writers:
                yield from self._from(name)

    def _from(self, root: str) -> Iterator[Group]:
        """Tarjan's algorithm, without recursion, from one tensor."""
        number: dict[str, int] = {}
        low: dict[str, int] = {}
        open_: list[str] = []
        work: list[tuple[str, Iterator[str]]] = []

        def enter(name: str) -> None:
            number[name] = low[name] = len(number)
            open_.append(name)
            work.append((name, iter(self._needs(name))))

        enter(root)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other in self._done or other not in self._accesses.writers:
                    continue
                if other not in number:
                    enter(other)
                    break
                low[name] = min(low[name], number[other])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[name])
                if low[name] == number[name]:
                    members = open_[open_.index(name) :]
                    del open_[len(open_) - len(members) :]
                    self._done.update(members)
                    yield self._group(members)

    def _needs(self, name: str) -> list[str]:
        """The tensors that equations which write a tensor read, each once, in a fixed order."""
        found: dict[str, None] = {}
        for i in self._accesses.writers[name]:
            for flow in flows(self._nests[i]):
                if flow.target == name:
                    found.update(dict.fromkeys(sorted(flow.read)))
        return list(found)

    def _group(self, members: list[str]) -> Group:
        names = frozenset(members)
        places = sorted({i for name in members for i in self._accesses.writers[name]})
        found: list[Statement] = []
        cyclic = False
        for i in places:
            part = self._accesses.part(i)
            for statement, flow in zip(part.statements, flows(self._nests[i]), strict=True):
                if flow.target in names:
                    found.append(statement)
                    cyclic = cyclic or not names.isdisjoint(flow.read)
        return Group(tuple(members), tuple(found), cyclic)
