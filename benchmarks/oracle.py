"""A second opinion on LEIR programs: what they compute and what they touch, by running them.

Programs become plain Python: nested ``for`` loops over dictionaries of cells, floats in binary64
(or rounded to binary32 after every operation). A run can log the element of every access; the
logs say whether iterations of ``P``, ``V`` and ``B`` loops are independent, whether data passes
between blocks or threads, and whether sums that start by themselves may. It shares nothing with
the static checker, the reference interpreter or the strategies but the syntax tree.
"""

import math
import struct
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from operator import gt, lt
from typing import Any, Final

import numpy as np

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Real,
    Statement,
    Unary,
)
from steptp_dagster.leir.signature import SignedProgram

Cells = dict[int, Any]
Array = np.ndarray[Any, Any]

_BLOCKS: Final = ("bx", "by", "bz")
_THREADS: Final = ("tx", "ty", "tz")
_BYTES: Final = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i16": 2, "i32": 4}
_LIMITS: Final = {"bx": 2**31 - 1, "by": 65535, "bz": 65535, "tx": 1024, "ty": 1024, "tz": 64}
#: Bits of one coordinate in the key of a cell, and what is added to make it positive.
_BITS: Final = 16
_SHIFT: Final = 4096


# ------------------------------------------------------------------ arithmetic


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _sin(x: float) -> float:
    return math.sin(x) if math.isfinite(x) else math.nan


def _cos(x: float) -> float:
    return math.cos(x) if math.isfinite(x) else math.nan


