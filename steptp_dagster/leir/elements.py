"""Validity of elements: bounds, first touch, unwritten reads, coverage of outputs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from steptp_dagster.leir import sets
from steptp_dagster.leir.accesses import Accesses, Use, common_loops
from steptp_dagster.leir.affine import Atom, Form, Interval, form_text
from steptp_dagster.leir.conversion import integer_range
from steptp_dagster.leir.dependence import Answer, free, same, touch
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.formulas import Zero, conjunction
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.regions import box_of, boxes_cover, dense, region
from steptp_dagster.leir.shapes import Shape
from steptp_dagster.leir.updates import Update, Updates, written_before
from steptp_dagster.leir.violation import Violation

_I64 = integer_range(DTYPES["i64"])
#: What the uses of a tensor in a nest depend on, besides the nest: name, shape, whether it is an
#: output (None for intermediates), and who writes it before; None where all of it is surely
#: written before and the nest only reads it, so that it does not matter by whom.
_Key = tuple[str, Shape, bool | None, tuple[int, ...] | None]


def check_elements(
    accesses: Accesses, shapes: Mapping[str, Shape], updates: Updates, broken: frozenset[str]
) -> Iterator[Violation]:
    """All violations about elements of tensors that are not ``broken``."""
    uses: list[Violation] = []
    starts: list[Violation] = []
    divisions: list[Violation] = []
    before = _Before(accesses, shapes)
    for i, facts in enumerate(accesses.facts):
        if not _is_clean(accesses, shapes, updates, broken, before, i):
            uses.extend(_uses(accesses, shapes, updates, broken, i))
            starts.extend(_starts(accesses, updates, broken, i))
        before.add(i)
        divisions.extend(facts.found("divisions", partial(_divisions, accesses, i)))
    yield from uses
    yield from starts
    yield from divisions
    for variable in accesses.signed.signature.outputs:
        if variable.name not in broken:
            yield from _covered(accesses, variable.name, variable.shape)


class _Before:
    """Who writes the tensors of a program before the nest that is looked at."""

    def __init__(self, accesses: Accesses, shapes: Mapping[str, Shape]) -> None:
        self._accesses = accesses
        self._shapes = shapes
        self._serials: dict[str, tuple[int, ...]] = {}
        self._filled: dict[str, bool] = {}

    def add(self, i: int) -> None:
        """Nest ``i`` has been looked at."""
        facts = self._accesses.facts[i]
        for name in facts.outline.written:
            self._serials[name] = (*self._serials.get(name, ()), facts.serial)
            if not self._filled.get(name, False):
                self._filled.pop(name, None)

    def writers(self, name: str, i: int, *, only_read: bool) -> tuple[int, ...] | None:
        """The last part of the key of a tensor in nest ``i``, which may only read it."""
        serials = self._serials.get(name)
        if serials is None:
            return ()
        if not only_read:
            return serials
        filled = self._filled.get(name)
        if filled is None:
            filled = _filled_before(self._accesses, i, name, self._shapes[name])
            self._filled[name] = filled
        return None if filled else serials


def _is_clean(
    accesses: Accesses,
    shapes: Mapping[str, Shape],
    updates: Updates,
    broken: frozenset[str],
    before: _Before,
    i: int,
) -> bool:
    """Whether nest ``i`` surely has nothing wrong, tensor by tensor.

    What is wrong with the uses of a tensor depends on its shape, on whether it is a source or an
    output, and on who writes it in the nests ``before``. For one in global memory that is surely
    filled before and only read here, ``_use`` asks for no more than bounds, which the shape tells.
    """
    facts = accesses.facts[i]
    outputs = accesses.signed.signature.is_output
    keys: list[_Key] = []
    for touched in facts.outline.touched:
        name = touched.name
        if name not in broken:
            only_read = not touched.written and touched.is_global
            writers = before.writers(name, i, only_read=only_read)
            keys.append((name, shapes[name], outputs.get(name), writers))
    return facts.all_clean(tuple(keys), partial(_of_tensor, accesses, updates, i))


def _of_tensor(accesses: Accesses, updates: Updates, i: int, key: _Key) -> Sequence[Violation]:
    """What is wrong with the uses of one tensor in one nest."""
    name, shape, _, writers = key
    found: list[Violation] = []
    is_source = _is_source(accesses, name)
    filled = writers is None or _filled_before(accesses, i, name, shape)
    for use in accesses.part(i).by_tensor[name]:
        nothing_to_ask = use.write or is_source or (filled and not use.private)
        if use.bounds.empty or not (nothing_to_ask and _inside(use, shape)):
            found.extend(_use(accesses, shape, updates, use, filled=filled))
    for target in accesses.part(i).writes.get(name, ()):
        found.extend(_starting(accesses, updates, target))
    return found


def _filled_before(accesses: Accesses, i: int, name: str, shape: Shape) -> bool:
    """Whether the nests before nest ``i`` surely write all of a tensor, if it is a global one."""
    boxes: list[tuple[Interval, ...]] = []
    for j in accesses.writers.get(name, ()):
        if j >= i:
            break
        for box in _boxes(accesses, j, name):
            if len(box) == len(shape):
                if _holds_all(box, shape):  # most often one nest writes everything
                    return True
                boxes.append(box)
    return len(boxes) > 1 and boxes_cover(boxes, tuple([(0, extent - 1) for extent in shape]))


def _holds_all(box: tuple[Interval, ...], shape: Shape) -> bool:
    """Whether one box alone holds all elements of a tensor."""
    for (low, high), extent in zip(box, shape, strict=True):
        if low > 0 or high < extent - 1:
            return False
    return True


def _boxes(accesses: Accesses, i: int, name: str) -> tuple[tuple[Interval, ...], ...]:
    """Boxes of a global tensor that nest ``i`` writes completely; kept with the nest."""
    known = accesses.facts[i].boxes
    if name not in known:
        found = []
        for write in accesses.unplaced(i).writes[name]:
            if write.private:
                continue
            plain = _plain_box(write)
            if plain is not None:
                found.append(plain)
                continue
            if write.opaque or write.on_data or write.bounds.empty:
                continue
            place = region(write, frozenset())
            if place is not None and not place.needs and (box := box_of(place)) is not None:
                found.append(box)
        known[name] = tuple(found)
    return known[name]


def _plain_box(write: Use) -> tuple[Interval, ...] | None:
    """The region of a write without condition, over sums of indices of their own; None if none."""
    if not write.always:
        return None
    spans = write.statement.bounds.box
    seen: list[Atom] = []
    box: list[Interval] = []
    for const, terms in write.forms:
        low = high = const
        for atom, factor in terms:
            if factor < 0 or not isinstance(atom, str) or atom in seen:
                return None
            seen.append(atom)
            first, last = spans[atom]
            low += factor * first
            high += factor * last
        if terms and (len(terms) > 1 or terms[0][1] > 1) and not dense(terms, spans):
            return None
        box.append((low, high))
    return tuple(box)


def _uses(
    accesses: Accesses,
    shapes: Mapping[str, Shape],
    updates: Updates,
    broken: frozenset[str],
    i: int,
) -> Iterator[Violation]:
    for use in accesses.part(i).uses:
        name = use.tensor
        if name not in broken:
            filled = _filled_before(accesses, i, name, shapes[name])
            yield from _use(accesses, shapes[name], updates, use, filled=filled)


def _use(
    accesses: Accesses, shape: Shape, updates: Updates, use: Use, *, filled: bool
) -> Iterator[Violation]:
    if use.bounds.empty:
        return
    if not _inside(use, shape):
        outside = list(_bounds(use, shape))
        yield from outside
        if outside:
            return
    if use.write or _is_source(accesses, use.tensor):
        return
    if use.private or not filled:
        yield from _unwritten(accesses, updates, use)


def _inside(use: Use, shape: Shape) -> bool:
    """Whether the intervals of all subscripts lie in the shape: then nothing is outside."""
    bounds = use.bounds
    spans = {} if bounds.clips else bounds.box
    for form, extent in zip(use.subscripts, shape, strict=True):
        const, terms = form
        if len(terms) == 1:
            atom, factor = terms[0]
            if factor == 1 and isinstance(atom, str) and atom in spans:  # nearly all subscripts
                low, high = spans[atom]
                if low + const >= 0 and high + const < extent:
                    continue
        low, high = bounds.interval(form)
        if low < 0 or high >= extent:
            low, high = bounds.tight(form)
            if low < 0 or high >= extent:
                return False
    return True


def _starts(
    accesses: Accesses, updates: Updates, broken: frozenset[str], i: int
) -> Iterator[Violation]:
    part = accesses.part(i)
    for statement in part.statements:
        if statement.equation.target.name not in broken:
            yield from _starting(accesses, updates, part.by_statement[statement.path][0])


def _starting(accesses: Accesses, updates: Updates, target: Use) -> Iterator[Violation]:
    """What is wrong with the first touch of an update; nothing for other equations."""
    if not _is_source(accesses, target.tensor) and updates.is_pure(target.statement):
        yield from _start(accesses, updates, target)


def _is_source(accesses: Accesses, name: str) -> bool:
    variable = accesses.signed.signature.by_name.get(name)
    return variable is not None and variable.role != "output"


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


def _divisions(accesses: Accesses, i: int) -> tuple[Violation, ...]:
    return tuple(v for divisor in accesses.part(i).divisors for v in _division(divisor))


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


def _unwritten(accesses: Accesses, updates: Updates, use: Use) -> Iterator[Violation]:
    statement = use.statement
    own = statement.equation.target.name == use.tensor
    if own and updates.is_pure(statement):
        return  # its first touch is checked instead
    answer = written_before(use, accesses.writes_until(use.tensor, statement.path[0]))
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


def _start(accesses: Accesses, updates: Updates, target: Use) -> Iterator[Violation]:
    path, pos, name = target.statement.path, target.statement.equation.pos, target.tensor
    init, decided = updates.start(target.statement)
    if init == "ambiguous":
        yield Violation(
            "mixed-first-touch" if decided else "undecided",
            f"some elements of {name} {'were' if decided else 'may have been'} written "
            "before this update and some not",
            path,
            pos,
            "elements with and without an earlier write",
            f"{name} wholly fresh, or initialised by an equation of its own",
        )
    here = accesses.part(path[0]).by_tensor[name]
    if init == "continue" or all(other.statement is target.statement for other in here):
        return
    update = updates.of(target.statement)
    if update.repeating_loops:
        yield from _partial(accesses, update, target)


def _partial(accesses: Accesses, update: Update, target: Use) -> Iterator[Violation]:
    """Who else touches an implicitly started accumulator while it accumulates.

    Inside a reduction loop nobody may. Inside a loop that only comes back to elements
    (``X_{a//2}``), nobody may write between two touches.
    """
    names = [ref.name for ref in target.chain]
    depth = names.index(update.repeating_loops[0])
    reduces = min((names.index(n) for n in update.reduction_loops), default=len(names))
    for other in accesses.part(target.statement.path[0]).by_tensor[target.tensor]:
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


def _covered(accesses: Accesses, name: str, shape: Shape) -> Sequence[Violation]:
    """Whether an output is covered, remembered with the last nest that writes it."""
    writers = accesses.writers.get(name, ())
    if not writers:
        return tuple(_coverage(accesses, name, shape))
    key = ("covered", name, shape, tuple([accesses.facts[j].serial for j in writers]))
    check = partial(_coverage, accesses, name, shape)
    return accesses.facts[writers[-1]].found(key, lambda: tuple(check()))


def _coverage(accesses: Accesses, name: str, shape: Shape) -> Iterator[Violation]:
    if _filled_before(accesses, len(accesses.known), name, shape):
        return
    written = accesses.writes_until(name, len(accesses.known))
    writes = [w for w in written if not w.bounds.empty]
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
