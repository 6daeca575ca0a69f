"""Values that an equation could read besides those that it does: names of whole tensors."""

from collections.abc import Iterator

from steptp_dagster.leir.accesses import Statement, Use
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Expr, Index, Int, Loop
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.regions import covers, region
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Located


def readable(program: SignedProgram, one: Located) -> Iterator[Access]:
    """Elements of float tensors of earlier nests and of the data, at the indices of an equation.

    Each dimension of a tensor gets the first free loop, outermost first, that runs over the whole
    of it; one of a single element may get 0. Tensors come in the order of the signature, then of
    their first writes. All of these elements were written, whatever the data.
    """
    analysis = Analysis.of(program)
    shapes, writers = analysis.shapes, analysis.accesses.writers
    known = [v.name for v in program.signature.sources]
    made = [name for name in writers if name not in known]
    for name in (*known, *made):
        uses = analysis.accesses.by_tensor.get(name, [])
        if not uses or not DTYPES[uses[0].access.dtype].is_float or uses[0].access.scope != "g":
            continue
        if any(nest >= one.path[0] for nest in writers.get(name, ())):
            continue
        subscripts = _subscripts(shapes[name], one.loops)
        if subscripts is None:
            continue
        access = Access(name, uses[0].access.dtype, "g", subscripts)
        if name in known or _written(access, uses, one, analysis):
            yield access


def _written(access: Access, uses: list[Use], one: Located, analysis: Analysis) -> bool:
    """Whether one equation surely writes all elements that would be read."""
    statement: Statement = analysis.accesses.statement_at[one.path]
    convert = analysis.accesses.converter(one.path).form
    forms = tuple(form for form in map(convert, access.subscripts) if form is not None)
    reader = Use(statement, access, False, "value", statement.guard, forms, 0)
    for write in uses:
        if write.write and not write.opaque and not write.on_data:
            place = region(write, frozenset())
            if place is not None and covers(place, reader):
                return True
    return False


def _subscripts(shape: tuple[int, ...], loops: tuple[Loop, ...]) -> tuple[Expr, ...] | None:
    free = [loop for loop in loops if loop.start == 0]
    found: list[Expr] = []
    for extent in shape:
        at = next((i for i, loop in enumerate(free) if loop.extent == extent), None)
        if at is None and extent == 1:
            found.append(Int(0))
            continue
        if at is None:
            return None
        found.append(Index(free[at].index))
        free = free[at + 1 :]
    return tuple(found)
