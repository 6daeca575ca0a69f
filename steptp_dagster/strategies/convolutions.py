"""Pairs of padded convolutions with one kernel, and where two images in one are not themselves.

A padded convolution is a nest ``P=if_then_else(inside,X,0)`` that copies an image with zeros
around it, and a nest ``Y=Y+P*K`` that reads the copy at ``o*stride+t*dilation``. Two of them with
the same kernel and geometry can run as one, over both images side by side. Outputs whose window
reaches from one image into the other then see pixels where zeros were.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Equation, Expr, Index, Int, Loop
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import accesses_in, indices_in, iter_expr
from steptp_dagster.strategies.reductions import conjuncts
from steptp_dagster.strategies.rewrite import readers_of, writers_of
from steptp_dagster.strategies.twins import Twins, single, spatial, twins


@dataclass(frozen=True, slots=True)
class Padded:
    """A convolution with the nest that pads its image: positions among the top-level nests."""

    pad: int
    conv: int
    copy: Equation
    update: Equation
    image: Access
    padded: Access
    kernel: Access


@dataclass(frozen=True, slots=True)
class Geometry:
    """One axis along which two images may be put side by side.

    ``output`` and ``tap`` are loops of the convolution, ``dimension`` is that of the padded copy
    and ``pixel`` that of the image; ``index`` runs over the padded copy. ``length`` is the image's,
    ``before`` the number of zeros in front of it.
    """

    output: Loop
    tap: Loop
    dimension: int
    pixel: int
    index: str
    stride: int
    dilation: int
    length: int
    before: int

    @property
    def shift(self) -> int:
        """By how many outputs the second image starts later."""
        return self.length // self.stride

    @property
    def first_wrong(self) -> int:
        """The first output of the first image whose window reaches into the second one."""
        reach = self.length + self.before - (self.tap.extent - 1) * self.dilation
        return min(self.output.extent, max(0, ceil(reach / self.stride)))

    @property
    def first_right(self) -> int:
        """The first output of the second image whose window starts in it."""
        return min(self.output.extent, ceil(self.before / self.stride))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two padded convolutions that are equal up to the tensors that they read and write."""

    first: Padded
    second: Padded
    convs: Twins
    pads: Twins


def padded_convolutions(program: SignedProgram) -> tuple[Padded, ...]:
    """All padded convolutions among the top-level nests, in text order."""
    found = []
    nests = program.program.nests
    updates = classify(program)
    for i, nest in enumerate(nests):
        equation = single(nest)
        if equation is None or updates[(i, 0)].op != "+" or updates[(i, 0)].init != "identity":
            continue
        operand = updates[(i, 0)].operand
        if not (isinstance(operand, Binary) and operand.op == "*"):
            continue
        for padded, kernel in ((operand.left, operand.right), (operand.right, operand.left)):
            if not (isinstance(padded, Access) and isinstance(kernel, Access)):
                continue
            made = _padding(program, padded.name, i)
            if made is not None:
                pad, copy, image = made
                found.append(Padded(pad, i, copy, equation, image, padded, kernel))
                break
    return tuple(found)


def _padding(program: SignedProgram, name: str, before: int) -> tuple[int, Equation, Access] | None:
    """The nest that makes a padded copy, or None where the tensor is no such copy."""
    writers = writers_of(program.program, name)
    if len(writers) != 1 or len(writers[0]) != 2 or writers[0][0] >= before:
        return None
    equation = single(program.program.nests[writers[0][0]])
    if equation is None or equation.target.name != name:
        return None
    match equation.value:
        case Call(function="if_then_else", arguments=(_, Access() as image, Int(0))):
            return writers[0][0], equation, image
    return None


def pairs(program: SignedProgram) -> Iterator[tuple[Padded, Padded]]:
    """Pairs of padded convolutions whose loops agree, in text order."""
    found = padded_convolutions(program)
    for i, first in enumerate(found):
        for second in found[i + 1 :]:
            nests = program.program.nests
            a, b = nests[first.conv].loops, nests[second.conv].loops
            if [(x.kind, x.extent) for x in a] == [(x.kind, x.extent) for x in b]:
                yield first, second


