"""Branches of a candidate that no data took: of what they compute, nothing is known.

A program may be right on all the data it is run on and wrong where a condition of its own holds: on
one value, on one sum. So each comparison of data that the original does not make must come out both
ways on some data, and each ``max`` or ``min`` with a number that the original does not have must
pick either side, unless it chooses between the same two values, written differently (``x**0.5``
for ``sqrt(x)``): the original leaves that side untaken too. A test for infinity (``infinities``)
may stand where an outer one has ruled infinity out: there it counts how the test comes out wherever
the indices let it be made. That an intermediate is never infinite is no objection to a test for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Nest,
    Program,
    Real,
    Statement,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import (
    accesses_in,
    children,
    equations,
    expressions,
    fresh_tensors,
    tensor_names,
    with_children,
)
from steptp_dagster.verify.compare import Array
from steptp_dagster.verify.engine import Engine
from steptp_dagster.verify.infinities import Infinities, inside, tested, tests_infinity
from steptp_dagster.verify.rewritten import is_rewritten

_YES, _NO = Int(1), Int(0)
_EXTREMA: Final = ("max", "min")


@dataclass(frozen=True, slots=True)
class _Question:
    """A condition, in the equation with this number, and its node there.

    ``infinity``: it is a test for infinity; ``about_infinity``: it is one, or joins some by ``&``
    and ``|``. Tests of what is infinite for the candidate's own reasons are like any condition.
    """

    equation: int
    node: Expr
    condition: Expr
    infinity: bool
    about_infinity: bool


def own_questions(original: SignedProgram, candidate: SignedProgram) -> list[_Question]:
    """The conditions on data that only the candidate has, in text order."""
    known, numbers = _asked(original)
    data = _data(candidate)
    infinities: Infinities | None = None
    found = []
    for i, equation in enumerate(_equations(candidate)):
        for node in dict.fromkeys(_nodes(equation)):
            condition = _condition(node, numbers, data)
            if condition is None or _skeleton(node, equation) in known:
                continue
            if any(_written_differently(node, old) for old in _choices(original)):
                continue
            tests = [part for part in _parts(condition) if tests_infinity(part)]
            if tests:
                infinities = infinities or Infinities.of(original, candidate)
            plain = infinities is not None and all(map(infinities.come_from_data, tests))
            about = plain and bool(tests)
            found.append(_Question(i, node, condition, about and tests_infinity(condition), about))
    return found


@per_program
def _asked(original: SignedProgram) -> tuple[frozenset[Expr | None], frozenset[float | None]]:
    """The skeletons of all conditions of a program, and its numbers."""
    nodes = [(node, e) for e in _equations(original) for node in _nodes(e)]
    skeletons = frozenset(_skeleton(node, e) for node, e in nodes)
    return skeletons, frozenset(_number(node) for node, _ in nodes) - {None}


@per_program
def _choices(original: SignedProgram) -> tuple[Call, ...]:
    """Every ``max`` and ``min`` of a program."""
    found = (node for e in _equations(original) for node in _nodes(e))
    return tuple(node for node in found if isinstance(node, Call) and node.function in _EXTREMA)


def _written_differently(node: Expr, old: Call) -> bool:
    """Whether a ``max`` or ``min`` chooses between the same two values as one of the original's."""
    if not isinstance(node, Call) or node.function != old.function:
        return False
    return all(map(is_rewritten, node.arguments, old.arguments))


@per_program
def _data(signed: SignedProgram) -> frozenset[str]:
    """Names of tensors that hold data: floats, and integers that come from inputs or from floats.

    Tables of indices hold none.
    """
    given = (v for v in signed.signature.sources if v.role != "const" or DTYPES[v.dtype].is_float)
    found = frozenset(v.name for v in given)
    while True:
        more = found | {
            equation.target.name
            for equation in _equations(signed)
            if DTYPES[equation.target.dtype].is_float
            or any(a.name in found for e in expressions(equation) for a in accesses_in(e))
        }
        if more == found:
            return found
        found = more