def _divided(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _power(a: float, b: float) -> float:
    if isinstance(a, int) and isinstance(b, int) and b >= 0:
        return int(a**b)
    if b == 2:  # squares are products
        return a * a
    try:
        return math.pow(a, b)
    except (OverflowError, ValueError):
        with np.errstate(all="ignore"):
            return float(np.power(np.float64(a), np.float64(b)))


def _floored(a: float, b: float) -> float:
    try:
        return a // b
    except ZeroDivisionError:
        return math.nan


def _modulo(a: float, b: float) -> float:
    try:
        return a % b
    except ZeroDivisionError:
        return math.nan


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    def rounded(x: float) -> float:
        if isinstance(x, int):
            return x
        return math.copysign(float(function(x)), x) if math.isfinite(x) else x

    return rounded


def _truncated(x: float) -> int:
    return int(x) if math.isfinite(x) else 0


#: Filled whenever ``max`` or ``min`` see NaN.
_unordered: list[bool] = []


def _chooser(before: Callable[[float, float], bool]) -> Callable[[float, float], float]:
    """``max`` or ``min``, which notes NaN operands."""

    def choose(a: float, b: float) -> float:
        if before(a, b):
            return a
        if b != b or a != a:
            _unordered.append(True)
        return b

    return choose


_PACK = struct.Struct("f")


def _single(x: float) -> float:
    """Rounded to binary32."""
    try:
        return float(_PACK.unpack(_PACK.pack(x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


_PACK_HALF = struct.Struct("e")


def _half(x: float) -> float:
    """Rounded to binary16."""
    try:
        return float(_PACK_HALF.unpack(_PACK_HALF.pack(x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


_WORLD: Final[dict[str, Any]] = {
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "erf": math.erf,
    "tanh": math.tanh,
    "sin": _sin,
    "cos": _cos,
    "abs": abs,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(round),
    "dv": _divided,
    "pw": _power,
    "fl": _floored,
    "md": _modulo,
    "tr": _truncated,
    "r": _single,
    "h": _half,
    "inf": math.inf,
    "max": _chooser(gt),
    "min": _chooser(lt),
}


# ------------------------------------------------------------------ programs as Python


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place in an equation where a tensor is used. ``own``: the old value of an update."""

    log: int
    tensor: str
    scope: str
    write: bool
    own: bool


@dataclass(frozen=True, slots=True)
class Node:
    """An equation with its surroundings. ``before`` counts instances that run before it.

    For every loop: its identity (path of its nest and place in it), and how many instances of the
    nest's equations one iteration runs (``strides``).
    """

    path: tuple[int, ...]
    equation: Equation
    loops: tuple[Loop, ...]
    where: tuple[tuple[tuple[int, ...], int], ...]
    strides: tuple[int, ...]
    before: int
    launch: int
    update: str | None
    occurrences: tuple[Occurrence, ...]


class Meaningless(Exception):
    """A program breaks a rule that leaves it without meaning: its kind and where."""


@dataclass(frozen=True, slots=True)
class NestCode:
    """One nest as Python: ``run(cells, logs)`` with one log for each occurrence, or none."""

    nest: Nest
    nodes: tuple[Node, ...]
    run: Callable[[dict[str, Cells], Sequence[list[int]]], None]
    logs: int

    @property
    def written(self) -> frozenset[str]:
        """The tensors that the nest writes."""
        return frozenset(n.equation.target.name for n in self.nodes)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program as Python."""

    signed: SignedProgram
    nests: tuple[NestCode, ...]
    names: tuple[str, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All equations in text order."""
        return tuple(n for nest in self.nests for n in nest.nodes)

    def run(self, inputs: Mapping[str, Cells], logged: Container[int] = ()) -> "Outcome":
        """Run over cells of all sources; all others begin empty. ``logged``: numbers of nests."""
        cells = {n: dict(inputs[n]) if n in inputs else {} for n in self.names}
        logs: dict[int, list[list[int]]] = {}
        fault = None
        _unordered.clear()
        for i, nest in enumerate(self.nests):
            if i in logged:
                logs[i] = [[] for _ in range(nest.logs)]
            try:
                nest.run(cells, logs.get(i, ()))
            except KeyError as error:
                fault = f"reads an element that nobody wrote: {decoded(error.args[0])}"
                break
        return Outcome(cells, logs, fault, bool(_unordered))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind. ``unordered``: ``max`` or ``min`` saw NaN, outside the contract."""

    cells: dict[str, Cells]
    logs: dict[int, list[list[int]]]
    fault: str | None
    unordered: bool

    def largest(self) -> float:
        """The greatest finite magnitude of all cells."""
        each = (abs(v) for cells in self.cells.values() for v in cells.values())
        return float(max((v for v in each if v < math.inf), default=0.0))


def decoded(key: int) -> tuple[int, ...]:
    """The coordinates in a key, all that are not plainly absent."""
    found = []
    while key:
        found.append((key & ((1 << _BITS) - 1)) - _SHIFT)
        key >>= _BITS
    return tuple(reversed(found))


def cells_of(array: Array) -> Cells:
    """The cells of an array."""
    flat = array.tolist() if array.ndim else [array.tolist()]
    if array.ndim > 1:
        flat = array.reshape(-1).tolist()
    keys = np.zeros((), object)
    for extent in array.shape:
        keys = keys[..., None] * (1 << _BITS) + (np.arange(extent).astype(object) + _SHIFT)
    return dict(zip(np.reshape(keys, -1).tolist(), flat, strict=True))


def array_of(cells: Cells, shape: tuple[int, ...]) -> tuple[Array, str | None]:
    """The array in cells, and what is wrong with them."""
    array = np.full(shape, np.nan)
    flat = array.reshape(-1)
    wanted = cells_of(np.arange(max(1, prod(shape))).reshape(shape))
    for key, place in wanted.items():
        if key not in cells:
            return array, f"nobody writes {list(decoded(key))}"
        flat[place] = cells[key]
    if len(cells) != len(wanted):
        beyond = next(k for k in cells if k not in wanted)
        return array, f"writes outside its shape: {list(decoded(beyond))}"
    return array, None


class Writer:
    """Writes a nest as Python text."""

    def __init__(self, nest: Nest, single: bool = False) -> None:
        self.nest, self.single = nest, single
        self.lines: list[str] = []
        self.nodes: list[Node] = []
        self.logs = 0

    def compiled(self) -> NestCode:
        """The whole nest. Raises Meaningless."""
        self._launches = launches(self.nest)
        self._statement(self.nest, (), (), (), (), "  ")
        parts = [p for e in all_equations([self.nest]) for p in parts_of(e)]
        names = sorted({a.name for p in parts for a in accesses(p)})
        head = ["def run(cells, logs):", "  on = bool(logs)"]
        head += [f"  {_cell(n)} = cells[{n!r}]" for n in names]
        head += [f"  g{k} = logs[{k}].append if logs else None" for k in range(self.logs)]
        world = dict(_WORLD)
        exec(compile("\n".join(head + self.lines), "<nest>", "exec"), world)
        return NestCode(self.nest, tuple(self.nodes), world["run"], self.logs)

    # -- statements

    def _statement(
        self,
        statement: Statement,
        path: tuple[int, ...],
        loops: tuple[Loop, ...],
        where: tuple[tuple[tuple[int, ...], int], ...],
        strides: tuple[int, ...],
        indent: str,
    ) -> None:
        if isinstance(statement, Equation):
            self._equation(statement, path, loops, where, strides, indent)
            return
        size = sum(size_of(s) for s in statement.body)
        inner = []
        for loop in reversed(statement.loops):
            inner.append(size)
            size *= loop.extent
        for k, loop in enumerate(statement.loops):
            if any(loop.index == other.index for other in (*loops, *statement.loops[:k])):
                raise Meaningless(f"index-rebound: {loop.index}")
            span = f"range({loop.start}, {loop.start + loop.extent})"
            self.lines.append(f"{indent}for i_{loop.index} in {span}:")
            indent += " "
        around = (*where, *((path, k) for k in range(len(statement.loops))))
        for i, child in enumerate(statement.body):
            self._statement(
                child,
                (*path, i),
                loops + statement.loops,
                around,
                strides + tuple(reversed(inner)),
                indent,
            )

    def _equation(
        self,
        equation: Equation,
        path: tuple[int, ...],
        loops: tuple[Loop, ...],
        where: tuple[tuple[tuple[int, ...], int], ...],
        strides: tuple[int, ...],
        indent: str,
    ) -> None:
        bound = {loop.index for loop in loops}
        self.loops, self.where = loops, where
        self.occurrences: list[Occurrence] = []
        target, value = equation.target, equation.value
        update = update_of(equation, loops)
        dtype = target.dtype
        self.context = "f32" if dtype in ("f16", "bf16", "f32") else "f64"
        self.own = next((a for a in accesses(value) if a.name == target.name), None)
        self.own = self.own if update else None
        for part in parts_of(equation):
            for name in {i.name for i in nodes_of(part) if isinstance(i, Index)}:
                if name not in bound:
                    raise Meaningless(f"unbound-index: {name}")
        guard = self._text(equation.guard) if equation.guard else None
        key = self._key(target)
        text, kind = self._text(value), self._kind(value)
        if dtype[0] in "fb" and dtype != "bool":
            text = text if kind == "f" else f"float({text})"
            text = f"r({text})" if self.single and dtype == "f32" and kind != "f" else text
            text = f"h({text})" if self.single and dtype == "f16" else text
        elif dtype == "bool":
            text = text if kind == "b" else f"bool({text})"
        else:
            text = f"tr({text})" if kind == "f" else f"int({text})" if kind == "b" else text
        place = self._occurrence(target, write=True)
        own = None
        if update:
            own = self._occurrence(target, write=False, own=True)
        lines = []
        lines.append(f"k{place} = {key}")
        if update:
            begin = {"+": "0", "*": "1", "max": "-inf", "min": "inf"}[update]
            if dtype[0] in "iu":
                low, high = _integers(dtype)
                begin = {"max": str(low), "min": str(high)}.get(update, begin)
            elif dtype != "bool":
                begin = f"float({begin!r})"
            lines.append(f"old = {_cell(target.name)}.get(k{place}, {begin})")
            lines.append(f"k{own} = k{place}")
        lines.append(f"{_cell(target.name)}[k{place}] = {text}")
        deep = indent
        # All keys of an instance that an untaken branch or a false guard leaves out are -1.
        keys = [f"k{o.log}" for o in self.occurrences]
        self.lines.append(f"{indent}{' = '.join(keys)} = -1")
        if guard is not None:
            self.lines.append(f"{indent}if {guard}:")
            deep = indent + " "
        self.lines += [deep + line for line in lines]
        self.lines.append(f"{indent}if on: " + "; ".join(f"g{k[1:]}({k})" for k in keys))
        before = offset_of(self.nest, path)
        launch = sum(self._is_launch(w) for w in where)
        self.nodes.append(
            Node(
                path,
                equation,
                loops,
                where,
                strides,
                before,
                launch,
                update,
                tuple(self.occurrences),
            )
        )

    def _is_launch(self, where: tuple[tuple[int, ...], int]) -> bool:
        return where in self._launches

    # -- expressions

    def _occurrence(self, access: Access, write: bool, own: bool = False) -> int:
        self.occurrences.append(Occurrence(self.logs, access.name, access.scope, write, own))
        self.logs += 1
        return self.logs - 1

    def _key(self, access: Access) -> str:
        """The key of the element: the instance of ``s`` and ``l``, then the subscripts."""
        parts: list[str] = []
        if access.scope != "g":
            axes = _BLOCKS if access.scope == "s" else _BLOCKS + _THREADS
            parts += [
                f"i_{x.index}"
                for x, w in zip(self.loops, self.where, strict=True)
                if self._is_launch(w)
            ]
            for axis in axes:
                loop = next((x for x in self.loops if x.axis == axis), None)
                parts.append(f"i_{loop.index}" if loop else "-1")
        parts += [self._text(s, subscript=True) for s in access.subscripts]
        if not parts:
            return "0"
        text, constant = "", 0
        for i, part in enumerate(reversed(parts)):
            constant += _SHIFT << (_BITS * i)
            term = part if i == 0 else f"(({part})<<{_BITS * i})"
            text = f"{text}+{term}" if text else f"({term})"
        return f"{text}+{constant}"

    def _text(self, expr: Expr, subscript: bool = False) -> str:
        match expr:
            case Int():
                return str(expr.value)
            case Real():
                value = expr.value
                return repr(_single(value) if self.single and self.context == "f32" else value)
            case Inf():
                return "inf"
            case Index():
                return f"i_{expr.name}"
            case Access():
                if expr is self.own:
                    return "old"
                key = self._key(expr)
                place = self._occurrence(expr, write=False)
                return f"{_cell(expr.name)}[(k{place} := {key})]"
            case Unary():
                return f"(-{self._text(expr.operand)})"
            case Compare():
                return self._compared(expr)
            case Binary():
                return self._binary(expr)
            case Call():
                return self._call(expr)
        raise TypeError(expr)

    def _compared(self, expr: Compare) -> str:
        outer = self.context
        types = {_float(e) for e in expr.operands}
        self.context = "f32" if "f32" in types and "f64" not in types else "f64"
        texts = [self._text(e) for e in expr.operands]
        self.context = outer
        if len(texts) == 2:
            return f"({texts[0]} {expr.ops[0]} {texts[1]})"
        # Strict: each operand is evaluated, once.
        names = [f"c{id(expr) % 10**6}_{i}" for i in range(len(texts))]
        made = ", ".join(f"({n} := {t})" for n, t in zip(names, texts, strict=True))
        chain = " and ".join(f"{names[i]} {op} {names[i + 1]}" for i, op in enumerate(expr.ops))
        return f"(({made}) and ({chain}))"

    def _binary(self, expr: Binary) -> str:
        outer = self.context
        self.context = _float(expr) or outer
        left, right = self._text(expr.left), self._text(expr.right)
        kind = self._kind(expr)
        match expr.op:
            case "&" | "|":
                self.context = outer
                return f"(({left}) {expr.op} ({right}))"
            case "/":
                text = f"dv({left}, {right})"
            case "**":
                text = f"pw({left}, {right})"
            case "//":
                text = f"({left} // {right})" if kind == "i" else f"fl({left}, {right})"
            case "%":
                text = f"({left} % {right})" if kind == "i" else f"md({left}, {right})"
            case _:
                text = f"({left} {expr.op} {right})"
        text = self._rounded(text, expr)
        self.context = outer
        return text

    def _call(self, expr: Call) -> str:
        outer = self.context
        texts = []
        for i, argument in enumerate(expr.arguments):
            condition = expr.function == "if_then_else" and i == 0
            self.context = "f64" if condition else _float(expr) or outer
            texts.append(self._text(argument))
        self.context = _float(expr) or outer
        if expr.function == "if_then_else":
            text = f"({texts[1]} if {texts[0]} else {texts[2]})"
        else:
            text = f"{expr.function}({', '.join(texts)})"
            if expr.function not in ("max", "min", "abs"):
                text = self._rounded(text, expr)
        self.context = outer
        return text

    def _rounded(self, text: str, expr: Expr) -> str:
        narrow = self.single and self._kind(expr) == "f" and self.context == "f32"
        return f"r({text})" if narrow else text

    def _kind(self, expr: Expr) -> str:
        """f, i or b: what Python number the text gives."""
        match expr:
            case Int() | Index():
                return "i"
            case Real() | Inf():
                return "f"
            case Access():
                dtype = expr.dtype
                return "b" if dtype == "bool" else "f" if dtype[0] in "fb" else "i"
            case Unary():
                return "f" if self._kind(expr.operand) == "f" else "i"
            case Compare():
                return "b"
            case Binary():
                if expr.op in "&|":
                    return "b"
                kinds = self._kind(expr.left), self._kind(expr.right)
                return "f" if expr.op == "/" or "f" in kinds else "i"
            case Call():
                if expr.function in ("exp", "log", "sqrt", "erf", "tanh", "sin", "cos"):
                    return "f"
                if expr.function == "if_then_else":
                    kinds = self._kind(expr.arguments[1]), self._kind(expr.arguments[2])
                else:
                    kinds = tuple(self._kind(a) for a in expr.arguments)  # type: ignore[assignment]
                return kinds[0] if len(set(kinds)) == 1 else "f" if "f" in kinds else "i"
        raise TypeError(expr)


def _float(expr: Expr) -> str | None:
    """The float type in which an expression is worked out, where its operands fix one."""
    match expr:
        case Access():
            return {"f64": "f64", "f32": "f32", "f16": "f32", "bf16": "f32"}.get(expr.dtype)
        case Unary():
            parts: tuple[Expr, ...] = (expr.operand,)
        case Binary() if expr.op not in "&|":
            parts = (expr.left, expr.right)
        case Call(function="if_then_else"):
            parts = expr.arguments[1:]
        case Call():
            parts = expr.arguments
        case _:
            return None
    found = [_float(p) for p in parts]
    return "f64" if "f64" in found else "f32" if "f32" in found else None


def _cell(name: str) -> str:
    return f"c_{name}"


def _integers(dtype: str) -> tuple[int, int]:
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


# ------------------------------------------------------------------ trees


def nodes_of(expr: Expr) -> Iterator[Expr]:
    """All parts of an expression, subscripts included."""
    yield expr
    match expr:
        case Access():
            below: Sequence[Expr] = expr.subscripts
        case Unary():
            below = (expr.operand,)
        case Binary():
            below = (expr.left, expr.right)
        case Compare():
            below = expr.operands
        case Call():
            below = expr.arguments
        case _:
            below = ()
    for part in below:
        yield from nodes_of(part)


def accesses(expr: Expr) -> Iterator[Access]:
    """All accesses in an expression."""
    return (e for e in nodes_of(expr) if isinstance(e, Access))


def parts_of(equation: Equation) -> tuple[Expr, ...]:
    """Target, value and guard."""
    guard = () if equation.guard is None else (equation.guard,)
    return (equation.target, equation.value, *guard)


def all_equations(statements: Sequence[Statement]) -> Iterator[Equation]:
    """All equations in text order."""
    for statement in statements:
        if isinstance(statement, Nest):
            yield from all_equations(statement.body)
        else:
            yield statement


def size_of(statement: Statement) -> int:
    """How many instances of equations run."""
    if isinstance(statement, Equation):
        return 1
    return prod(x.extent for x in statement.loops) * sum(size_of(s) for s in statement.body)


def offset_of(nest: Nest, path: Sequence[int]) -> int:
    """Instances that run before the statement at ``path`` in the first iterations around it."""
    before = sum(size_of(s) for s in nest.body[: path[0]])
    child = nest.body[path[0]]
    return before + (offset_of(child, path[1:]) if isinstance(child, Nest) else 0)


def binds(statement: Statement) -> bool:
    """Whether there is a ``B`` loop in a statement."""
    if isinstance(statement, Equation):
        return False
    return any(x.kind == "B" for x in statement.loops) or any(binds(s) for s in statement.body)


def launches(nest: Nest) -> frozenset[tuple[tuple[int, ...], int]]:
    """The loops that launch the kernel: those around all ``B`` loops of the nest."""
    found: list[tuple[tuple[int, ...], int]] = []
    path: tuple[int, ...] = ()
    while binds(nest):
        for k, loop in enumerate(nest.loops):
            if loop.kind == "B":
                return frozenset(found)
            found.append((path, k))
        inner = [(i, s) for i, s in enumerate(nest.body) if binds(s)]
        if len(inner) > 1:
            return frozenset(found)
        child = inner[0][1]
        if not isinstance(child, Nest):
            raise TypeError(child)
        path, nest = (*path, inner[0][0]), child
    return frozenset()


def update_of(equation: Equation, loops: tuple[Loop, ...]) -> str | None:
    """The operation of a pure update, or None."""
    target = equation.target
    parts = (*target.subscripts, equation.value, *([equation.guard] if equation.guard else []))
    own = [a for p in parts for a in accesses(p) if a.name == target.name]
    if len(own) != 1:
        return None
    if own[0].subscripts != target.subscripts and not _equal(own[0], target, loops):
        return None
    value = equation.value
    match value:
        case Binary(op="+" | "-"):
            op = "+"
        case Binary(op="*"):
            op = "*"
        case Call(function="max" | "min"):
            op = value.function
        case _:
            return None
    return op if _reached(value, own[0], op) else None


def _reached(value: Expr, own: Access, op: str) -> bool:
    if value is own:
        return True
    match value:
        case Binary() if value.op == "-" and op == "+":
            return _reached(value.left, own, op)
        case Binary() if value.op == op:
            return _reached(value.left, own, op) or _reached(value.right, own, op)
        case Call() if value.function == op:
            return any(_reached(a, own, op) for a in value.arguments)
    return False


def _equal(one: Access, other: Access, loops: tuple[Loop, ...]) -> bool:
    """Whether subscripts without tensors are the same functions of the indices."""
    pairs = list(zip(one.subscripts, other.subscripts, strict=True))
    if any(isinstance(n, Access) for p in pairs for e in p for n in nodes_of(e)):
        return False
    writer = Writer.__new__(Writer)
    writer.single, writer.context = False, "f64"
    names = [x.index for x in loops]
    head = "lambda " + ", ".join(f"i_{n}" for n in names) + ": "
    texts = [f"{writer._text(a)} == {writer._text(b)}" for a, b in pairs]
    same = eval(head + (" and ".join(texts) or "True"))
    spans = (range(x.start, x.start + max(2, x.extent)) for x in loops)
    return all(same(*values) for values, _ in zip(product(*spans), range(2000), strict=False))


# ------------------------------------------------------------------ legality


Key = tuple[Nest, tuple[Nest, ...]]


def keys_of(compiled: Compiled) -> tuple[Key, ...]:
    """For each nest what its legality depends on: itself, and who wrote its tensors before."""
    found: list[Key] = []
    for i, nest in enumerate(compiled.nests):
        before = [n for n in compiled.nests[:i] if not n.written.isdisjoint(nest.written)]
        found.append((nest.nest, tuple(n.nest for n in before)))
    return tuple(found)


def doubtful(compiled: Compiled, clean: Container[Key]) -> frozenset[int]:
    """The nests that must be logged to say whether the program is legal."""
    wanted: set[int] = set()
    for i, key in enumerate(keys_of(compiled)):
        if key not in clean:
            nest = compiled.nests[i]
            wanted.add(i)
            wanted |= {
                k for k in range(i) if not compiled.nests[k].written.isdisjoint(nest.written)
            }
    return frozenset(wanted)


def illegal(compiled: Compiled, outcome: Outcome, clean: set[Key]) -> list[str]:
    """What a run shows to be illegal, as ``kind: words``. Nests in ``clean`` are passed over.

    Nests without faults are added to ``clean``. The run has logged all ``doubtful`` nests.
    """
    found = [*structure(compiled)]
    for i, key in enumerate(keys_of(compiled)):
        if key in clean:
            continue
        nest = compiled.nests[i]
        before = {
            (o.tensor, k)
            for j in range(i)
            if not compiled.nests[j].written.isdisjoint(nest.written)
            for n in compiled.nests[j].nodes
            for o in n.occurrences
            if o.write
            for k in outcome.logs[j][o.log]
        }
        faults = list(_Nest(nest, outcome.logs[i], before).faults())
        found += [f"{fault} (nest {i})" for fault in faults]
        if not faults:
            clean.add(key)
    for name, cells in outcome.cells.items():
        if name not in compiled.signed.signature.by_name:
            rank = _rank(compiled, name)
            for key_ in cells:
                coordinates = decoded(key_)[-rank:] if rank else ()
                if any(c < 0 for c in coordinates):
                    found.append(f"out-of-bounds: {name} is written at {list(coordinates)}")
                    break
    return found


def _rank(compiled: Compiled, name: str) -> int:
    return next(
        len(n.equation.target.subscripts) for n in compiled.nodes if n.equation.target.name == name
    )


class _Nest:
    """The checks of one nest."""

    def __init__(self, code: NestCode, logs: list[list[int]], before: set[tuple[str, int]]) -> None:
        self.nodes, self.logs, self.before = code.nodes, logs, before
        self.grids = [_grid(n) for n in self.nodes]
        self.ids: dict[tuple[str, int], int] = {}

    def faults(self) -> Iterator[str]:
        """All faults, each kind and tensor once."""
        rows = self._rows()
        if rows is None:
            return
        found: dict[str, None] = {}
        for fault in (*self._starts(rows), *self._loops(rows), *self._blocks(rows)):
            found.setdefault(fault)
        yield from found

    def _rows(self) -> dict[str, Array] | None:
        """One row an access: node number, instance, address, write, own."""
        columns: dict[str, list[Array]] = {k: [] for k in ("node", "at", "id", "write", "own")}
        for number, node in enumerate(self.nodes):
            for o in node.occurrences:
                log = self.logs[o.log]
                ids = self.ids
                name = o.tensor
                numbers = np.fromiter(
                    (-1 if k < 0 else ids.setdefault((name, k), len(ids)) for k in log),
                    np.int64,
                    len(log),
                )
                at = np.nonzero(numbers >= 0)[0]
                columns["node"].append(np.full(len(at), number))
                columns["at"].append(at)
                columns["id"].append(numbers[at])
                columns["write"].append(np.full(len(at), o.write))
                columns["own"].append(np.full(len(at), o.write or o.own))
        if not columns["node"]:
            return None
        rows = {k: np.concatenate(v) for k, v in columns.items()}
        rows["time"] = np.zeros(len(rows["node"]), np.int64)
        for number, (node, grid) in enumerate(zip(self.nodes, self.grids, strict=True)):
            mine = rows["node"] == number
            times = np.full(len(grid[0]) if grid else 1, node.before)
            for loop, values, stride in zip(node.loops, grid, node.strides, strict=True):
                times = times + (values - loop.start) * stride
            rows["time"][mine] = times[rows["at"][mine]]
        # Only elements that the nest writes can be in conflict.
        written = np.zeros(len(self.ids), bool)
        written[rows["id"][rows["write"]]] = True
        mine = written[rows["id"]]
        self.names = list(self.ids)
        return {k: v[mine] for k, v in rows.items()}

    def _values(self, rows: dict[str, Array], wanted: Array, places: Sequence[int]) -> Array:
        """For the rows in ``wanted`` one number for the indices of the loops at ``places``."""
        result = np.zeros(len(wanted), np.int64)
        nodes = rows["node"][wanted]
        for number in np.unique(nodes):
            mine = nodes == number
            grid = self.grids[number]
            at = rows["at"][wanted][mine]
            value = np.zeros(len(at), np.int64)
            for place in places:
                value = value * 70000 + grid[place][at] if place < len(grid) else value
            result[mine] = value
        return result

    def _starts(self, rows: dict[str, Array]) -> Iterator[str]:
        """Updates: all elements fresh or none, and nobody else looks at a partial value."""
        order = np.lexsort((rows["time"], rows["id"]))
        ids, nodes = rows["id"][order], rows["node"][order]
        first = np.ones(len(ids), bool)
        first[1:] = ids[1:] != ids[:-1]
        beginner = np.full(len(self.names), -1)
        beginner[ids[first]] = nodes[first]
        for number, node in enumerate(self.nodes):
            if node.update is None:
                continue
            mine = np.unique(rows["id"][(rows["node"] == number) & rows["write"]])
            fresh = np.array(
                [beginner[i] == number and self.names[i] not in self.before for i in mine], bool
            )
            if fresh.any() and not fresh.all():
                yield f"mixed-first-touch: {node.equation.target.name} at {node.path}"
            if not fresh.any():
                continue
            used = {
                n.name
                for s in node.equation.target.subscripts
                for n in nodes_of(s)
                if isinstance(n, Index)
            }
            scope = node.equation.target.scope
            owners = _BLOCKS + _THREADS if scope == "l" else _BLOCKS if scope == "s" else ()
            reducing = [
                k
                for k, x in enumerate(node.loops)
                if x.extent > 1
                and x.index not in used
                and x.axis not in owners
                and (scope == "g" or k >= node.launch)
            ]
            if not reducing:
                continue
            depth = reducing[0]
            under = self._under(node.where[depth])
            wanted = np.nonzero(np.isin(rows["node"], under) & np.isin(rows["id"], mine[fresh]))[0]
            group = self._values(rows, wanted, range(depth))
            who = rows["node"][wanted]
            if _clash(group, rows["id"][wanted], who, np.ones(len(wanted), bool)) is not None:
                yield f"partial-value: {node.equation.target.name} at {node.path}"

    def _under(self, where: tuple[tuple[int, ...], int]) -> list[int]:
        return [i for i, n in enumerate(self.nodes) if where in n.where]

    def _loops(self, rows: dict[str, Array]) -> Iterator[str]:
        """No two iterations of a P, V or B loop touch an element of which one writes it."""
        seen = set()
        for node in self.nodes:
            for depth, (loop, where) in enumerate(zip(node.loops, node.where, strict=True)):
                if where in seen or loop.kind not in "PVB":
                    continue
                seen.add(where)
                under = self._under(where)
                wanted = np.nonzero(np.isin(rows["node"], under))[0]
                if not len(wanted):
                    continue
                outer: Sequence[int] = range(depth)
                if loop.kind == "B":
                    outer = [k for k in range(depth) if k < node.launch or node.loops[k].axis]
                group = self._values(rows, wanted, outer)
                now = self._values(rows, wanted, [depth])
                exempt = np.array([self._reduces(i, depth) for i in range(len(self.nodes))])
                who = np.where(
                    exempt[rows["node"][wanted]] & rows["own"][wanted], rows["node"][wanted], -1
                )
                ids, write = rows["id"][wanted], rows["write"][wanted]
                row = _clash(group, ids, now, write, who)
                if row is not None:
                    name = self.names[ids[row]][0]
                    yield f"loop-conflict: {loop.kind} loop {loop.index} at {where[0]}: {name}"

    def _reduces(self, number: int, depth: int) -> bool:
        """Whether the loop is a thread loop over which the node may accumulate."""
        node = self.nodes[number]
        if node.update is None or depth >= len(node.loops):
            return False
        loop = node.loops[depth]
        used = {
            n.name
            for s in node.equation.target.subscripts
            for n in nodes_of(s)
            if isinstance(n, Index)
        }
        scope = node.equation.target.scope
        return loop.axis in _THREADS and loop.index not in used and scope != "l"

    def _blocks(self, rows: dict[str, Array]) -> Iterator[str]:
        """Within a launch, a global element that is written belongs to one block."""
        axes = [[x.axis for x in n.loops] for n in self.nodes]
        if not any(a in _BLOCKS + _THREADS for each in axes for a in each):
            return
        everything = np.arange(len(rows["id"]))
        block = np.zeros(len(everything), np.int64)
        launch = np.zeros(len(everything), np.int64)
        for number in range(len(self.nodes)):
            mine = everything[rows["node"] == number]
            common = min(n.launch for n in self.nodes)
            launch[mine] = self._values(rows, mine, range(common))
            for axis in _BLOCKS:
                value = (
                    self._values(rows, mine, [axes[number].index(axis)])
                    if axis in axes[number]
                    else -1
                )
                block[mine] = block[mine] * 70000 + value + 1
        row = _clash(launch, rows["id"], block, rows["write"])
        if row is not None:
            yield f"cross-block: {self.names[rows['id'][row]][0]}"


def _grid(node: Node) -> list[Array]:
    """The values of every index, in the order of execution."""
    spans = [np.arange(x.start, x.start + x.extent) for x in node.loops]
    return [g.reshape(-1) for g in np.meshgrid(*spans, indexing="ij")]


def _clash(
    group: Array, ids: Array, now: Array, write: Array, who: Array | None = None
) -> int | None:
    """A row of an element that is written in its group and touched at different ``now``.

    Unless all that touch it are the same ``who``, which is not -1.
    """
    if not len(ids):
        return None
    order = np.lexsort((ids, group))
    change = np.ones(len(order), bool)
    change[1:] = (ids[order][1:] != ids[order][:-1]) | (group[order][1:] != group[order][:-1])
    starts = np.nonzero(change)[0]

    def differ(values: Array) -> Array:
        each = values[order]
        least: Array = np.minimum.reduceat(each, starts)
        most: Array = np.maximum.reduceat(each, starts)
        return np.not_equal(least, most)

    bad = np.logical_or.reduceat(write[order], starts) & differ(now)
    if who is not None:
        bad &= differ(who) | (np.minimum.reduceat(who[order], starts) < 0)
    return int(order[starts[np.nonzero(bad)[0][0]]]) if bad.any() else None


def structure(compiled: Compiled) -> Iterator[str]:
    """Rules about kinds of loops, axes and scopes, and the limits of the target."""
    home: dict[str, tuple[int, frozenset[str]]] = {}
    threads: dict[int, frozenset[str]] = {}
    for i, node in ((i, n) for i, nest in enumerate(compiled.nests) for n in nest.nodes):
        kinds = [x.kind for x in node.loops]
        axes = [x.axis for x in node.loops if x.axis]
        if len(axes) != len(set(axes)):
            yield f"axis-repeated: {node.path}"
        if kinds.count("P") > 1:
            yield f"parallel-nested: {node.path}"
        for loop, where in zip(node.loops, node.where, strict=True):
            if loop.kind == "V":
                if where != node.where[-1] or loop.extent not in (1, 2, 4, 8, 16):
                    yield f"vector-loop: {loop.index} at {where[0]}"
                wide = [
                    _BYTES.get(a.dtype, 8 if a.dtype == "i64" else 1)
                    for part in (node.equation.target, node.equation.value)
                    for a in accesses(part)
                    if any(
                        isinstance(n, Index) and n.name == loop.index
                        for s in a.subscripts
                        for n in nodes_of(s)
                    )
                ]
                if wide and max(wide) * loop.extent > 16:
                    yield f"over-limits: vector of {max(wide) * loop.extent} bytes at {where[0]}"
        mine = frozenset(a for a in axes if a in _THREADS)
        if threads.setdefault(i, mine) != mine:
            yield f"thread-structure: {node.path}"
        blocks = frozenset(a for a in axes if a in _BLOCKS)
        for access in (a for p in parts_of(node.equation) for a in accesses(p)):
            if access.scope != "g":
                here = (i, blocks)
                if home.setdefault(access.name, here) != here:
                    yield f"scope-lifetime: {access.name}"
    for i, nest in enumerate(compiled.nests):
        largest: dict[str, int] = {}
        for loop in (x for node in nest.nodes for x in node.loops):
            if loop.axis:
                largest[loop.axis] = max(largest.get(loop.axis, 0), loop.start + loop.extent)
        if any(extent > _LIMITS[a] for a, extent in largest.items()):
            yield f"over-limits: axis in nest {i}"
        if prod(n for a, n in largest.items() if a in _THREADS) > 1024:
            yield f"over-limits: threads in nest {i}"


def lanes(compiled: Compiled, outcome: Outcome) -> Iterator[str]:
    """Vector loops whose lanes are no neighbours: ``kind: words``."""
    shapes: dict[str, list[int]] = {}
    for name, cells in outcome.cells.items():
        if not cells or name not in {o.tensor for n in compiled.nodes for o in n.occurrences}:
            continue
        known = compiled.signed.signature.by_name.get(name)
        rank = len(known.shape) if known else _rank(compiled, name)
        coordinates = [decoded(k)[-rank:] if rank else () for k in cells]
        shapes[name] = [max(c[d] for c in coordinates) + 1 for d in range(rank)]
    logged = ((node, logs) for i, logs in outcome.logs.items() for node in compiled.nests[i].nodes)
    for node, logs in logged:
        if not node.loops or node.loops[-1].kind != "V":
            continue
        width = node.loops[-1].extent
        for o in node.occurrences:
            shape = shapes.get(o.tensor, [])
            rank = len(shape)
            log = logs[o.log]
            for start in range(0, len(log), width):
                keys = log[start : start + width]
                if any(k < 0 for k in keys):
                    if any(k >= 0 for k in keys):
                        yield f"vector-lanes: {o.tensor} in some lanes only at {node.path}"
                        break
                    continue
                flat = []
                for key in keys:
                    place = 0
                    for c, extent in zip(decoded(key)[-rank:] if rank else (), shape, strict=True):
                        place = place * extent + c
                    flat.append(place)
                steps = {b - a for a, b in pairwise(flat)}
                if steps <= {1} or (steps == {0} and not o.write):
                    continue
                yield f"vector-lanes: {o.tensor} is not contiguous at {node.path}: {flat}"
                break


# ------------------------------------------------------------------ both


_codes: Final[dict[tuple[Nest, bool], NestCode]] = {}


def compiled(signed: SignedProgram, single: bool = False) -> Compiled:
    """A program as Python. Raises Meaningless."""
    names = _names(signed)
    if len(_codes) > 4000:
        _codes.clear()
    codes = []
    for nest in signed.program.nests:
        key = nest, single
        if key not in _codes:
            _codes[key] = Writer(nest, single).compiled()
        codes.append(_codes[key])
    return Compiled(signed, tuple(codes), names)


def _names(signed: SignedProgram) -> tuple[str, ...]:
    """All tensors; raises Meaningless for names, annotations and ranks that do not agree."""
    forms = {v.name: (len(v.shape), "g", v.dtype) for v in signed.signature.variables}
    written = {e.target.name for e in all_equations(signed.program.nests)}
    for equation in all_equations(signed.program.nests):
        known = signed.signature.by_name.get(equation.target.name)
        if known is not None and known.role != "output":
            raise Meaningless(f"input-written: {known.name}")
        for access in (a for p in parts_of(equation) for a in accesses(p)):
            name, form = access.name, (len(access.subscripts), access.scope, access.dtype)
            if name not in forms and name not in written:
                raise Meaningless(f"unknown-name: {name}")
            if forms.setdefault(name, form) != form:
                raise Meaningless(f"annotation-conflict: {name}")
    return tuple(sorted(forms))


def outputs(compiled: Compiled, outcome: Outcome) -> tuple[dict[str, Array], str | None]:
    """The outputs of a run, and what is wrong with them."""
    found = {}
    for variable in compiled.signed.signature.outputs:
        array, fault = array_of(outcome.cells[variable.name], variable.shape)
        found[variable.name] = array
        if fault:
            return found, f"output-incomplete: {variable.name}: {fault}"
    return found, None