def corresponding(program: SignedProgram, first: Padded, second: Padded) -> Pair | tuple[str, str]:
    """Two convolutions as a pair, or the first thing in which they differ: reason and words."""
    nests = program.program.nests
    convs = twins(nests[first.conv], nests[second.conv])
    if convs is None or convs.names.get(first.kernel.name) != first.kernel.name:
        words = f"{first.update.target.name} and {second.update.target.name}"
        return "kernels-differ", f"{words} are not made by one kernel in one way"
    pads = None
    if len(nests[first.pad].loops) == len(nests[second.pad].loops):
        pads = twins(nests[first.pad], nests[second.pad])
    extents = [[loop.extent for loop in nests[p.pad].loops] for p in (first, second)]
    shapes = infer_shapes(program)
    same = shapes[first.image.name] == shapes[second.image.name]
    if pads is None or extents[0] != extents[1] or not same:
        words = f"{first.image.name} and {second.image.name}"
        return "padding-differs", f"{words} are padded in different ways"
    for one in (first, second):
        readers = readers_of(program.program, one.padded.name)
        known = program.signature.by_name.get(one.padded.name)
        if readers != ((one.conv, 0),) or known is not None:
            return "padded-copy-read-elsewhere", f"{one.padded.name} is not only read by one nest"
    here = first.conv
    for name in (first.image.name, second.image.name, first.kernel.name):
        if any(path[0] >= here for path in writers_of(program.program, name)):
            return "operand-written-later", f"{name} is written after statement {here + 1}"
    return Pair(first, second, convs, pads)


def axes(program: SignedProgram, pair: Pair) -> Iterator[Geometry]:
    """The axes of a pair along which its images may be put side by side, aligned or not."""
    shapes = infer_shapes(program)
    update, copy = pair.first.update, pair.first.copy
    outputs = spatial(pair.convs.loops, update.target)
    for dimension, subscript in enumerate(pair.first.padded.subscripts):
        form = _window(subscript)
        if form is None:
            continue
        (o, stride), (t, dilation) = form
        output = next((x for x in outputs if x.index == o), None)
        tap = next((x for x in pair.convs.loops if x.index == t and x not in outputs), None)
        if output is None or tap is None or output.start or tap.start:
            continue
        if sum(Index(o) == s for s in update.target.subscripts) != 1 or _uses(update, o) != 3:
            continue  # the running value and the target count too
        index = copy.target.subscripts[dimension]
        if not isinstance(index, Index) or _uses(copy, index.name) < 2:
            continue
        found = _pixel(pair.first.image, index.name)
        if found is None:
            continue
        pixel, before = found
        length = shapes[pair.first.image.name][pixel]
        if bounded(copy, index.name, before, length) is None:
            continue
        yield Geometry(output, tap, dimension, pixel, index.name, stride, dilation, length, before)


def _window(subscript: Expr) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """``o*s+t*d`` with positive factors as ((o, s), (t, d)), or None."""
    if not (isinstance(subscript, Binary) and subscript.op == "+"):
        return None
    first, second = _scaled(subscript.left), _scaled(subscript.right)
    if first is None or second is None or first[0] == second[0]:
        return None
    return first, second


def _scaled(expr: Expr) -> tuple[str, int] | None:
    match expr:
        case Index(name):
            return name, 1
        case Binary(op="*", left=Index(name), right=Int(factor)) if factor > 0:
            return name, factor
    return None


def _uses(equation: Equation, index: str) -> int:
    return sum(
        isinstance(node, Index) and node.name == index
        for expr in (equation.target, equation.value)
        for node in iter_expr(expr)
    )


def _pixel(image: Access, index: str) -> tuple[int, int] | None:
    """The dimension of an image that an index of the padded copy walks along, and the zeros."""
    found = [(d, s) for d, s in enumerate(image.subscripts) if index in indices_in(s)]
    if len(found) != 1:
        return None
    match found[0][1]:
        case Index():
            return found[0][0], 0
        case Binary(op="-", left=Index(), right=Int(before)):
            return found[0][0], before
    return None


def bounded(copy: Equation, index: str, before: int, length: int) -> tuple[Expr, Expr] | None:
    """The comparison that keeps an index of a padded copy within the image, and a longer one.

    The second is the same for an image of twice the length. None where no comparison, or more
    than one, is about the index, or where it says something else.
    """
    value = copy.value
    if not isinstance(value, Call):
        return None
    found = [c for c in conjuncts(value.arguments[0]) if index in indices_in(c)]
    if len(found) != 1 or any(True for _ in accesses_in(found[0])):
        return None
    end, twice = before + length, before + 2 * length
    match found[0]:
        case Compare(operands=(Int(low), Index(), Int(high)), ops=("<=", "<")) as compare:
            if (low, high) == (before, end):
                operands = (*compare.operands[:2], Int(twice))
                return compare, Compare(operands, compare.ops)
        case Compare(operands=(Index(), Int(high)), ops=("<",)) as compare:
            if (before, end) == (0, high):
                return compare, Compare((compare.operands[0], Int(twice)), compare.ops)
        case Compare(operands=(Int(low), Index()), ops=("<=",)) as compare:
            if low == before:
                return compare, compare
        case Compare(operands=(Index(), Int(low)), ops=(">=",)) as compare:
            if low == before:
                return compare, compare
    return None


def nests_of(pair: Pair) -> tuple[int, ...]:
    """Positions of the nests that the step replaces, in text order."""
    first, second = pair.first, pair.second
    return tuple(sorted({first.pad, first.conv, second.pad, second.conv}))