def untaken(
    original: SignedProgram,
    candidate: SignedProgram,
    working: Iterable[Mapping[str, Array]],
    doubles: Iterable[Mapping[str, Array]],
    engine: Engine,
) -> str | None:
    """The first condition of the candidate alone that came out one way only, in words; or None.

    ``working`` and ``doubles`` are all data that it was run on, by precision. ``engine`` must run
    blocks and threads one after the other: all of them answer into the same places. Raises what
    compiling and running raise.
    """
    questions = own_questions(original, candidate)
    if not questions:
        return None
    asked, names = _with_answers(candidate, questions)
    seen = dict.fromkeys(names, False)
    # Infinite data takes branches that no number takes, and many results look alike there.
    about_infinity = [
        name
        for question, pair in zip(questions, zip(names[::2], names[1::2], strict=True), strict=True)
        if question.about_infinity
        for name in pair
    ]
    for precision, data in (("working", working), ("float64", doubles)):
        runner = engine.compile([asked], "float64" if precision == "float64" else "working")[0]
        for sample in data:
            answers = runner.run(dict(sample))
            counted = about_infinity if _has_infinity(sample) else names
            for name in counted:
                seen[name] = seen[name] or bool(np.any(answers[name] == 1))
            if all(seen.values()):
                return None
    signature = candidate.signature
    for question, (true, false) in zip(
        questions, zip(names[::2], names[1::2], strict=True), strict=True
    ):
        for name, way in ((true, "true"), (false, "false")):
            if not seen[name] and not _is_precaution(question, way, signature):
                return f"{expr_text(question.condition)} is never {way} on any data"
    return None


def _is_precaution(question: _Question, way: str, signature: Signature) -> bool:
    """Whether a condition is that something of intermediates is infinite, which no data made it.

    Streaming steps test scores and running maxima before they take a difference; whether those can
    be infinite hangs on what made them. Of inputs it is known, and data with infinities is there.
    """
    about = tested(question.condition) if question.infinity else None
    if about is None or way != about[1]:
        return False
    return not {v.name for v in signature.sources} & {a.name for a in accesses_in(about[0])}


def _has_infinity(sample: Mapping[str, Array]) -> bool:
    return any(v.dtype.kind not in "iub" and bool(np.isinf(v).any()) for v in sample.values())


def _with_answers(
    candidate: SignedProgram, questions: list[_Question]
) -> tuple[SignedProgram, list[str]]:
    """The candidate that also tells, for each question, whether it was ever true and ever false."""
    used = {*candidate.signature.by_name, *tensor_names(candidate.program)}
    fresh = fresh_tensors(used)
    names = [next(fresh) for _ in range(2 * len(questions))]
    before: dict[int, list[Equation]] = {}
    for k, question in enumerate(questions):
        for name, yes, no in ((names[2 * k], _YES, _NO), (names[2 * k + 1], _NO, _YES)):
            answer = Access(name, "i32", "g", (_NO,))
            marker = Call("if_then_else", (question.condition, yes, no))
            before.setdefault(question.equation, []).append(
                Equation(answer, Call("max", (answer, marker)))
            )
    count = iter(range(len(list(equations(candidate.program)))))

    def visited(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Nest):
            body = tuple(new for s in statement.body for new in visited(s))
            # Iterations that run at the same time would answer into the same places.
            loops = tuple(
                loop if loop.kind == "B" else replace(loop, kind="L") for loop in statement.loops
            )
            return (replace(statement, loops=loops, body=body),)
        number = next(count)
        asked: list[Equation] = []
        data = _data(candidate)
        for question, equation in zip(
            _twice(q for q in questions if q.equation == number),
            before.get(number, ()),
            strict=True,
        ):
            asked += _placed(statement, question, equation, data)
        return (*asked, statement)

    nests = [new for nest in candidate.program.nests for new in visited(nest)]
    variables = tuple(Variable("output", name, "i32", (1,)) for name in names)
    program = Program(tuple(n for n in nests if isinstance(n, Nest)))
    return SignedProgram(program, Signature((*candidate.signature.variables, *variables))), names


def _placed(
    statement: Equation, question: _Question, answer: Equation, data: frozenset[str]
) -> Iterator[Equation]:
    """The answer where the statement asks: under its guard, and in the branches around the node."""
    marker = answer.value
    if not isinstance(marker, Call):
        raise TypeError("an answer is a maximum")
    asked = marker.arguments[1]
    free = data if question.infinity else frozenset()
    if statement.guard is not None:
        for path in contexts(statement.guard, question.node, asked, free):
            yield replace(answer, value=replace(marker, arguments=(answer.target, path)))
    for path in contexts(statement.value, question.node, asked, free):
        value = replace(marker, arguments=(answer.target, path))
        yield replace(answer, value=value, guard=statement.guard)


