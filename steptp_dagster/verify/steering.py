"""Data on which the candidate's own numbers meet what it computes.

``exp(-((x-12.815)*1e5)**2)`` of a sum ``x`` is 0 on all data but next to one sum: no condition, and
no literal that an input could be. So where a candidate adds a number that the original lacks to
something computed, or subtracts it, normal data is scaled until both cancel (bisection in
binary64), and the programs are compared there, on either side of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Equation,
    Expr,
    Int,
    Nest,
    Program,
    Real,
    Statement,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.leir.walk import accesses_in, equations, fresh_tensors, tensor_names
from steptp_dagster.lowering.build import executed_equations
from steptp_dagster.lowering.precision import in_precision
from steptp_dagster.verify.branches import contexts
from steptp_dagster.verify.compare import Array, is_float
from steptp_dagster.verify.engine import LLVM, Runner
from steptp_dagster.verify.families import FAMILIES, inputs
from steptp_dagster.verify.infinities import COMMON, inside, numbers_of, reads

#: Larger programs are not steered, nor more than so many differences of one.
_MOST_EQUATIONS: Final = 100_000
_MOST: Final = 4
#: Factors of the data that are tried first, of either sign; then halvings of an interval of them.
_FACTORS: Final = np.geomspace(1e-3, 1e4, 48)
_HALVINGS: Final = 60
#: Data sets that are scaled, one after the other, until one leads there.
_DRAWS: Final = 4


@dataclass(frozen=True, slots=True)
class _Difference:
    """A sum or difference with an own number, in the equation with this number."""

    equation: int
    node: Expr


def steered(
    original: SignedProgram, candidate: SignedProgram, seed: int
) -> Iterator[dict[str, Array]]:
    """Inputs in binary64 on which own numbers cancel, on both sides of where they do."""
    found = _differences(original, candidate)
    if not found or max(map(executed_equations, (original, candidate))) > _MOST_EQUATIONS:
        return
    probed, names = _with_values(candidate, found)
    runner = LLVM.compile([probed], "float64")[0]
    searches = [_Search(candidate, runner, seed, draw) for draw in range(_DRAWS)]
    for name in names:
        led = ((search, search.roots(name)) for search in searches)
        search, factors = next((one for one in led if one[1]), (searches[0], ()))
        for factor in factors:
            yield search.data(factor)


def _differences(original: SignedProgram, candidate: SignedProgram) -> list[_Difference]:
    known = numbers_of(original) | COMMON
    if numbers_of(candidate) <= known:
        return []
    given = {v.name for v in candidate.signature.sources}
    found = []
    for i, located in enumerate(equations(candidate.program)):
        for node in dict.fromkeys(inside(located.equation.value)):
            if not isinstance(node, Binary) or node.op not in ("+", "-"):
                continue
            own = any(
                isinstance(part, Int | Real) and float(part.value) not in known
                for part in inside(node)
            )
            read = {a.name for a in accesses_in(node) if DTYPES[a.dtype].is_float}
            if own and read and not _of_one_input(node, given):
                found.append(_Difference(i, node))
    return found[:_MOST]


def _of_one_input(node: Binary, given: set[str]) -> bool:
    """Whether a number stands beside an element of an input; that is tried at literals."""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(one, Access) and one.name in given and not reads(other):
            return True
    return False


def _with_values(
    candidate: SignedProgram, found: Sequence[_Difference]
) -> tuple[SignedProgram, list[str]]:
    """The candidate that also tells each difference as it was the last time it was worked out.

    NaN, as all memory at first, where it never was.
    """
    fresh = fresh_tensors({*candidate.signature.by_name, *tensor_names(candidate.program)})
    names = [next(fresh) for _ in found]
    count = iter(range(len(list(equations(candidate.program)))))

    def visited(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Nest):
            body = tuple(new for s in statement.body for new in visited(s))
            loops = tuple(
                loop if loop.kind == "B" else replace(loop, kind="L") for loop in statement.loops
            )
            return (replace(statement, loops=loops, body=body),)
        number = next(count)
        told = []
        for name, one in zip(names, found, strict=True):
            if one.equation == number:
                last = Access(name, "f64", "g", (Int(0),))
                for path in contexts(statement.value, one.node, one.node, frozenset(), last):
                    told.append(Equation(last, path, statement.guard))
        return (*told, statement)

    nests = [new for nest in candidate.program.nests for new in visited(nest)]
    variables = tuple(Variable("output", name, "f64", (1,)) for name in names)
    program = Program(tuple(n for n in nests if isinstance(n, Nest)))
    signature = replace(candidate.signature, variables=(*candidate.signature.variables, *variables))
    return SignedProgram(program, signature), names


class _Search:
    """Scales normal data so that a value becomes 0."""

    def __init__(self, candidate: SignedProgram, runner: Runner, seed: int, draw: int) -> None:
        signature = in_precision(candidate, "float64").signature
        self._runner = runner
        self._drawn = inputs(signature, FAMILIES[0], seed, draw=2 + draw)
        self._free = {
            v.name
            for v in signature.sources
            if v.role != "const" and v.low is None and is_float(v.dtype)
        }

    def data(self, factor: float) -> dict[str, Array]:
        """The data times a factor; what has a range stays in it."""
        return {n: a * factor if n in self._free else a for n, a in self._drawn.items()}

    def roots(self, name: str) -> tuple[float, ...]:
        """The factors next to a place where the value changes its sign, if it does."""
        for tried in (_FACTORS, -_FACTORS):
            values = self._values(name, tried)
            signs = np.sign(values)
            with np.errstate(invalid="ignore"):
                changes = np.flatnonzero(np.isfinite(values[:-1]) & (signs[:-1] * signs[1:] <= 0))
            if changes.size:
                low, high = float(tried[changes[0]]), float(tried[changes[0] + 1])
                return self._halved(name, low, high, float(signs[changes[0]]))
        return ()

    def _halved(self, name: str, low: float, high: float, sign: float) -> tuple[float, ...]:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            if middle in (low, high):
                break
            if float(np.sign(self._values(name, np.array([middle]))[0])) == sign:
                low = middle
            else:
                high = middle
        return low, high

    def _values(self, name: str, factors: Array) -> Array:
        data = [self.data(float(factor)) for factor in factors]
        together = {n: np.stack([one[n] for one in data]) for n in data[0]}
        found = self._runner.run_many(together, len(factors))[name]
        return np.asarray(found, np.float64).reshape(len(factors), -1)[:, 0]
