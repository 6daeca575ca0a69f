"""The distributive law over a loop: a factor goes out of a sum that a nest accumulates, or into it.

Out of the sum, the factor is applied once per result instead of once per term; that is how a
softmax defers its division, and a mean its own. Into the sum, the nest that scaled the result
goes. Both look at whole top-level nests of one equation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Program,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.lazy import lazy
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_expr
from steptp_dagster.leir.updates import Update, classify
from steptp_dagster.leir.walk import Path, accesses_in, indices_in, map_equation, substitute
from steptp_dagster.strategies.algebra.conditions import (
    Proof,
    Question,
    decides_nothing,
    proof_of,
)
from steptp_dagster.strategies.algebra.magnitude import HEADROOM, power_above, sizes_of
from steptp_dagster.strategies.algebra.rules import Need
from steptp_dagster.strategies.algebra.trees import (
    Operand,
    factors,
    is_literal,
    is_one,
    is_product,
    times,
    without_factors,
)
from steptp_dagster.strategies.dataflow import flows
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import pair
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.reductions import ONE_THREAD
from steptp_dagster.strategies.rewrite import new_tensor_names, readers_of, writers_of
from steptp_dagster.strategies.twins import single

TYPES = "types-differ"
RANGE = "value-may-overflow"
DECISION = "result-decides"
INFINITE = "factor-may-be-infinite"
#: Largest power of two whose multiples by at most 1 are numbers, by type.
_TOP = {"f32": 128, "f64": 1024}
#: The preconditions by law, in order. Infinity times a sum may be infinity where infinity times
#: each term, of both signs or zero, adds up to no number; the other way round nothing is lost.
NEEDS = {
    "out-of-sum": (TYPES, RANGE, DECISION),
    "into-sum": (TYPES, INFINITE, RANGE, DECISION),
}


@dataclass(frozen=True, eq=False)
class LoopWay:
    """One application at a sum: the equation that accumulates, and what comes in its place.

    ``factor`` and ``rest`` are a and b of the law; ``op`` is ``*``, or ``/`` where a divides.
    ``nests`` come in the place of as many of the program's own as they stand for; ``provers`` say
    for each of the law's ``NEEDS``, in order, why it holds, or that it does not.
    """

    program: SignedProgram
    path: Path
    op: str
    factor: Expr
    rest: Expr
    stands_for: int
    nests: tuple[Nest, ...]
    provers: Mapping[str, Callable[[], Proof]]

    @lazy
    def result(self) -> SignedProgram:
        """The program after the step."""
        nests = list(self.program.program.nests)
        nests[self.path[0] : self.path[0] + self.stands_for] = self.nests
        return SignedProgram(Program(tuple(nests)), self.program.signature)

    @property
    def choice(self) -> str:
        """How the way is told from others at the same sum."""
        return self.op + expr_text(self.factor)

    @lazy
    def problem(self) -> tuple[str, str] | None:
        """The first need that is not proved."""
        for name in self.provers:
            proof = self._proof(name)
            if isinstance(proof, str):
                return name, proof
        return None

    def evidence(self, name: str) -> tuple[Fact, ...]:
        """The facts that prove a need. Raises TypeError where it is not proved."""
        proof = self._proof(name)
        if isinstance(proof, str):
            raise TypeError(f"{name}: {proof}")
        return proof

    @lazy
    def _proofs(self) -> dict[str, Proof]:
        return {}

    def _proof(self, name: str) -> Proof:
        found = self._proofs.get(name)
        if found is None:
            found = self._proofs[name] = self.provers[name]()
        return found


@dataclass(frozen=True, slots=True)
class _Sum:
    """A top-level nest that accumulates one sum from zero."""

    place: int
    nest: Nest
    equation: Equation
    operand: Expr
    over: frozenset[str]

    @property
    def path(self) -> Path:
        return self.place, 0

    @property
    def spatial(self) -> tuple[Loop, ...]:
        """The loops of a nest that has an iteration per result."""
        found = tuple(loop for loop in self.nest.loops if loop.index not in self.over)
        return found or (ONE_THREAD,)


def _sums(program: SignedProgram) -> Iterator[_Sum]:
    for i in range(len(program.program.nests)):
        found = _sum_at(program, i)
        if found is not None:
            yield found


def _sum_at(program: SignedProgram, i: int) -> _Sum | None:
    """The sum that a top-level nest accumulates from zero, or None."""
    nest = program.program.nests[i]
    equation = single(nest)
    if equation is None or not DTYPES[equation.target.dtype].is_float:
        return None
    flow = flows(nest)[0]
    if flow.target not in flow.read or flow.operators.isdisjoint("+-"):
        return None
    update = classify(program)[(i, 0)]
    if not _plain(update) or update.operand is None:
        return None
    return _Sum(i, nest, equation, update.operand, frozenset(update.reduction_loops))


def _plain(update: Update) -> bool:
    return (
        update.op == "+"
        and not update.subtract
        and update.init == "identity"
        and bool(update.reduction_loops)
        and update.repeating_loops == update.reduction_loops
    )


# -- out of a sum ----------------------------------------------------------------------------


def out_of_sums(program: SignedProgram) -> Iterator[LoopWay]:
    """Every factor of every sum that no loop of the sum changes."""
    for found in _sums(program):
        seen: set[tuple[bool, Expr]] = set()
        for factor in factors(found.operand):
            if (factor.inverse, factor.expr) in seen or is_one(factor.expr):
                continue
            seen.add((factor.inverse, factor.expr))
            if indices_in(factor.expr) & found.over:
                continue
            rest = without_factors(found.operand, factor.at)
            if not is_literal(rest):
                yield _pulled(program, found, factor, rest)


def _pulled(program: SignedProgram, found: _Sum, factor: Operand, rest: Expr) -> LoopWay:
    target = found.equation.target
    dtype = DTYPES[target.dtype].evaluation.name
    total = replace(target, name=new_tensor_names(program, 1)[0], dtype=dtype)
    op = "/" if factor.inverse else "*"
    own = factors(found.operand)
    first = own[0].expr == factor.expr and op == "*"
    scaled = Binary("*", factor.expr, total) if first else Binary(op, total, factor.expr)
    nests = (
        Nest(found.nest.loops, (Equation(total, Binary("+", total, rest)),)),
        Nest(found.spatial, (Equation(target, scaled),)),
    )
    question = Question(program, found.path, found.equation)
    provers: dict[str, Callable[[], Proof]] = {
        TYPES: partial(_one_type, question, (factor.expr, rest), dtype),
        RANGE: partial(_sum_range, question, found, rest, dtype),
        DECISION: partial(decides_nothing, question),
    }
    return LoopWay(program, found.path, op, factor.expr, rest, 1, nests, provers)


def _sum_range(question: Question, found: _Sum, rest: Expr, dtype: str) -> Proof:
    """The sum without the factor stays a number."""
    trips = 1
    for loop in found.nest.loops:
        trips *= loop.extent if loop.index in found.over else 1
    power = sizes_of(question.program).power(rest, found.path)
    if power is None or power + (trips - 1).bit_length() >= _TOP[dtype]:
        return f"a sum of {expr_text(rest)} may leave the range of {dtype}"
    return (
        question.about("power_bound", rest, power),
        *(
            before_fact("loop_extent", found.path, loop.index, value=loop.extent)
            for loop in found.nest.loops
            if loop.index in found.over
        ),
        pair("headroom", dtype, value=HEADROOM[dtype]),
    )


def _one_type(question: Question, parts: tuple[Expr, ...], dtype: str) -> Proof:
    for expr in parts:
        found = typed_expr(expr, question.equation.target.dtype).dtype.name
        if found != dtype:
            return f"{expr_text(expr)} is computed in {found}, the sum in {dtype}"
    return (before_fact("expression_dtype", question.path, value=dtype),)


# -- into a sum ------------------------------------------------------------------------------


def into_sums(program: SignedProgram) -> Iterator[LoopWay]:
    """Every sum that only the next nest reads, to scale it."""
    nests = program.program.nests
    for after in range(1, len(nests)):
        scaling, before = single(nests[after]), single(nests[after - 1])
        if scaling is None or before is None or not is_product(scaling.value):
            continue
        name = before.target.name
        if name in program.signature.by_name or name not in flows(nests[after])[0].read:
            continue
        found = _sum_at(program, after - 1)
        if found is None:
            continue
        moved = _at_the_sum(found, nests[after], scaling)
        if moved is None or readers_of(program.program, name) != (found.path, (after, 0)):
            continue
        if len(writers_of(program.program, scaling.target.name)) != 1:
            continue
        way = _pushed(program, found, moved)
        if way is not None:
            yield way


def _at_the_sum(found: _Sum, nest: Nest, scaling: Equation) -> Equation | None:
    """The scaling equation in the indices of the sum, or None where it reads it elsewhere."""
    name = found.equation.target.name
    reads = [a for a in accesses_in(scaling.value) if a.name == name]
    if len(reads) != 1:
        return None
    by: dict[str, Expr] = {}
    extents = {loop.index: loop.extent for loop in nest.loops}
    for own, read in zip(found.equation.target.subscripts, reads[0].subscripts, strict=True):
        if isinstance(own, Index) and isinstance(read, Index) and read.name not in by:
            by[read.name] = own
        elif not (isinstance(own, Int) and own == read):
            return None
    if any(n > 1 and index not in by for index, n in extents.items()):
        return None
    if any(loop.start for loop in (*nest.loops, *found.nest.loops)):
        return None
    for index in extents:
        by.setdefault(index, Int(0))
    target = {loop.index: loop.extent for loop in found.nest.loops}
    if any(isinstance(e, Index) and target[e.name] != extents[i] for i, e in by.items()):
        return None
    return map_equation(scaling, lambda expr: substitute(expr, by))


def _pushed(program: SignedProgram, found: _Sum, scaling: Equation) -> LoopWay | None:
    total, target = found.equation.target, scaling.target
    value = scaling.value
    if (
        not isinstance(value, Binary)
        or value.op not in ("*", "/")
        or indices_in(target) & found.over
    ):
        return None
    if value.left == total:
        op, factor, first = value.op, value.right, False
    elif value.right == total and value.op == "*":
        op, factor, first = "*", value.left, True
    else:
        return None
    if any(a.name in (total.name, target.name) for a in accesses_in(factor)):
        return None
    rest = found.operand
    product = times(factor, rest) if first else Binary(op, rest, factor)
    update = Equation(target, Binary("+", target, product))
    nests = (Nest(found.nest.loops, (update,)),)
    question = Question(program, found.path, found.equation)
    decision = Question(program, (found.place + 1, 0), scaling)
    provers: dict[str, Callable[[], Proof]] = {
        TYPES: partial(_stored_types, question, target, (factor, rest), total.dtype),
        INFINITE: partial(_no_infinity, question, op, factor),
        RANGE: partial(_scaled_range, question, op, factor, rest, total.dtype),
        DECISION: partial(decides_nothing, decision),
    }
    return LoopWay(program, found.path, op, factor, rest, 2, nests, provers)


def _stored_types(
    question: Question, target: Access, parts: tuple[Expr, ...], wanted: str
) -> Proof:
    """What is stored has the type that the terms are added in, and so have they."""
    if target.dtype == wanted == DTYPES[wanted].evaluation.name:
        return _one_type(question, parts, wanted)
    return f"{target.name} is stored as {target.dtype}, its terms are added in {wanted}"


def _no_infinity(question: Question, op: str, factor: Expr) -> Proof:
    """A factor is no infinity. A divisor may be one, but not zero."""
    if op == "*":
        return proof_of(question, Need(INFINITE, "unmasked", (factor,)))
    return proof_of(question, Need(INFINITE, "nonzero", (factor,)))


def _scaled_range(question: Question, op: str, factor: Expr, rest: Expr, dtype: str) -> Proof:
    """Each term scaled stays a number: it is bounded, or the factor makes it no larger."""
    evaluation = DTYPES[dtype].evaluation.name
    sizes = sizes_of(question.program)
    known = sizes.of(factor, question.path)
    scale = known.magnitude if op == "*" else _reciprocal(known.least_magnitude)
    power = power_above(scale)
    # what makes no term larger needs no bound on the terms
    own = sizes.power(rest, question.path) if power is not None and power > 0 else None
    if power is None or (power > 0 and (own is None or own + power >= _TOP[evaluation])):
        return f"{expr_text(rest)} times {expr_text(factor)} may leave the range of {dtype}"
    claim = "finite" if op == "*" else "nonzero"
    fact = question.claim(factor, claim)
    facts: tuple[Fact, ...] = () if fact is None else (fact,)
    if op == "*":
        facts = (*facts, question.about("power_bound", factor, power))
    if power > 0 and own is not None:
        facts = (*facts, question.about("power_bound", rest, own))
    if not facts:
        return f"nothing is known about {expr_text(factor)}"
    return (*facts, pair("headroom", evaluation, value=HEADROOM[evaluation]))


def _reciprocal(magnitude: float) -> float:
    return 1.0 / magnitude if magnitude > 0.0 else float("inf")


@dataclass(frozen=True, slots=True)
class LoopLaw:
    """A law over loops: its name, its text for a factor and for a divisor, and what finds it."""

    name: str
    product: str
    quotient: str
    ways: Callable[[SignedProgram], Iterator[LoopWay]]

    def law_of(self, op: str) -> str:
        """The text of the law where ``a`` multiplies, or divides."""
        return self.quotient if op == "/" else self.product


OUT_OF_SUM = LoopLaw("out-of-sum", "sum(a*b) -> a*sum(b)", "sum(b/a) -> sum(b)/a", out_of_sums)
INTO_SUM = LoopLaw("into-sum", "a*sum(b) -> sum(a*b)", "sum(b)/a -> sum(b/a)", into_sums)
