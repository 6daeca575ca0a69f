"""Operators without effect: the program would compute the same if they were left out.

Three kinds are found, all by running the program in float64 on many kinds of data:

* a result that repeats one of those it is computed from: ``relu`` of a softmax, ``-(-x)``;
* an element-wise operator whose operand could take its place: a bias in front of a norm;
* a result that is one number throughout although it is computed from data: the mean of a softmax.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from steptp_dagster.leir.ast import (
    Access,
    Call,
    Compare,
    Equation,
    Expr,
    Inf,
    Int,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import accesses_in, equations, expressions, fresh_tensors, iter_expr
from steptp_dagster.lowering import compile_programs
from steptp_dagster.lowering.storage import NUMPY
from steptp_dagster.verify.compare import Array, difference, is_float, same_values
from steptp_dagster.verify.original import Case

#: Below this normalised difference two results count as the same.
SAME: Final = 1e-9
#: What inputs may be anywhere: infinities too, which safe forms guard against. Their number is
#: prime, so that every pace through them meets all.
_VALUES: Final = (-np.inf, -300.0, -30.0, -3.0, -1.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 1.0, 3.0, np.inf)
#: Sizes of whole tensors, and how many data sets draw from them.
_SIZES: Final = (-30.0, -3.0, -1.0, -0.1, 0.1, 1.0, 3.0, 30.0)
_SIGNED: Final = 16


def idle(original: SignedProgram, cases: Sequence[Case]) -> Iterator[str]:
    """``no-effect:T=S`` where S could stand in the place of T, ``constant:T`` where T is a number.

    ``cases`` are those of ``original`` (``original.evaluate``); their domain counts. Operators
    that only act on rare data have an effect: limits that ordinary data does not reach, guards
    against division by zero, maxima that are subtracted lest something overflow.
    """
    graph = _Graph(original)
    pairs = list(graph.pairs())
    runs = _Runs(original, graph, pairs, cases)
    repeated = set()
    for target, source in graph.repetitions():
        if runs.repeats(target, source):
            repeated.add(target)
            yield f"no-effect:{target}={source}"
    for name in graph.computed:
        if name not in repeated and runs.is_constant(name):
            repeated.add(name)
            yield f"constant:{name}"
    for number, (target, source) in enumerate(pairs, 1):
        known = target in repeated or runs.is_alike(target, source)
        if not known and runs.is_replaceable(number):
            yield f"no-effect:{target}={source}"


@dataclass(frozen=True)
class _Graph:
    """Which float tensors of a program are computed from which."""

    original: SignedProgram

    @cached_property
    def equations(self) -> list[Equation]:
        return [located.equation for located in equations(self.original.program)]

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return infer_shapes(self.original)

    @cached_property
    def dtypes(self) -> Mapping[str, str]:
        return {
            access.name: access.dtype
            for equation in self.equations
            for expr in (equation.target, *expressions(equation))
            for access in accesses_in(expr)
        }

    @cached_property
    def observable(self) -> frozenset[str]:
        """Float tensors in global memory, without constants."""
        constants = {v.name for v in self.original.signature.sources if v.role == "const"}
        return frozenset(
            access.name
            for equation in self.equations
            for expr in (equation.target, *expressions(equation))
            for access in accesses_in(expr)
            if access.scope == "g" and is_float(access.dtype) and access.name not in constants
        )

    @cached_property
    def ancestors(self) -> Mapping[str, frozenset[str]]:
        """What each written tensor is computed from, directly or not, without itself."""
        found: dict[str, set[str]] = {}
        for equation in self.equations:
            mine = found.setdefault(equation.target.name, set())
            for expr in expressions(equation):
                for access in accesses_in(expr):
                    mine |= {access.name} | found.get(access.name, set())
        return {name: frozenset(names - {name}) for name, names in found.items()}

    @cached_property
    def computed(self) -> tuple[str, ...]:
        """Intermediates that depend on inputs or parameters, in the order of their writes."""
        given = {v.name for v in self.original.signature.sources if v.role != "const"}
        known = self.original.signature.by_name
        return tuple(
            name
            for name, above in self.ancestors.items()
            if name in self.observable and name not in known and above & given
        )

    @cached_property
    def copies(self) -> frozenset[str]:
        """Tensors that only move elements of others, or are put together by several equations.

        Also those that only guard against infinities, as safe forms do that translations use.
        """
        plain = {
            e.target.name for e in self.equations if isinstance(e.value, Access) or _guards(e.value)
        }
        names = [e.target.name for e in self.equations]
        return frozenset(plain | {name for name in names if names.count(name) > 1})

    def repetitions(self) -> Iterator[tuple[str, str]]:
        """Results and those above them of the same shape, nearest first."""
        order = {name: number for number, name in enumerate(self.ancestors)}
        for target, above in self.ancestors.items():
            if target in self.copies or target not in self.observable:
                continue
            for source in sorted(above & self.observable, key=lambda n: (-order.get(n, -1), n)):
                if self.shapes[source] == self.shapes[target]:
                    yield target, source

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Results and operands that the one equation of the result reads at its own place."""
        for equation in self.equations:
            target = equation.target
            read = list(dict.fromkeys(accesses_in(equation.value)))
            own = target.name in {a.name for a in read}
            if own or target.name in self.copies or target.name not in self.observable:
                continue
            for source in read:
                same_place = source.subscripts == target.subscripts
                same_shape = self.shapes[source.name] == self.shapes[target.name]
                if same_place and same_shape and source.name in self.observable:
                    yield target.name, source.name