def contexts(
    root: Expr, node: Expr, asked: Expr, free: frozenset[str], otherwise: Expr = _NO
) -> Iterator[Expr]:
    """``asked`` wherever ``node`` stands below ``root``; ``otherwise`` where nothing gets there.

    Conditions around the node that read tensors of ``free`` do not count, but where they say that
    something is infinite: what stands there has been ruled out by none.
    """
    if root == node:
        yield asked
        return
    if isinstance(root, Call) and root.function == "if_then_else":
        condition, yes, no = root.arguments
        # what mixes both may keep subscripts in range
        by_index = any(isinstance(n, Index) for n in inside(condition))
        counts = by_index or not _reads(condition, free)
        infinite = {about[1] for part in _parts(condition) if (about := tested(part)) is not None}
        yield from contexts(condition, node, asked, free, otherwise)
        for inner in contexts(yes, node, asked, free, otherwise):
            kept = counts or "true" in infinite
            yield replace(root, arguments=(condition, inner, otherwise)) if kept else inner
        for inner in contexts(no, node, asked, free, otherwise):
            kept = counts or "false" in infinite
            yield replace(root, arguments=(condition, otherwise, inner)) if kept else inner
        return
    if isinstance(root, Access):
        return
    for child in children(root):
        yield from contexts(child, node, asked, free, otherwise)


def _parts(condition: Expr) -> Iterator[Expr]:
    """What a condition joins by ``&`` and ``|``, each of which is a question of its own too."""
    if isinstance(condition, Binary) and condition.op in ("&", "|"):
        yield from _parts(condition.left)
        yield from _parts(condition.right)
    else:
        yield condition


def _reads(expr: Expr, names: frozenset[str]) -> bool:
    return any(access.name in names for access in accesses_in(expr))


def _condition(node: Expr, numbers: frozenset[float | None], data: frozenset[str]) -> Expr | None:
    """The question that a node asks of data; of ``max`` and ``min`` only those with new numbers."""
    if not _reads(node, data):
        return None
    match node:
        case Compare() | Binary(op="&" | "|"):
            return node
        case Call(function="max" | "min", arguments=(left, right)):
            if not {*_numbers_of_values(node)} <= numbers:
                return Compare((left, right), ("<",))
        case _:
            pass
    return None


def _skeleton(node: Expr, equation: Equation) -> Expr | None:
    """A condition, ``max`` or ``min`` with all tensors and indices alike; None of other nodes.

    Splitting or fusing a loop writes another expression wherever its index stood, subscripts
    included. So an expression of indices counts as an index where it is a subscript of the
    target or of what the condition reads. What else is made of indices stays as it is.
    """
    match node:
        case Compare() | Binary(op="&" | "|") | Call(function="max" | "min"):
            pass
        case _:
            return None
    read = (s for access in accesses_in(node) for s in access.subscripts)
    return _plain(node, frozenset((*equation.target.subscripts, *read)))


def _plain(expr: Expr, subscripts: frozenset[Expr]) -> Expr:
    if isinstance(expr, Access):
        return _ANY
    if isinstance(expr, Index) or (expr in subscripts and _of_indices(expr)):
        return _ANY_INDEX
    return with_children(expr, tuple(_plain(child, subscripts) for child in children(expr)))


def _of_indices(expr: Expr) -> bool:
    return not list(accesses_in(expr)) and any(isinstance(n, Index) for n in inside(expr))


_ANY: Final = Access("X", "f32", "g")
_ANY_INDEX: Final = Index("i")


def _numbers_of_values(expr: Expr) -> Iterator[float]:
    """The numbers of an expression, those of subscripts and of conditions on indices aside."""
    if isinstance(expr, Access) or (isinstance(expr, Compare) and not any(accesses_in(expr))):
        return
    if isinstance(expr, Int | Real):
        yield float(expr.value)
    for child in children(expr):
        yield from _numbers_of_values(child)


def _number(node: Expr) -> float | None:
    return float(node.value) if isinstance(node, Int | Real) else None


def _nodes(equation: Equation) -> Iterator[Expr]:
    for expr in expressions(equation)[1:]:
        yield from inside(expr)


def _equations(signed: SignedProgram) -> Iterator[Equation]:
    return (located.equation for located in equations(signed.program))


def _twice(questions: Iterable[_Question]) -> Iterator[_Question]:
    for question in questions:
        yield question
        yield question
