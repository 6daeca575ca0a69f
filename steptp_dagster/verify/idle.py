"""Operators without effect: results that are element for element what they were computed from."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from steptp_dagster.leir.ast import Access
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.walk import accesses_in, equations
from steptp_dagster.lowering import compile_programs
from steptp_dagster.verify.compare import Array, same_values


def idle(original: SignedProgram, data: Iterable[Mapping[str, Array]]) -> Iterator[str]:
    """``no-effect:T=S`` where the tensor T repeats S on all ``data``, though it is no plain copy.

    T has one equation, which reads S at the same coordinates, as element-wise operators do and
    reductions over one element. Compared exactly, in float64. ``data`` are inputs by name.
    """
    pairs = list(_pairs(original))
    if not pairs:
        return
    observed = _observed(original, {name for pair in pairs for name in pair})
    if check(observed):
        return
    kernel = compile_programs([observed], "float64")[0]
    runs = [{**arrays, **kernel.run(dict(arrays))} for arrays in data]
    for target, source in pairs:
        if runs and all(same_values(run[target], run[source]) for run in runs):
            yield f"no-effect:{target}={source}"


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
    shapes = infer_shapes(original)
    dtypes = {
        located.equation.target.name: located.equation.target.dtype
        for located in equations(original.program)
    }
    known = original.signature.by_name
    more = tuple(
        Variable("output", name, dtypes[name], shapes[name]) for name in sorted(names - set(known))
    )
    return SignedProgram(original.program, Signature((*original.signature.variables, *more)))
