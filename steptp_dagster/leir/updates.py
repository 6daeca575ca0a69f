"""What an equation does to its target: assignment, pure update or recurrence; first touch.

A *pure update* reads its target once, at the subscript that it writes, and a chain of one operator
leads to that read: ``X+e``, ``e+X``, ``X+a+b``, ``X-e``, ``X*e``, ``max(e,X)``. If nothing was
written before it, it starts from the operator's identity; if everything was, it continues. Any
other equation that reads its own target is a *recurrence* and never starts implicitly.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from steptp_dagster.leir import sets
from steptp_dagster.leir.accesses import Accesses, Statement, Use, common_loops
from steptp_dagster.leir.affine import Form, Opaque, names_in
from steptp_dagster.leir.apart import proved_apart
from steptp_dagster.leir.ast import Access, Binary, Call, Equation, Expr, Unary
from steptp_dagster.leir.regions import box_of, boxes_cover, covers, region
from steptp_dagster.leir.sets import Relation
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.uses import NestUses
from steptp_dagster.leir.walk import Path, accesses_in, expressions, indices_in

Operator = Literal["+", "*", "max", "min"]
Init = Literal["identity", "continue", "ambiguous"]


@dataclass(frozen=True, slots=True)
class Update:
    """What one equation does to its target.

    For a pure update (``kind == "update"``): ``op`` and ``operand`` say that the equation means
    ``X op operand`` (``X - operand`` where ``subtract``), up to the order in which a chain is
    evaluated; ``init`` is how it starts. ``ambiguous`` means that some elements may have been
    written before and some not: an error, proved where ``decided``.

    ``reduction_loops`` are the enclosing loops of more than one iteration, outermost first, that
    the target's subscript (with the launch, block and thread of an ``l`` or ``s`` tensor) does not
    use. ``repeating_loops`` also contains loops that the subscript uses but whose iterations come
    back to an element, such as ``a`` in ``X_{a//2}``. An implicit start takes place in front of
    the outermost repeating loop: after the first ``init_depth`` enclosing loops, over those inner
    loops that the subscript or the guard uses.
    """

    kind: Literal["assignment", "update", "recurrence"]
    op: Operator | None = None
    operand: Expr | None = None
    subtract: bool = False
    init: Init | None = None
    decided: bool = True
    reduction_loops: tuple[str, ...] = ()
    repeating_loops: tuple[str, ...] = ()
    init_depth: int = 0


@dataclass(frozen=True, slots=True)
class PureForm:
    """A pure update read off the syntax: ``X op operand``, or ``X - operand``."""

    op: Operator
    operand: Expr
    subtract: bool


def classify(signed: SignedProgram) -> Mapping[Path, Update]:
    """What every equation does to its target, by path. Never raises, even on invalid programs."""
    from steptp_dagster.leir.analysis import Analysis

    return Analysis.of(signed).updates


class Updates(Mapping[Path, Update]):
    """What every equation of a program does to its target, worked out one by one."""

    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses
        self._known: dict[Path, Update] = {}
        self._starts: dict[Path, tuple[Init, bool]] = {}

    def __getitem__(self, path: Path) -> Update:
        known = self._known.get(path)
        if known is None:
            if not path or path[0] not in range(len(self._accesses.known)):
                raise KeyError(path)
            uses = self._accesses.part(path[0]).by_statement[path]
            known = self._known[path] = self.of(uses[0].statement)
        return known

    def __iter__(self) -> Iterator[Path]:
        return iter(self._accesses.statement_at)

    def __len__(self) -> int:
        return len(self._accesses.statement_at)

    def of(self, statement: Statement) -> Update:
        """What the equation of a statement does."""
        path = statement.path
        known = self._known.get(path)
        if known is None:
            own = own_update(self._accesses.part(path[0]), statement)
            if own.kind == "update":
                init, decided = self.start(statement)
                own = replace(own, init=init, decided=decided)
            known = self._known[path] = own
        return known

    def is_pure(self, statement: Statement) -> bool:
        """Whether the equation of a statement is a pure update."""
        return own_form(self._accesses.part(statement.path[0]), statement) is not None

    def start(self, statement: Statement) -> tuple[Init, bool]:
        """How the pure update of a statement starts, and whether that is proved."""
        path = statement.path
        known = self._starts.get(path)
        if known is None:
            target = self._accesses.part(path[0]).by_statement[path][0]
            known = self._starts[path] = first_touch(self._accesses, target)
        return known


def pure_form(equation: Equation) -> PureForm | None:
    """The pure update that an equation is by its syntax, or None."""
    target = equation.target
    own = [
        access
        for expr in (*target.subscripts, *expressions(equation)[1:])
        for access in accesses_in(expr)
        if access.name == target.name
    ]
    return _pure_form(equation) if len(own) == 1 else None


def _pure_form(equation: Equation) -> PureForm | None:
    """As ``pure_form``, for an equation that reads its target's tensor once."""
    target = equation.target
    match equation.value:
        case Binary(op="+" | "-"):
            op: Operator = "+"
        case Binary(op="*"):
            op = "*"
        case Call(function="max"):
            op = "max"
        case Call(function="min"):
            op = "min"
        case _:
            return None
    parts: list[tuple[Expr, bool]] = []
    if not _peel(equation.value, target, op, parts) or not parts:
        return None
    parts.reverse()
    if all(minus for _, minus in parts):
        return PureForm(op, _joined(op, [(e, False) for e, _ in parts]), subtract=True)
    return PureForm(op, _joined(op, parts), subtract=False)


def _peel(value: Expr, target: Access, op: Operator, parts: list[tuple[Expr, bool]]) -> bool:
    """Collect the operands beside the path to the target, outermost first; False if none leads."""
    while not (isinstance(value, Access) and value.name == target.name):
        match value:
            case Binary(op="-", left=left, right=right) if op == "+":
                parts.append((right, True))
                value = left
                continue
            case Binary(op=found, left=left, right=right) if found == op:
                pass
            case Call(function=found, arguments=(left, right)) if found == op:
                pass
            case _:
                return False
        inner, beside = (left, right) if _reads(left, target.name) else (right, left)
        parts.append((beside, False))
        value = inner
    return True


def _reads(expr: Expr, name: str) -> bool:
    return any(a.name == name for a in accesses_in(expr))


def _joined(op: Operator, parts: Sequence[tuple[Expr, bool]]) -> Expr:
    first, minus = parts[0]
    result: Expr = Unary("-", first) if minus else first
    for part, minus in parts[1:]:
        if op in ("max", "min"):
            result = Call(op, (result, part))
        else:
            result = Binary("-" if minus else op, result, part)
    return result


def own_update(part: NestUses, statement: Statement) -> Update:
    """What an equation does, as far as its nest tells: ``init`` is left open."""
    known = part.own_updates.get(statement.path)
    if known is None:
        known = part.own_updates[statement.path] = _classified(part, statement)
    return known


def own_form(part: NestUses, statement: Statement) -> PureForm | None:
    """The pure update that an equation is, None for assignments and recurrences."""
    path = statement.path
    if path not in part.own_forms:
        target, *reads = part.by_statement[path]
        own = [r for r in reads if r.tensor == target.tensor]
        pure = None
        if len(own) == 1 and own[0].role == "value" and own[0].forms == target.forms:
            pure = _pure_form(statement.equation)
        part.own_forms[path] = pure
    return part.own_forms[path]


def _classified(part: NestUses, statement: Statement) -> Update:
    target, *reads = part.by_statement[statement.path]
    own = [r for r in reads if r.tensor == target.tensor]
    used = frozenset(n for form in target.forms[: target.private] for n in names_in(form))
    # by the text: in ``X_{a//8}`` the subscript uses ``a`` also where ``a`` stays below 8
    used = used.union(*(indices_in(s) for s in target.access.subscripts))
    # a loop that runs once comes back to nothing
    unused = tuple(r.name for r in statement.chain if r.name not in used and r.loop.extent > 1)
    if not own:
        return Update("assignment", reduction_loops=unused)
    pure = own_form(part, statement)
    if pure is None:
        return Update("recurrence", reduction_loops=unused)
    repeating = tuple(
        ref.name
        for k, ref in enumerate(statement.chain)
        if ref.name in unused or not _returns_never(target, k)
    )
    names = [ref.name for ref in statement.chain]
    depth = min((names.index(n) for n in repeating), default=len(names))
    return Update(
        "update",
        pure.op,
        pure.operand,
        pure.subtract,
        reduction_loops=unused,
        repeating_loops=repeating,
        init_depth=depth,
    )


def _returns_never(target: Use, k: int) -> bool:
    """Whether iterations of the k-th loop surely write different elements (outer loops equal)."""
    loops = target.chain
    relations: list[Relation] = [(r.name, r.name, "=") for r in loops[:k]]
    relations.append((loops[k].name, loops[k].name, "!="))
    relations += [(r.name, r.name, "*") for r in loops[k + 1 :]]
    if proved_apart(target, target, relations):
        return True
    return not target.opaque and sets.overlap(target, target, relations) is False


def first_touch(accesses: Accesses, target: Use) -> tuple[Init, bool]:
    """How a pure update starts, and whether that is proved: who writes its elements before it?"""
    variable = accesses.signed.signature.by_name.get(target.tensor)
    if variable is not None and variable.role != "output":
        return "continue", True  # an error of its own: inputs are not written
    writes = accesses.writes_until(target.tensor, target.statement.path[0])
    others = [w for w in writes if w.statement is not target.statement]
    before = [w for w in others if not _never_before(w, target)]
    if not before:
        return "identity", True
    continues = written_before(target, before)
    if continues:
        return "continue", True
    if any(w.opaque or w.on_data or len(w.forms) != len(target.forms) for w in (*before, target)):
        return "ambiguous", False
    started = sets.written_before_first_touch(target, before)
    if started is False:
        return "identity", True
    return "ambiguous", started is True and continues is False


def _never_before(write: Use, target: Use) -> bool:
    """Whether a write surely never reaches an element before ``target`` does."""
    n = common_loops(write.chain, target.chain)
    if write.statement.order > target.statement.order and n == 0:
        return True
    if len(write.forms) != len(target.forms):
        return False
    names = [ref.name for ref in target.chain[:n]]
    if write.statement.order > target.statement.order:
        # only earlier iterations of a common loop come before
        return all(
            proved_apart(
                write,
                target,
                [(m, m, "=") for m in names[:k]]
                + [(names[k], names[k], "<")]
                + [(m, m, "*") for m in names[k + 1 :]],
            )
            for k in range(n)
        )
    return proved_apart(write, target, [(m, m, "*") for m in names])


def written_before(reader: Use, writes: Sequence[Use]) -> bool | None:
    """Whether every element that ``reader`` touches is certainly written before.

    ``writes`` are the writes of the tensor that come into question. None: not known.
    """
    if reader.bounds.empty:
        return True
    certain = [w for w in writes if not w.opaque and not w.on_data]
    certain = [w for w in certain if len(w.forms) == len(reader.forms)]
    for write in reversed(certain):
        if write.statement.order < reader.statement.order:
            n = common_loops(write.chain, reader.chain)
            place = region(write, frozenset(ref.name for ref in reader.chain[:n]))
            if place is not None and covers(place, reader):
                return True
            if _mirrors(write, reader, n):
                return True
        if _written_some_iterations_ago(reader, write):
            return True
    if not certain:
        return None if writes else False
    if _written_together(reader, certain):
        return True
    answer = sets.all_written_before(reader, certain)
    if answer is False and (reader.opaque or reader.on_data or len(certain) < len(writes)):
        return None
    return answer


def _written_together(reader: Use, writes: Sequence[Use]) -> bool:
    """Whether boxes that earlier nests filled contain all that is read, as parts of a whole."""
    boxes = []
    for write in writes:
        earlier = write.statement.order < reader.statement.order
        if earlier and not common_loops(write.chain, reader.chain):
            place = region(write, frozenset())
            if place is not None and not place.needs and (box := box_of(place)) is not None:
                boxes.append(box)
    return boxes_cover(boxes, tuple(reader.bounds.interval(form) for form in reader.forms))


def _mirrors(write: Use, reader: Use, common: int) -> bool:
    """Whether an earlier write goes, in loops of its own, over the very coordinates of a reader.

    So it does where its forms are the reader's with other indices, which run at least as far.
    """
    if not write.always:
        return False
    names = {ref.name: ref.name for ref in reader.chain[:common]}
    for mine, other in zip(write.forms, reader.forms, strict=True):
        if not _renames(mine, other, names):
            return False
    box = write.bounds.box
    for name, other_name in names.items():
        low, high = reader.bounds.box[other_name]
        if low < box[name][0] or high > box[name][1]:
            return False
    return True


def _renames(mine: Form, other: Form, names: dict[str, str]) -> bool:
    """Whether renaming indices turns one form into the other; extends ``names`` on the way."""
    if mine.const != other.const or len(mine.terms) != len(other.terms):
        return False
    for (atom, k), (counterpart, factor) in zip(mine.terms, other.terms, strict=True):
        if k != factor:
            return False
        if isinstance(atom, str) or isinstance(counterpart, str):
            if not (isinstance(atom, str) and isinstance(counterpart, str)):
                return False
            if names.setdefault(atom, counterpart) != counterpart:
                return False
        elif (
            isinstance(atom, Opaque)
            or isinstance(counterpart, Opaque)
            or type(atom) is not type(counterpart)
            or atom.divisor != counterpart.divisor
            or not _renames(atom.inner, counterpart.inner, names)
        ):
            return False
    return True


def _written_some_iterations_ago(reader: Use, write: Use) -> bool:
    """Whether an earlier iteration of one common loop surely wrote what is read (``X_{c-1}``)."""
    n = common_loops(write.chain, reader.chain)
    if n < len(write.chain) or not write.always:
        return False
    for k in range(n):
        name = write.chain[k].name
        distance = 0
        for read, written in zip(reader.forms, write.forms, strict=True):
            factor = dict(written.terms).get(name)
            if factor is None or read.terms != written.terms:
                continue
            distance, rest = divmod(written.const - read.const, factor)
            if rest:
                return False
            break
        if distance < 1 or reader.bounds.box[name][0] - distance < write.chain[k].loop.start:
            continue
        if all(
            read.terms == written.terms
            and name not in names_in(Form(0, tuple(t for t in read.terms if t[0] != name)))
            and written.const - read.const == distance * dict(written.terms).get(name, 0)
            for read, written in zip(reader.forms, write.forms, strict=True)
        ):
            return True
    return False
