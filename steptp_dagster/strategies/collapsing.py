"""Two loops as one: what becomes of their indices in expressions.

With one loop ``k`` for ``outer`` (extent any, start 0) and ``inner`` (extent n, start s), the sum
``outer*n+inner`` is ``k``. In sums of indices both terms are looked for, with any common factor
(``outer*12+inner*4`` is ``k*4`` for n = 3); everywhere else ``outer`` is ``(k-s)//n`` and ``inner``
is ``(k-s)%n+s``.
"""

from dataclasses import dataclass, replace

from steptp_dagster.leir.ast import Binary, Compare, Equation, Expr, Index, Int, Statement, Unary
from steptp_dagster.leir.walk import children, iter_expr, map_equation, with_children
from steptp_dagster.strategies.rewrite import affine_sum


@dataclass(frozen=True, slots=True)
class Collapse:
    """The indices that go, the extent and start of the inner one, and the index that comes."""

    outer: str
    inner: str
    extent: int
    start: int
    index: str

    def in_statement(self, statement: Statement) -> Statement:
        """The statement in terms of the new index; loops stay."""
        if isinstance(statement, Equation):
            return map_equation(statement, self.in_expression)
        body = tuple(self.in_statement(inner) for inner in statement.body)
        return replace(statement, body=body)

    def in_expression(self, expr: Expr) -> Expr:
        """The expression in terms of the new index."""
        if isinstance(expr, Index):
            return self._alone(expr.name)
        if isinstance(expr, Binary) and expr.op in "+-" and _of_indices(expr):
            return self._in_sum(expr)
        return with_children(expr, tuple(self.in_expression(c) for c in children(expr)))

    def _alone(self, name: str) -> Expr:
        base = affine_sum(Index(self.index), -self.start)
        if name == self.outer:
            return Binary("//", base, Int(self.extent))
        if name == self.inner:
            return affine_sum(Binary("%", base, Int(self.extent)), self.start)
        return Index(name)

    def _in_sum(self, expr: Binary) -> Expr:
        terms = _terms(expr)
        place = self._pair(terms)
        if place is None:
            left, right = self.in_expression(expr.left), self.in_expression(expr.right)
            return Binary(expr.op, left, right)
        first, second, factor = place
        new = Index(self.index) if factor == 1 else Binary("*", Index(self.index), Int(factor))
        kept = min(first, second)
        result: Expr | None = None
        for i, (term, minus) in enumerate(terms):
            if i in (first, second) and i != kept:
                continue
            part: Expr = new if i == kept else self.in_expression(term)
            if result is None:
                result = Unary("-", part) if minus else part
            else:
                result = Binary("-" if minus else "+", result, part)
        return new if result is None else result

    def _pair(self, terms: list[tuple[Expr, bool]]) -> tuple[int, int, int] | None:
        """Places of the two terms that together are the new index, and its factor."""
        for i, (one, minus) in enumerate(terms):
            name, factor = _scaled(one)
            if name != self.outer or factor % self.extent:
                continue
            for j, (other, sign) in enumerate(terms):
                if sign == minus and _scaled(other) == (self.inner, factor // self.extent):
                    return i, j, factor // self.extent
        return None


def _of_indices(expr: Expr) -> bool:
    """Whether an expression is integer arithmetic on indices alone, which may be regrouped."""
    return all(
        isinstance(node, Index | Int)
        or (isinstance(node, Binary) and node.op in ("+", "-", "*", "//", "%"))
        for node in iter_expr(expr)
    )


def _terms(expr: Expr, minus: bool = False) -> list[tuple[Expr, bool]]:
    """The terms of a sum, each with whether it is subtracted."""
    match expr:
        case Binary(op="+", left=left, right=right):
            return _terms(left, minus) + _terms(right, minus)
        case Binary(op="-", left=left, right=right):
            return _terms(left, minus) + _terms(right, not minus)
    return [(expr, minus)]


def _scaled(expr: Expr) -> tuple[str, int]:
    """An index and its factor; an empty name for anything else."""
    match expr:
        case Index(name=name):
            return name, 1
        case Binary(op="*", left=Index(name=name), right=Int(value=factor)):
            return name, factor
        case Binary(op="*", left=Int(value=factor), right=Index(name=name)):
            return name, factor
    return "", 0


def guard_end(statement: Statement, index: str) -> int | None:
    """The bound n where the guard of every equation starts with ``index<n``; None otherwise."""
    if not isinstance(statement, Equation):
        ends = {guard_end(inner, index) for inner in statement.body}
        return ends.pop() if len(ends) == 1 else None
    match _split_guard(statement.guard)[0]:
        case Compare(operands=(Index(name=name), Int(value=end)), ops=("<",)) if name == index:
            return end
    return None


def without_guard_end(statement: Statement) -> Statement:
    """The statement without the first condition of the guard of each equation."""
    if isinstance(statement, Equation):
        return replace(statement, guard=_split_guard(statement.guard)[1])
    return replace(statement, body=tuple(without_guard_end(inner) for inner in statement.body))


def _split_guard(guard: Expr | None) -> tuple[Expr | None, Expr | None]:
    """The first of the conditions that a guard joins by ``&``, and the rest."""
    if isinstance(guard, Binary) and guard.op == "&":
        first, rest = _split_guard(guard.left)
        return first, guard.right if rest is None else Binary("&", rest, guard.right)
    return guard, None
