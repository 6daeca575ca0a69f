"""Validity of elements: bounds, first touch, unwritten reads, coverage of outputs."""

from collections.abc import Iterator

from steptp_dagster.leir import sets
from steptp_dagster.leir.accesses import Accesses, Use, common_loops
from steptp_dagster.leir.affine import Form, form_text
from steptp_dagster.leir.conversion import integer_range
from steptp_dagster.leir.dependence import Answer, free, same, touch
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.formulas import Zero, conjunction
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.regions import box_of, boxes_cover, region
from steptp_dagster.leir.shapes import Shape
from steptp_dagster.leir.updates import Update, written_before
from steptp_dagster.leir.violation import Violation
from steptp_dagster.leir.walk import Path

_I64 = integer_range(DTYPES["i64"])


def check_elements(
    accesses: Accesses,
    shapes: dict[str, Shape],
    updates: dict[Path, Update],
    broken: frozenset[str],
) -> Iterator[Violation]:
    """All violations about elements of tensors that are not ``broken``."""
    sources = {v.name for v in accesses.signed.signature.sources}
    for use in accesses.uses:
        if use.tensor in broken or use.bounds.empty:
            continue
        outside = list(_bounds(use, shapes[use.tensor]))
        yield from outside
        if not use.write and use.tensor not in sources and not outside:
            yield from _unwritten(accesses, updates, use)
    for statement in accesses.statements:
        update = updates[statement.path]
        if update.kind == "update" and statement.equation.target.name not in broken | sources:
            yield from _start(accesses, update, accesses.by_statement[statement.path][0])
    for divisor in accesses.divisors:
        yield from _division(divisor)
    for variable in accesses.signed.signature.outputs:
        if variable.name not in broken:
            yield from _coverage(accesses, variable.name, variable.shape)


def _bounds(use: Use, shape: Shape) -> Iterator[Violation]:
    for d, (form, extent) in enumerate(zip(use.subscripts, shape, strict=True)):
        low, high = use.bounds.interval(form)
        if low >= 0 and high < extent:
            continue
        if (use.opaque and (low, high) == _I64) or _unbounded(form, low, high):
            outside = None
        else:
            outside = sets.leaves_interval(use, form, 0, extent - 1)
            if outside is False:
                continue
        where = f"subscript {d + 1} of {use.tensor}, {expr_text(use.access.subscripts[d])},"
        position = (use.statement.path, use.access.pos)
        required = f"0 .. {extent - 1}"
        if outside is None or use.on_data:
            yield Violation(
                "undecided",
                f"{where} could not be proved to stay in {required}",
                *position,
                f"values from {low} to {high}",
                required,
            )
        else:
            yield Violation(
                "out-of-bounds",
                f"{where} leaves {required}",
                *position,
                f"values from {low} to {high}",
                required,
            )


def _division(divisor: Use) -> Iterator[Violation]:
    """An integer division by an expression of indices that is 0 in some iteration."""
    (form,) = divisor.forms
    low, high = divisor.bounds.interval(form)
    if divisor.bounds.empty or low > 0 or high < 0:
        return
    formula = conjunction((divisor.formula, Zero(form)))
    zero = Use(divisor.statement, divisor.access, False, divisor.role, formula, (form,), 0)
    happens = sets.happens(zero)
    if happens is False:
        return
    yield Violation(
        "undecided" if happens is None or divisor.on_data else "integer-division-by-zero",
        f"an integer is divided by {form_text(form)}, which may be 0",
        divisor.statement.path,
        divisor.statement.equation.pos,
        f"values from {low} to {high}",
        "a divisor other than 0",
    )


def _unbounded(form: Form, low: int, high: int) -> bool:
    """Whether nothing better than a type's range is known of an indirect subscript."""
    ranges = [integer_range(d) for d in DTYPES.values() if d.is_integer]
    return (low, high) in ranges and not form.is_constant


