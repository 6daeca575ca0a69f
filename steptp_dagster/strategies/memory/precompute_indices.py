"""precompute_indices: look a compound subscript up in a table instead of computing it."""

from collections.abc import Iterator
from math import prod
from typing import Final

from steptp_dagster.leir.affine import is_opaque
from steptp_dagster.leir.analysis import Analysis
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
    Unary,
)
from steptp_dagster.leir.conversion import Converter
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    at,
    equations_in,
    expressions,
    fresh_indices,
    indices_in,
    iter_expr,
    substitute,
)
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation, Fact
from steptp_dagster.strategies.layouts import with_accesses
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import (
    equation_at,
    new_tensor_names,
    read_texts,
    write_texts,
)

#: Most entries of a table.
_MOST_ENTRIES: Final = 1 << 20
#: Threads of a block; a longer first loop is spread over blocks.
_MOST_THREADS: Final = 1024

#: Index -> its start and end, over all loops of a nest that have this name.
Ranges = dict[str, tuple[int, int]]


class PrecomputeIndices(Strategy):
    """Tabulate a compound subscript over its indices in an ``i64`` tensor, and read the table.

    The table is filled by a nest of its own in front of the nest that uses it, with one entry per
    combination of the indices; every subscript of the nest with this value, of reads and of
    writes, becomes a lookup. Lookups stay in range also where the subscript is used under a
    condition and would leave its tensor, since the table holds negative numbers as well.

    ``expression`` is the subscript as it stands in the nest.

        === example
        --- before
        # input A f32[2,4]
        # output D f32[2]
        B^{2}_{tx=0}L^{2}_{a=0}L^{3}_{c=0}[
          D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a+c};];
        --- site statement 1: expression=a+c
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[C^{i64,g}_{tx,a}=tx+a;];
        B^{2}_{tx=0}L^{2}_{a=0}L^{3}_{c=0}[
          D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,C^{i64,g}_{a,c}};];
        --- numerics exact
    """

    name = "precompute_indices"
    level = "memory"
    version = "1"
    summary = "Looks a compound subscript up in a table instead of computing it."
    preconditions = (
        "reads-a-tensor",
        "divisor-may-be-zero",
        "table-too-large",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every nest with each of its compound subscripts, by first occurrence."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for i in range(len(program.program.nests)):
            for found in self._nest(program, (i,)):
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _nest(self, program: SignedProgram, path: Path) -> Iterator[Site | Refusal]:
        for expr in _compound(program.program, path):
            text = expr_text(expr)
            problem = _objection(expr, _ranges(program, path))
            site = Site.of(self.name, path, expression=text)
            if problem is None:
                problem = fault(self.apply(program, site))
            yield site if problem is None else Refusal(self.name, path, *problem)

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Put the table in front of the nest and look the subscript up in it."""
        path, k = site.path, site.path[0]
        expr = _expression(program.program, site)
        name = new_tensor_names(program, 1)[0]
        names = _order(expr)
        lookup = Access(name, "i64", "g", tuple(Index(index) for index in names))

        converter_at = Analysis.of(program).accesses.converter

        def change(where: Path, node: Access) -> Access:
            converter = converter_at(where)
            looked_up = tuple(lookup if _same(s, expr, converter) else s for s in node.subscripts)
            return Access(node.name, node.dtype, node.scope, looked_up)

        nest = with_accesses(at(program.program, path), path, change)
        if not isinstance(nest, Nest):
            raise TypeError(f"the statement at {path} is an equation")
        ranges = _ranges(program, path)
        nests = program.program.nests
        made = (*nests[:k], _table(expr, name, names, ranges), nest, *nests[k + 1 :])
        return SignedProgram(Program(made), program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show the expression's indices and ranges, and the table."""
        path = site.path
        expr = _expression(before.program, site)
        name = new_tensor_names(before, 1)[0]
        ranges = _ranges(before, path)
        copy = (*path, 0)
        entries = prod(ranges[i][1] - ranges[i][0] for i in _order(expr))
        loops = tuple(x.index for x in _header(after.program, path))
        filled = equation_at(after.program, copy)
        table = (
            after_fact("value_text", copy, value=expr_text(filled.value)),
            after_fact("target_text", copy, value=expr_text(filled.target)),
        )
        return Explanation(
            state=_loops(before, path, expr),
            preconditions=(
                evidence("reads-a-tensor", after_fact("reads", copy, value=())),
                evidence("divisor-may-be-zero", table[0]),
                evidence(
                    "table-too-large",
                    after_fact("trip_count", copy, value=entries),
                    pair("at_most", entries, _MOST_ENTRIES, value=entries <= _MOST_ENTRIES),
                ),
            ),
            decision=(
                pair("new_tensors", value=(name,)),
                after_fact("shape_of", name, value=Analysis.of(after).shapes[name]),
                after_fact("loops_around", copy, value=loops),
            ),
            transition=transition(before, after),
            soundness_rule="tabulated-subscripts",
            soundness=(
                *table,
                after_fact("dtype_of", name, value="i64"),
                after_fact("writers_of", name, value=(copy,)),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )


def _compound(program: Program, path: Path) -> tuple[Expr, ...]:
    """Subscripts of a nest that compute something from at least one index, each once.

    Those inside other subscripts come after the access that holds them.
    """
    found: dict[Expr, None] = {}
    for one in equations_in(at(program, path), path):
        for expr in expressions(one.equation):
            for access in accesses_in(expr):
                for subscript in access.subscripts:
                    if isinstance(subscript, Binary | Unary) and indices_in(subscript):
                        found.setdefault(subscript)
    return tuple(found)


def _same(subscript: Expr, expr: Expr, converter: Converter) -> bool:
    """Whether a subscript is the expression, perhaps written otherwise (``c+4*a``, ``a*4+c``)."""
    if subscript == expr:
        return True
    if isinstance(subscript, Int) or indices_in(subscript) != indices_in(expr):
        return False
    if any(True for _ in accesses_in(subscript)):
        return False
    form = converter.form(subscript)
    return form is not None and not is_opaque(form) and form == converter.form(expr)


def _expression(program: Program, site: Site) -> Expr:
    for expr in _compound(program, site.path):
        if expr_text(expr) == site.text("expression"):
            return expr
    raise ValueError(f"no such site in this program: {site.describe()}")


def _objection(expr: Expr, ranges: Ranges) -> tuple[str, str] | None:
    text = expr_text(expr)
    if any(True for _ in accesses_in(expr)):
        return "reads-a-tensor", f"{text} depends on the values of a tensor"
    for node in iter_expr(expr):
        if isinstance(node, Binary) and node.op in ("//", "%"):
            divisor = node.right
            if not isinstance(divisor, Int) or divisor.value == 0:
                return "divisor-may-be-zero", f"the divisor in {text} is no literal above 0"
    entries = prod(ranges[i][1] - ranges[i][0] for i in _order(expr))
    if entries > _MOST_ENTRIES:
        return "table-too-large", f"the table of {text} would have {entries} entries"
    return None


def _order(expr: Expr) -> tuple[str, ...]:
    """The indices of an expression by first occurrence."""
    return tuple(dict.fromkeys(n.name for n in iter_expr(expr) if isinstance(n, Index)))


def _ranges(program: SignedProgram, path: Path) -> Ranges:
    """The range of each index of a nest, over all its loops of that name."""
    found: Ranges = {}
    for here, refs in Analysis.of(program).accesses.loops_of.items():
        if here[:1] != path[:1]:
            continue
        for ref in refs:
            start, end = ref.loop.start, ref.loop.start + ref.loop.extent
            low, high = found.get(ref.name, (start, end))
            found[ref.name] = (min(low, start), max(high, end))
    return found


def _table(expr: Expr, name: str, names: tuple[str, ...], ranges: Ranges) -> Nest:
    """The nest that fills the table; its first loop is bound to threads or, if long, to blocks."""
    fresh = fresh_indices(())
    loops: list[Loop] = []
    for i, index in enumerate(names):
        start, end = ranges[index]
        if i:
            loops.append(Loop("L", next(fresh), end - start, start))
        else:
            axis = "tx" if end - start <= _MOST_THREADS else "bx"
            loops.append(Loop("B", axis, end - start, start))
    here = tuple(Index(loop.index) for loop in loops)
    by: dict[str, Expr] = dict(zip(names, here, strict=True))
    return Nest(tuple(loops), (Equation(Access(name, "i64", "g", here), substitute(expr, by)),))


def _header(program: Program, path: Path) -> tuple[Loop, ...]:
    nest = at(program, path)
    return nest.loops if isinstance(nest, Nest) else ()


def _loops(program: SignedProgram, path: Path, expr: Expr) -> tuple[Fact, ...]:
    """The loops of the nest's own header that the expression uses, and where it stands."""
    names = set(_order(expr))
    own = tuple(
        before_fact("loop_extent", path, loop.index, value=loop.extent)
        for loop in _header(program.program, path)
        if loop.index in names
    )
    tensors = dict.fromkeys(
        access.name
        for one in equations_in(at(program.program, path), path)
        for each in expressions(one.equation)
        for access in accesses_in(each)
        if expr in access.subscripts
    )
    texts = tuple(
        before_fact(kind, path, tensor, value=found(at(program.program, path), tensor))
        for tensor in tensors
        for kind, found in (("read_texts", read_texts), ("write_texts", write_texts))
    )
    return (*own, *texts)
