"""What is known about the values of integer tensors, for indirect subscripts.

An index table that one unguarded statement defines as an affine function of its own subscripts is
replaced by that function (``A_{Q_{a}}`` with ``Q_{c}=c*2`` is ``A_{a*2}``). Of other tables an
interval is known: the signature's value range, the range of a constant's values, or the hull of
everything that the program writes to the tensor.
"""

from collections.abc import Iterable, Iterator

from steptp_dagster.leir.affine import (
    Bounds,
    Form,
    Interval,
    Opaque,
    is_large,
    is_opaque,
    names_in,
    substitute,
)
from steptp_dagster.leir.ast import Access, Equation, Index, Nest
from steptp_dagster.leir.conversion import Converter, integer_range
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.formulas import narrowed
from steptp_dagster.leir.signature import Signature, Variable

_Write = tuple[Bounds, Equation]
#: The indices of a table's definition, and the value over them.
Definition = tuple[tuple[str, ...], Form]
#: What is known of one integer tensor: its name, its definition, the interval of its values.
Table = tuple[str, Definition | None, Interval | None]


class KnownTables:
    """Reads of integer tensors of which a fixed list of facts is known."""

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self._known = {name: (definition, interval) for name, definition, interval in tables}

    def read(self, access: Access, converter: Converter) -> Form:
        """The value of an element as a form over the reading statement's indices."""
        return _read(access, converter, *self._known[access.name])


class Tables:
    """Values of integer tensors of one program, worked out when first asked for.

    Tables may be defined by one another, in a cycle too; they are worked out in the order of
    their first writes, so that the order of questions does not matter.
    """

    def __init__(self, signature: Signature, nests: Iterable[Nest]) -> None:
        """``nests`` holds at least those that write tensors that are accessed as integers."""
        self._signature = signature
        self._nests = nests
        self._written: dict[str, list[_Write]] | None = None
        self._definitions: dict[str, Definition | None] = {}
        self._intervals: dict[str, Interval | None] = {}

    def known(self, name: str) -> Table:
        """What is known of a tensor."""
        if self._written is None:
            self._written = {}
            for bounds, equation in _equations(self._nests):
                self._written.setdefault(equation.target.name, []).append((bounds, equation))
            for written in self._written:
                self._definition(written)
                self._interval(written)
        return name, self._definition(name), self._interval(name)

    def read(self, access: Access, converter: Converter) -> Form:
        """The value of an element as a form over the reading statement's indices."""
        return _read(access, converter, *self.known(access.name)[1:])

    def _within(self, access: Access, converter: Converter) -> Form:
        """As ``read``, while tables are being worked out."""
        definition = self._definition(access.name)
        return _read(access, converter, definition, self._interval(access.name))

    def _interval(self, name: str) -> Interval | None:
        if name not in self._intervals:
            self._intervals[name] = None  # a table that depends on itself stays unknown
            variable = self._signature.by_name.get(name)
            if variable is not None and variable.role != "output":
                self._intervals[name] = self._stated(variable)
            else:
                self._intervals[name] = self._hull(name)
        return self._intervals[name]

    def _stated(self, variable: Variable) -> Interval | None:
        """The interval that the signature gives for an input, parameter or constant."""
        known = self._signature.value_ranges.get(variable.name)
        if known is None or not DTYPES[variable.dtype].is_integer:
            return None
        return int(known[0]), int(known[1])

    def _hull(self, name: str) -> Interval | None:
        """The hull of all written values, None where some of them are not known."""
        writes = (self._written or {}).get(name, [])
        hull: Interval | None = None
        for bounds, equation in writes:
            converter = Converter(bounds, self._within)
            form = converter.form(equation.value)
            if form is None:
                return None
            taken = bounds
            if equation.guard is not None:
                taken = narrowed(bounds, converter.formula(equation.guard))
                if taken.empty:
                    continue
            low, high = taken.interval(form)
            hull = (low, high) if hull is None else (min(hull[0], low), max(hull[1], high))
        return hull

    def _definition(self, name: str) -> Definition | None:
        if name not in self._definitions:
            self._definitions[name] = None  # a table that is read to define itself has none
            self._definitions[name] = self._defining(name)
        return self._definitions[name]

    def _defining(self, name: str) -> Definition | None:
        writes = (self._written or {}).get(name, [])
        if len(writes) != 1 or name in {v.name for v in self._signature.sources}:
            return None
        bounds, equation = writes[0]
        names = tuple(s.name for s in equation.target.subscripts if isinstance(s, Index))
        if (
            equation.guard is not None
            or len(names) != len(equation.target.subscripts)
            or len(set(names)) != len(names)
            or not DTYPES[equation.target.dtype].is_integer
        ):
            return None
        form = Converter(bounds, self._within).form(equation.value)
        if form is None or is_opaque(form) or not names_in(form) <= set(names):
            return None
        low, high = bounds.interval(form)
        lowest, highest = integer_range(DTYPES[equation.target.dtype])
        return (names, form) if lowest <= low and high <= highest else None


def _read(
    access: Access,
    converter: Converter,
    definition: Definition | None,
    interval: Interval | None,
) -> Form:
    if definition is not None and len(definition[0]) == len(access.subscripts):
        names, value = definition
        forms = [converter.form(s) for s in access.subscripts]
        by = {n: f for n, f in zip(names, forms, strict=True) if f is not None}
        if len(by) == len(names):
            form = substitute(value, by, converter.bounds)
            if not is_large(form):
                return form
    lowest, highest = integer_range(DTYPES[access.dtype])
    if interval is not None and lowest <= interval[0] and interval[1] <= highest:
        lowest, highest = interval
    return Form(0, ((Opaque(repr(access), lowest, highest), 1),))


def _equations(nests: Iterable[Nest]) -> Iterator[_Write]:
    for nest in nests:
        yield from _equations_in(nest, {})


def _equations_in(nest: Nest, box: dict[str, Interval]) -> Iterator[_Write]:
    own = dict(box)
    for loop in nest.loops:
        own[loop.index] = (loop.start, loop.start + loop.extent - 1)
    bounds = Bounds(own)
    for child in nest.body:
        if isinstance(child, Nest):
            yield from _equations_in(child, own)
        else:
            yield bounds, child