def _unwritten(accesses: Accesses, updates: dict[Path, Update], use: Use) -> Iterator[Violation]:
    statement = use.statement
    own = statement.equation.target.name == use.tensor
    if own and updates[statement.path].kind == "update":
        return  # its first touch is checked instead
    answer = written_before(use, accesses.writes[use.tensor])
    if answer:
        return
    kind, doubt = ("unwritten-read", "") if answer is False else ("undecided", "perhaps ")
    yield Violation(
        kind,
        f"{use.tensor} is read where it has {doubt}not been written",
        statement.path,
        use.access.pos,
        f"{doubt}unwritten elements of {use.tensor}",
        "every element that is read was written before",
    )


def _start(accesses: Accesses, update: Update, target: Use) -> Iterator[Violation]:
    path, pos, name = target.statement.path, target.statement.equation.pos, target.tensor
    if update.init == "ambiguous":
        yield Violation(
            "mixed-first-touch" if update.decided else "undecided",
            f"some elements of {name} {'were' if update.decided else 'may have been'} written "
            "before this update and some not",
            path,
            pos,
            "elements with and without an earlier write",
            f"{name} wholly fresh, or initialised by an equation of its own",
        )
    if update.init == "continue" or not update.repeating_loops:
        return
    yield from _partial(accesses, update, target)


def _partial(accesses: Accesses, update: Update, target: Use) -> Iterator[Violation]:
    """Who else touches an implicitly started accumulator while it accumulates.

    Inside a reduction loop nobody may. Inside a loop that only comes back to elements
    (``X_{a//2}``), nobody may write between two touches.
    """
    names = [ref.name for ref in target.chain]
    depth = names.index(update.repeating_loops[0])
    reduces = min((names.index(n) for n in update.reduction_loops), default=len(names))
    for other in accesses.by_tensor[target.tensor]:
        common = common_loops(target.chain, other.chain)
        if other.statement is target.statement or common <= depth:
            continue
        answer, kind, start = Answer.NONE, "partial-value", reduces
        if common > reduces:
            answer = _touches(target, other, reduces)
        if answer is Answer.NONE and depth < reduces and other.write:
            kind, start = "mixed-first-touch", depth
            if _touches(target, other, depth) is not Answer.NONE:
                answer = _between(target, other)
        if answer is Answer.NONE:
            continue
        loop = names[start]
        yield Violation(
            kind if answer is Answer.DEPENDENCE else "undecided",
            f"{target.tensor} starts implicitly, and another equation touches it inside loop "
            f"{loop}, where its value is partial",
            other.statement.path,
            other.access.pos,
            f"{target.tensor} inside loop {loop}",
            f"an equation that initialises {target.tensor} before its update",
        )
        return


def _touches(target: Use, other: Use, depth: int) -> Answer:
    """Whether two uses touch one element, the first ``depth`` loops standing still."""
    common = common_loops(target.chain, other.chain)
    relations = [*same(target.chain[:depth]), *free(target.chain[depth:common])]
    return touch(target, other, relations)


def _between(target: Use, other: Use) -> Answer:
    """Whether ``other`` touches an element between two touches by ``target``."""
    found = sets.between_touches(target, other)
    if found is False:
        return Answer.NONE
    if found is None or any(u.opaque or u.on_data for u in (target, other)):
        return Answer.UNKNOWN
    return Answer.DEPENDENCE


def _coverage(accesses: Accesses, name: str, shape: Shape) -> Iterator[Violation]:
    writes = [w for w in accesses.writes.get(name, ()) if not w.bounds.empty]
    certain = [w for w in writes if not w.opaque and not w.on_data]
    whole = tuple((0, extent - 1) for extent in shape)
    regions = [region(w, frozenset()) for w in certain]
    boxes = [box for r in regions if r is not None and (box := box_of(r)) is not None]
    if boxes_cover(boxes, whole):
        return
    covered = sets.fills(certain, shape) if certain else False
    if covered:
        return
    known = covered is False and len(certain) == len(writes)
    last = writes[-1] if writes else None
    yield Violation(
        "output-not-covered" if known else "undecided",
        f"output {name} has elements that are {'never' if known else 'perhaps never'} written",
        last.statement.path if last else (),
        last.access.pos if last else -1,
        f"writes that leave out elements of {name}" if last else f"no write of {name}",
        f"every element of {name}{list(shape)} is written",
    )