class _Runs:
    """The values of all observable tensors on ordinary, adversarial and arbitrary data.

    One kernel does it: a further input selects the pair whose source stands in the place of its
    target, 0 none.
    """

    def __init__(
        self,
        original: SignedProgram,
        graph: _Graph,
        pairs: Sequence[tuple[str, str]],
        cases: Sequence[Case],
    ) -> None:
        known = original.signature.by_name
        inner = tuple(
            Variable("output", name, graph.dtypes[name], graph.shapes[name])
            for name in sorted(graph.observable - set(known))
        )
        self.selector = next(fresh_tensors({*known, *graph.shapes}))
        chooser = Variable("input", self.selector, "i64", (), 0, len(pairs))
        observed = SignedProgram(
            _selectable(original.program, pairs, self.selector),
            Signature((chooser, *original.signature.variables, *inner)),
        )
        self.kernel = compile_programs([observed], "float64")[0]
        self.judged = [case for case in cases if not case.noise]
        self.plain = [self.run(c.inputs) for c in self.judged if not c.family.adversarial]
        self.other = [self.run(c.inputs) for c in self.judged if c.family.adversarial]
        self.other += [self.run(data) for data in _everything(original)]

    def run(self, data: Mapping[str, Array], selected: int = 0) -> dict[str, Array]:
        """Inputs, outputs and intermediates by name."""
        selection = {self.selector: np.asarray(selected, dtype=np.int64)}
        return {**data, **self.kernel.run({**data, **selection})}

    def is_replaceable(self, number: int) -> bool:
        """Whether no output changes if a pair's source takes the place of its target."""
        if not self.plain:
            return False
        return all(_unchanged(case, self.run(case.inputs, number)) for case in self.judged)

    def is_alike(self, target: str, source: str) -> bool:
        """Whether the one repeats the other on ordinary data."""
        return all(_same(run[target], run[source]) for run in self.plain)

    def repeats(self, target: str, source: str) -> bool:
        """Whether the one repeats the other on all data, wherever it does not overflow."""
        if not self.plain or not self.is_alike(target, source):
            return False
        return all(_same(_finite(run[target]), run[source]) for run in self.other)

    def is_constant(self, name: str) -> bool:
        """Whether all elements are one number, the same on all ordinary data."""
        values = [run[name] for run in self.plain]
        if not values or any(not np.isfinite(v).all() for v in values):
            return False
        first = values[0].flat[0]
        return all(_same(v, np.full_like(v, first)) for v in values)


