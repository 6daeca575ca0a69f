"""Operators without effect: results that are element for element what they were computed from."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from steptp_dagster.leir.ast import Access, Equation, Nest, Program
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.walk import accesses_in, equations, expressions
from steptp_dagster.lowering import compile_programs
from steptp_dagster.verify.compare import Array, same_values

#: What the operands of an operator may be anywhere: infinities too, which safe forms guard against.
#: Their number is prime, so that every pace through them meets all.
_VALUES: Final = (-np.inf, -300.0, -30.0, -3.0, -1.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 1.0, 3.0, np.inf)


def idle(original: SignedProgram, data: Iterable[Mapping[str, Array]]) -> Iterator[str]:
    """``no-effect:T=S`` where the tensor T repeats S on all ``data``, though it is no plain copy.

    T has one equation, which reads S at the same coordinates, as element-wise operators do and
    reductions over one element. Operators that have an effect on other data, such as a ReLU of
    results that happen to be positive, are not meant: whatever S is computed from is free, and T
    must still repeat S. Compared exactly, in float64. ``data`` are inputs by name.
    """
    pairs = list(_pairs(original))
    if not pairs:
        return
    observed = _observed(original, {name for pair in pairs for name in pair})
    runs = _runs(observed, [dict(arrays) for arrays in data])
    for target, source in pairs:
        if _repeats(runs, target, source) and _always(original, target, source):
            yield f"no-effect:{target}={source}"


def _runs(signed: SignedProgram, data: list[dict[str, Array]]) -> list[dict[str, Array]]:
    """Inputs and outputs by name, or nothing for a program that is not valid."""
    if check(signed):
        return []
    kernel = compile_programs([signed], "float64")[0]
    return [{**arrays, **kernel.run(arrays)} for arrays in data]


def _repeats(runs: list[dict[str, Array]], target: str, source: str) -> bool:
    return bool(runs) and all(same_values(run[target], run[source]) for run in runs)


def _pairs(original: SignedProgram) -> Iterator[tuple[str, str]]:
    shapes = infer_shapes(original)
    found = [located.equation for located in equations(original.program)]
    writes = Counter(equation.target.name for equation in found)
    for equation in found:
        target, value = equation.target, equation.value
        read = list(dict.fromkeys(accesses_in(value)))
        alone = writes[target.name] == 1 and target.name not in {a.name for a in read}
        if not alone or isinstance(value, Access) or not _observable(target):
            continue
        for source in read:
            same_place = source.subscripts == target.subscripts
            if same_place and _observable(source) and shapes[source.name] == shapes[target.name]:
                yield target.name, source.name


def _observable(access: Access) -> bool:
    return access.scope == "g" and DTYPES[access.dtype].is_float


def _observed(original: SignedProgram, names: set[str]) -> SignedProgram:
    """The program with its intermediates of these names as further outputs."""
    dtypes = _dtypes(original.program)
    shapes = infer_shapes(original)
    known = original.signature.by_name
    more = tuple(
        Variable("output", name, dtypes[name], shapes[name]) for name in sorted(names - set(known))
    )
    return SignedProgram(original.program, Signature((*original.signature.variables, *more)))


def _dtypes(program: Program) -> dict[str, str]:
    return {
        access.name: access.dtype
        for located in equations(program)
        for expr in (located.equation.target, *expressions(located.equation))
        for access in accesses_in(expr)
    }


def _always(original: SignedProgram, target: str, source: str) -> bool:
    """Whether T repeats S when everything that S's own operator reads is free."""
    writers = {e.target.name: nest for nest in original.program.nests if (e := _only(nest))}
    if target not in writers:
        return False
    nests = [writers[target]]
    above = writers.get(source)
    producer = above and _only(above)
    if above and producer and source not in {a.name for a in accesses_in(producer.value)}:
        nests.insert(0, above)
    part = Program(tuple(nests))
    written = {e.target.name for nest in nests if (e := _only(nest))}
    dtypes, shapes = _dtypes(part), infer_shapes(original)
    if any(not DTYPES[dtype].is_float for dtype in dtypes.values()):
        return False
    variables = [
        Variable("output" if name in written else "input", name, dtype, shapes[name])
        for name, dtype in sorted(dtypes.items())
    ]
    free = [v for v in variables if v.role == "input"]
    data = _everything({v.name: v.shape for v in free})
    with np.errstate(all="ignore"):
        return _repeats(
            _runs(SignedProgram(part, Signature(tuple(variables))), data), target, source
        )


def _everything(shapes: Mapping[str, tuple[int, ...]]) -> list[dict[str, Array]]:
    """Data sets over which every element of every tensor takes every one of ``_VALUES``."""
    rng = np.random.default_rng(0)
    count = len(_VALUES)
    starts = {name: rng.integers(count, size=shape) for name, shape in shapes.items()}
    # tensors step through the values at different paces, so that their elements meet in many ways
    paces = {name: 1 + i % (count - 1) for i, name in enumerate(shapes)}
    values = np.array(_VALUES)
    return [
        {name: values[(start + draw * paces[name]) % count] for name, start in starts.items()}
        for draw in range(count)
    ]


def _only(nest: Nest) -> Equation | None:
    """The equation of a nest that has just one."""
    statement = nest.body[0]
    return statement if len(nest.body) == 1 and isinstance(statement, Equation) else None
