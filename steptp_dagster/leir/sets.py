"""Exact answers by integer set theory (isl), for what the fast tests leave open.

A statement instance is a point: one variable per loop, and one for each opaque value that occurs.
Opaque values are free within their interval, which makes every set an over-approximation; callers
that need *certain* accesses leave out uses that are opaque or depend on data.

Every query runs under a limit of isl operations, so that its cost is bounded and its outcome does
not depend on the clock. A query over the limit has no answer (None).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Final

from steptp_dagster.leir.accesses import Use, common_loops
from steptp_dagster.leir.affine import FloorDiv, Form, Modulo, Opaque, leaves
from steptp_dagster.leir.formulas import (
    And,
    Formula,
    NonNegative,
    Or,
    Unknown,
    Zero,
    forms_in,
)

#: isl operations that one query may take: hard ones cost about 50 microseconds each, so a query
#: ends within seconds; queries about real programs take a few hundred.
MAX_OPERATIONS: Final = 100_000

_LOCK: Final = Lock()

#: (index of the first use, index of the second use, relation), e.g. ("a", "a", "<").
Relation = tuple[str, str, str]


@cache
def _isl() -> tuple[Any, Any]:
    """The isl module and our context; imported when first needed."""
    import islpy

    context = islpy.Context()
    return islpy, context


def _query(question: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401
    """Ask under the operation limit; None where isl gives up."""
    islpy, context = _isl()
    with _LOCK:  # one context, which counts the operations of one query at a time
        context.set_max_operations(MAX_OPERATIONS)
        context.reset_operations()
        try:
            return question(islpy, context)
        except islpy.Error:
            return None
        finally:
            context.set_max_operations(0)


@lru_cache(maxsize=8192)
def _has_points(text: str, limit: int) -> bool | None:
    """Whether a set is not empty; one text recurs in many programs and questions."""
    del limit  # a part of the key: the answer may be None because of it
    found = _query(lambda isl, ctx: not isl.Set(text, ctx).is_empty())
    return found if isinstance(found, bool) else None


@lru_cache(maxsize=8192)
def _left_over(whole: str, parts: tuple[str, ...], limit: int) -> bool | None:
    """Whether a set has points in none of the others, which are taken away one by one."""
    del limit

    def ask(isl: Any, ctx: Any) -> bool:  # noqa: ANN401
        left = isl.Set(whole, ctx)
        for part in parts:
            left = left.subtract(isl.Set(part, ctx))
            if left.is_empty():
                return False
        return not left.is_empty()

    found = _query(ask)
    return found if isinstance(found, bool) else None


@lru_cache(maxsize=8192)
def _largest(text: str, limit: int) -> int | None:
    """The largest value in a set of numbers; None also where it is empty."""
    del limit

    def ask(isl: Any, ctx: Any) -> int | None:  # noqa: ANN401
        values = isl.Set(text, ctx)
        return None if values.is_empty() else int(values.dim_max_val(0).to_python())

    found = _query(ask)
    return found if isinstance(found, int) else None


class Point:
    """The instances of one use as isl text. ``names`` maps indices to variables given elsewhere.

    Variables are numbered, so that questions that differ in names of indices are one question.
    """

    def __init__(self, use: Use, prefix: str, names: Mapping[str, str] | None = None) -> None:
        self.use = use
        self.prefix = prefix
        given = names or {}
        self.names = {r.name: given.get(r.name, f"{prefix}{n}") for n, r in enumerate(use.chain)}
        #: Variables that belong to this point alone.
        self.own = [self.names[r.name] for r in use.chain if r.name not in given]
        self._opaque: dict[str, str] = {}
        self.ranges = [
            f"{r.loop.start} <= {self.names[r.name]} < {r.loop.start + r.loop.extent}"
            for r in use.chain
        ]
        for form in (*use.forms, *forms_in(use.formula)):
            for leaf in leaves(form):
                if isinstance(leaf, Opaque):
                    self._declare(leaf)

    def _declare(self, value: Opaque) -> None:
        if value.key not in self._opaque:
            variable = f"{self.prefix}v{len(self._opaque)}"
            self._opaque[value.key] = variable
            self.own.append(variable)
            self.ranges.append(f"{value.low} <= {variable} <= {value.high}")

    def form(self, form: Form) -> str:
        """A form as isl text."""
        parts = [str(form.const)]
        for atom, k in form.terms:
            match atom:
                case str():
                    text = self.names[atom]
                case Opaque(key):
                    text = self._opaque[key]
                case FloorDiv(inner, divisor):
                    text = f"floor(({self.form(inner)})/{divisor})"
                case Modulo(inner, divisor):
                    text = f"(({self.form(inner)}) mod {divisor})"
            parts.append(f"{k}*{text}")
        parts.sort()
        return " + ".join(parts)

    def formula(self, formula: Formula) -> str:
        """A formula as isl text; what depends on values counts as true."""
        match formula:
            case NonNegative(form):
                return f"({self.form(form)} >= 0)"
            case Zero(form):
                return f"({self.form(form)} = 0)"
            case Unknown():
                return "(0 = 0)"
            case And(parts):
                return f"({' and '.join(self.formula(p) for p in parts)})" if parts else "(0 = 0)"
            case Or(parts):
                return f"({' or '.join(self.formula(p) for p in parts)})" if parts else "(1 = 0)"

    @property
    def domain(self) -> str:
        """The iterations in which the access happens."""
        return " and ".join((*self.ranges, self.formula(self.use.formula)))


def _same_place(first: Point, second: Point) -> str:
    pairs = zip(first.use.forms, second.use.forms, strict=True)
    texts = [f"{first.form(a)} = {second.form(b)}" for a, b in pairs]
    return " and ".join(texts) or "0 = 0"


def _relations(first: Point, second: Point, relations: Iterable[Relation]) -> str:
    symbols = {"=": "=", "<": "<", ">": ">", "!=": "!="}
    texts = [
        f"{first.names[a]} {symbols[how]} {second.names[b]}"
        for a, b, how in relations
        if how in symbols
    ]
    return " and ".join(texts) or "0 = 0"


def overlap(first: Use, second: Use, relations: Sequence[Relation]) -> bool | None:
    """Whether instances of two uses under ``relations`` may touch one element."""
    one = Point(first, "i_")
    shared = {b: one.names[a] for a, b, how in relations if how == "="}
    two = Point(second, "j_", shared)
    text = " and ".join(
        (one.domain, two.domain, _same_place(one, two), _relations(one, two, relations))
    )
    variables = ",".join((*one.own, *two.own))
    return _has_points(f"{{ [{variables}] : {text} }}", MAX_OPERATIONS)


def happens(use: Use) -> bool | None:
    """Whether the access happens in some iteration."""
    point = Point(use, "i_")
    text = f"{{ [{','.join(point.own)}] : {point.domain} }}"
    return _has_points(text, MAX_OPERATIONS)


def highest(use: Use, form: Form) -> int | None:
    """The largest value of a form over the iterations in which the access happens.

    None where it never happens or isl gives no answer.
    """
    point = Point(use, "i_")
    text = f"{{ [m_] : exists {','.join(point.own)} : m_ = {point.form(form)} and {point.domain} }}"
    return _largest(text, MAX_OPERATIONS)


def leaves_interval(use: Use, form: Form, low: int, high: int) -> bool | None:
    """Whether a form takes a value outside ``low .. high`` while the access happens."""
    point = Point(use, "i_")
    value = point.form(form)
    text = (
        f"{{ [{','.join(point.own)}] : {point.domain} and ({value} < {low} or {value} > {high}) }}"
    )
    return _has_points(text, MAX_OPERATIONS)


def _earlier(reader: Point, writer: Point, *, text_first: bool) -> str:
    """The condition, as isl text, that the writer's instance runs before the reader's.

    ``text_first``: the writer's statement stands before the reader's, so that it runs first where
    all common loops agree.
    """
    n = common_loops(reader.use.chain, writer.use.chain)
    names = [ref.name for ref in reader.use.chain[:n]]
    options = []
    for k, name in enumerate(names):
        same = [f"{writer.names[m]} = {reader.names[m]}" for m in names[:k]]
        options.append(" and ".join((*same, f"{writer.names[name]} < {reader.names[name]}")))
    if text_first:
        same = [f"{writer.names[m]} = {reader.names[m]}" for m in names]
        options.append(" and ".join(same) or "0 = 0")
    return " or ".join(f"({o})" for o in options) or "1 = 0"


def all_written_before(reader: Use, writers: Iterable[Use]) -> bool | None:
    """Whether every element that ``reader`` touches was written before by one of ``writers``.

    Writers must be certain: neither opaque nor dependent on data.
    """
    point = Point(reader, "i_")
    variables = ",".join(point.own)
    found = []
    for writer in writers:
        other = Point(writer, "j_")
        text_first = writer.statement.order < reader.statement.order
        conditions = (
            f"{other.domain} and {_same_place(point, other)} and "
            f"({_earlier(point, other, text_first=text_first)})"
        )
        some = f"{point.domain} and (exists {','.join(other.own)} : {conditions})"
        found.append(f"{{ [{variables}] : {some} }}")
    left = _left_over(f"{{ [{variables}] : {point.domain} }}", tuple(found), MAX_OPERATIONS)
    return None if left is None else not left


def written_before_first_touch(update: Use, others: Iterable[Use]) -> bool | None:
    """Whether some element is written by ``others`` before ``update`` first touches it."""

    def ask(isl: Any, ctx: Any) -> bool:  # noqa: ANN401
        for other in others:
            point, writer, again = Point(update, "i_"), Point(other, "j_"), Point(update, "k_")
            text_first = other.statement.order < update.statement.order
            variables = ",".join((*point.own, *writer.own))
            pair = (
                f"{point.domain} and {writer.domain} and {_same_place(point, writer)} and "
                f"({_earlier(point, writer, text_first=text_first)})"
            )
            touched = (
                f"exists {','.join(again.own)} : {again.domain} and "
                f"{_same_place(again, writer)} and "
                f"({_earlier(writer, again, text_first=not text_first)})"
            )
            pairs = isl.Set(f"{{ [{variables}] : {pair} }}", ctx)
            later = isl.Set(f"{{ [{variables}] : {writer.domain} and ({touched}) }}", ctx)
            if not pairs.subtract(later).is_empty():
                return True
        return False

    answer = _query(ask)
    return answer if isinstance(answer, bool) else None


def between_touches(update: Use, other: Use) -> bool | None:
    """Whether ``other`` may touch an element between two touches of it by ``update``."""
    first, middle, last = Point(update, "i_"), Point(other, "j_"), Point(update, "k_")
    text_first = update.statement.order < other.statement.order
    variables = ",".join((*first.own, *middle.own, *last.own))
    text = " and ".join(
        (
            first.domain,
            middle.domain,
            last.domain,
            _same_place(first, middle),
            _same_place(last, middle),
            f"({_earlier(middle, first, text_first=text_first)})",
            f"({_earlier(last, middle, text_first=not text_first)})",
        )
    )
    return _has_points(f"{{ [{variables}] : {text} }}", MAX_OPERATIONS)


def fills(writers: Iterable[Use], shape: Sequence[int]) -> bool | None:
    """Whether the (certain) writers together write every element of a tensor of this shape."""
    variables = [f"x_{d}" for d in range(len(shape))]
    whole = " and ".join(f"0 <= {v} < {n}" for v, n in zip(variables, shape, strict=True))
    names = ",".join(variables)
    texts = []
    for writer in writers:
        point = Point(writer, "i_")
        place = " and ".join(
            f"{v} = {point.form(f)}" for v, f in zip(variables, writer.forms, strict=True)
        )
        some = f"exists {','.join(point.own)} : {point.domain} and {place or '0 = 0'}"
        texts.append(f"{{ [{names}] : {some} }}")
    left = _left_over(f"{{ [{names}] : {whole or '0 = 0'} }}", tuple(texts), MAX_OPERATIONS)
    return None if left is None else not left