def _unchanged(case: Case, results: Mapping[str, Array]) -> bool:
    """Whether the original's results are kept: all values, of adversarial data what is finite."""
    for name, reference in case.reference.items():
        if reference.dtype.kind != "f":
            if not same_values(reference, results[name]):
                return False
        elif case.family.adversarial:
            finite = np.isfinite(reference)
            if not np.isfinite(results[name][finite]).all():
                return False
        elif not _same(reference, results[name]):
            return False
    return True


def _guards(value: Expr) -> bool:
    """Whether a value is selected by a comparison with infinity."""
    if not isinstance(value, Call) or value.function != "if_then_else":
        return False
    return any(isinstance(node, Inf) for node in iter_expr(value.arguments[0]))


def _selectable(program: Program, pairs: Sequence[tuple[str, str]], selector: str) -> Program:
    """The program in which ``selector`` decides which target is a copy of its source."""
    numbers: dict[str, list[tuple[int, str]]] = {}
    for number, (target, source) in enumerate(pairs, 1):
        numbers.setdefault(target, []).append((number, source))

    def changed(statement: Statement) -> Statement:
        if isinstance(statement, Nest):
            return replace(statement, body=tuple(map(changed, statement.body)))
        value = statement.value
        for number, source in numbers.get(statement.target.name, ()):
            operand = next(
                access
                for access in accesses_in(statement.value)
                if access.name == source and access.subscripts == statement.target.subscripts
            )
            chosen = Compare((Access(selector, "i64", "g"), Int(number)), ("==",))
            value = Call("if_then_else", (chosen, operand, value))
        return replace(statement, value=value)

    nests = tuple(changed(nest) for nest in program.nests)
    return Program(tuple(n for n in nests if isinstance(n, Nest)))


def _same(values: Array, others: Array) -> bool:
    """Whether the others are the same wherever the values are not NaN."""
    return difference(values.astype(np.float64), others.astype(np.float64)) <= SAME


def _finite(values: Array) -> Array:
    """The values with NaN in the place of infinities."""
    return np.where(np.isfinite(values), values, np.nan)


def _everything(original: SignedProgram) -> list[dict[str, Array]]:
    """Data of every kind: what no program should rely on not to meet.

    Sets over which every element of every tensor takes every one of ``_VALUES``, then zeros, then
    sets in which each tensor has a sign and a size of its own (``_SIZES``). Values are moved into
    the declared ranges; integers are drawn from theirs.
    """
    rng = np.random.default_rng(0)
    count = len(_VALUES)
    values = np.array(_VALUES)
    variables = [v for v in original.signature.sources if v.role != "const"]
    sets: list[dict[str, Array]] = [{} for _ in range(count + 1 + _SIGNED)]
    for number, variable in enumerate(variables):
        starts = rng.integers(count, size=variable.shape)
        # tensors step through the values at different paces, so that they meet in many ways
        pace = 1 + number % (count - 1)
        for draw, data in enumerate(sets):
            if not DTYPES[variable.dtype].is_float:
                low, high = (0, 1) if variable.low is None else (variable.low, variable.high or 1)
                drawn = rng.integers(int(low), int(high), variable.shape, endpoint=True)
                data[variable.name] = drawn.astype(NUMPY[variable.dtype])
                continue
            if draw < count:
                chosen = values[(starts + draw * pace) % count]
            elif draw == count:
                chosen = np.zeros(())
            else:
                chosen = rng.choice(_SIZES) * (1.0 + 0.1 * rng.standard_normal(variable.shape))
            inside = np.clip(
                np.broadcast_to(chosen, variable.shape),
                -np.inf if variable.low is None else variable.low,
                np.inf if variable.high is None else variable.high,
            )
            data[variable.name] = inside.astype(np.float64)
    return sets
