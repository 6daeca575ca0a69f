"""What is known about the values of integer tensors, for indirect subscripts.

An index table that one unguarded statement defines as an affine function of its own subscripts is
replaced by that function (``A_{Q_{a}}`` with ``Q_{c}=c*2`` is ``A_{a*2}``). Of other tables an
interval is known: the signature's value range, the range of a constant's values, or the hull of
everything that the program writes to the tensor.
"""

from collections.abc import Iterator

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
from steptp_dagster.leir.ast import Access, Equation, Index, Nest, Program
from steptp_dagster.leir.conversion import Converter, integer_range
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.formulas import narrowed
from steptp_dagster.leir.signature import SignedProgram, Variable

_Write = tuple[Bounds, Equation]


class Tables:
    """Values of integer tensors of one program, worked out when first asked for."""

    def __init__(self, signed: SignedProgram) -> None:
        self._signed = signed
        self._written: dict[str, list[_Write]] | None = None
        self._definitions: dict[str, tuple[tuple[str, ...], Form] | None] = {}
        self._intervals: dict[str, Interval | None] = {}

    def read(self, access: Access, converter: Converter) -> Form:
        """The value of an element as a form over the reading statement's indices."""
        definition = self._definition(access.name)
        if definition is not None and len(definition[0]) == len(access.subscripts):
            names, value = definition
            forms = [converter.form(s) for s in access.subscripts]
            by = {n: f for n, f in zip(names, forms, strict=True) if f is not None}
            if len(by) == len(names):
                form = substitute(value, by, converter.bounds)
                if not is_large(form):
                    return form
        return Form(0, ((Opaque(repr(access), *self.interval(access.name, access.dtype)), 1),))

    def interval(self, name: str, dtype: str) -> Interval:
        """An interval that holds all values of the tensor; at worst its type's range."""
        lowest, highest = integer_range(DTYPES[dtype])
        known = self._interval(name)
        if known is None:
            return lowest, highest
        return (
            (known[0], known[1])
            if lowest <= known[0] and known[1] <= highest
            else (
                lowest,
                highest,
            )
        )

    def _interval(self, name: str) -> Interval | None:
        if name not in self._intervals:
            self._intervals[name] = None  # a table that depends on itself stays unknown
            variable = self._signed.signature.by_name.get(name)
            if variable is not None and variable.role != "output":
                self._intervals[name] = _stated(variable)
            else:
                self._intervals[name] = self._hull(name)
        return self._intervals[name]

    def _hull(self, name: str) -> Interval | None:
        """The hull of all written values, None where some of them are not known."""
        writes = self._writes().get(name, [])
        hull: Interval | None = None
        for bounds, equation in writes:
            converter = Converter(bounds, self.read)
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

    def _definition(self, name: str) -> tuple[tuple[str, ...], Form] | None:
        if name not in self._definitions:
            self._definitions[name] = None  # a table that is read to define itself has none
            self._definitions[name] = self._defining(name)
        return self._definitions[name]

    def _defining(self, name: str) -> tuple[tuple[str, ...], Form] | None:
        writes = self._writes().get(name, [])
        if len(writes) != 1 or name in {v.name for v in self._signed.signature.sources}:
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
        form = Converter(bounds, self.read).form(equation.value)
        if form is None or is_opaque(form) or not names_in(form) <= set(names):
            return None
        low, high = bounds.interval(form)
        lowest, highest = integer_range(DTYPES[equation.target.dtype])
        return (names, form) if lowest <= low and high <= highest else None

    def _writes(self) -> dict[str, list[_Write]]:
        if self._written is None:
            self._written = {}
            for bounds, equation in _equations(self._signed.program):
                self._written.setdefault(equation.target.name, []).append((bounds, equation))
        return self._written


def _stated(variable: Variable) -> Interval | None:
    """The interval that the signature gives for an input, parameter or constant."""
    if not DTYPES[variable.dtype].is_integer:
        return None
    if variable.values:
        return int(min(variable.values)), int(max(variable.values))
    if variable.low is None or variable.high is None:
        return None
    return int(variable.low), int(variable.high)


def _equations(program: Program) -> Iterator[_Write]:
    for nest in program.nests:
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
