"""Sources in other forms: honest inputs for strategies that find little in plain translations.

Rules of algebra need formulas in one piece (``inlined``); eliminations need programs that really
have dead or repeated code. Translations have neither: operators without effect get no nest, and
PyTorch merges equal calls. Code that people write has both: a statistic that was printed once, a
value computed where it is needed instead of handed over. An injector puts such code into a
translated program. The outputs do not change, the result is compared with PyTorch like any
translation, and the ``form`` of its source row says where it comes from; steps start from it as
from any other source. (Fission needs no injector: what ``operator_fusion`` leaves behind is its
honest input.)
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from steptp_dagster.dataset.inlined import inlined
from steptp_dagster.leir.ast import Access, Binary, Equation, Expr, Index, Int, Loop, Nest, Program
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import equations, fresh_indices, map_expr, map_statement
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import (
    new_tensor_names,
    read_texts,
    readers_of,
    writers_of,
)

Found = TypeVar("Found")

#: Longest dimension that one block of threads covers; longer tensors are summed serially.
_THREADS: Final = 1024


def with_dead_code(program: SignedProgram, seed: int) -> SignedProgram | None:
    """The program with two nests that no output depends on, or None.

    They look once more at a tensor that some nest completes: its energy (the squares, summed over
    the last dimension) or its mean. Which tensor and which of the two: by the seed.
    """
    shapes = infer_shapes(program)
    targets = {e.equation.target.name: e.equation.target for e in equations(program.program)}
    candidates: list[tuple[int, Access, bool]] = []
    for name, target in targets.items():
        writers = {path[0] for path in writers_of(program.program, name)}
        fits = target.scope == "g" and DTYPES[target.dtype].is_float and shapes.get(name)
        if fits and len(writers) == 1 and shapes[name][0] <= _THREADS:
            candidates += [(writers.copy().pop(), target, energy) for energy in (True, False)]

    def leftover(nest: int, target: Access, energy: bool) -> SignedProgram:
        return _inserted(program, nest + 1, _leftover(program, target, shapes[target.name], energy))

    return _first_legal(candidates, seed, lambda found: leftover(*found))


def with_repeated_code(program: SignedProgram, seed: int) -> SignedProgram | None:
    """The program with one nest computed a second time for one of its readers, or None.

    The nest writes one intermediate that at least two later nests read, and nothing that it reads
    is written after it, so the second computation gives the same values. Which nest and which
    reader: by the seed.
    """
    return _first_legal(list(_repeatable(program)), seed, lambda found: _repeated(program, *found))


#: Form of a source -> what makes it from the composed translation.
INJECTORS: Final[Mapping[str, Callable[[SignedProgram, int], SignedProgram | None]]] = {
    "inlined": inlined,
    "dead-code": with_dead_code,
    "repeated-code": with_repeated_code,
}


def _first_legal(
    candidates: Sequence[Found], seed: int, make: Callable[[Found], SignedProgram]
) -> SignedProgram | None:
    """The first legal result over the candidates, in an order that the seed decides."""
    results = map(make, random.Random(seed).sample(candidates, len(candidates)))
    return next((result for result in results if fault(result) is None), None)


def _inserted(program: SignedProgram, at: int, nests: Sequence[Nest]) -> SignedProgram:
    old = program.program.nests
    return SignedProgram(Program((*old[:at], *nests, *old[at:])), program.signature)


def _leftover(
    program: SignedProgram, target: Access, shape: tuple[int, ...], energy: bool
) -> tuple[Nest, Nest]:
    """Two nests: squares and their row sums, or row sums and the means."""
    first, second = new_tensor_names(program, 2)
    names = fresh_indices(())
    rows = shape[:-1] or (1,)
    loops = tuple(
        Loop("L" if i else "B", next(names) if i else "tx", extent)
        for i, extent in enumerate((*rows, shape[-1]))
    )
    row: tuple[Expr, ...] = tuple(Index(loop.index) for loop in loops[:-1])
    last = Index(loops[-1].index)
    element = (*row, last) if len(shape) > 1 else (last,)

    def access(name: str, subscripts: tuple[Expr, ...]) -> Access:
        return Access(name, target.dtype, "g", subscripts)

    def summed(name: str, of: Access) -> Nest:
        total = access(name, row)
        return Nest(loops, (Equation(total, Binary("+", total, of)),))

    own = access(target.name, element)
    if energy:
        square = access(first, element)
        return Nest(loops, (Equation(square, Binary("*", own, own)),)), summed(second, square)
    mean = Binary("/", access(first, row), Int(shape[-1]))
    return summed(first, own), Nest(loops[:-1], (Equation(access(second, row), mean),))


def _repeatable(program: SignedProgram) -> Iterator[tuple[int, str, int]]:
    """Nests that can be computed twice, with their tensor, and the reader that gets the second."""
    nests = program.program.nests
    targets = [tuple(dict.fromkeys(_written(nest))) for nest in nests]
    for number, written in enumerate(targets):
        if len(written) != 1 or written[0] in program.signature.by_name:
            continue
        name = written[0]
        if any(name in later for later in (*targets[:number], *targets[number + 1 :])):
            continue
        changed = {t for later in targets[number + 1 :] for t in later}
        if any(read_texts(nests[number], tensor) for tensor in changed):
            continue
        readers = sorted({path[0] for path in readers_of(program.program, name)} - {number})
        if len(readers) > 1:
            yield from ((number, name, reader) for reader in readers[1:])


def _written(nest: Nest) -> Iterator[str]:
    return (e.equation.target.name for e in equations(Program((nest,))))


def _repeated(program: SignedProgram, nest: int, name: str, reader: int) -> SignedProgram:
    """The nest once more in front of the reader, under a new name that only the reader uses."""
    (fresh,) = new_tensor_names(program, 1)

    def renamed(expr: Expr) -> Expr:
        if isinstance(expr, Access) and expr.name == name:
            return Access(fresh, expr.dtype, expr.scope, expr.subscripts)
        return expr

    def changed(number: int) -> Nest:
        statement = map_statement(program.program.nests[number], lambda e: map_expr(e, renamed))
        if not isinstance(statement, Nest):
            raise TypeError("a nest stays a nest")
        return statement

    old = program.program.nests
    nests = (*old[:reader], changed(nest), changed(reader), *old[reader + 1 :])
    return SignedProgram(Program(nests), program.signature)
