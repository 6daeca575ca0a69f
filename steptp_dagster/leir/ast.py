"""The LEIR syntax tree: frozen, slotted dataclasses.

Constructors validate what the grammar demands and never simplify: the tree is exactly what was
written. ``pos`` is the offset of the node's first character in the text it was read from, or -1
for nodes that a program made; it takes no part in equality or hashing.

A program read from text is a ``Program``; together with its ``Signature`` (the known variables)
it is a ``SignedProgram`` (``signature.py``), which is what analyses, strategies, lowering and
verification take.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from steptp_dagster.leir.dtypes import DTYPES, SCOPES
from steptp_dagster.leir.literals import shortest
from steptp_dagster.leir.records import quickly_made

Kind = Literal["L", "P", "V", "U", "B"]
KINDS: Final[dict[str, str]] = {
    "L": "serial",
    "P": "parallel",
    "V": "vectorised",
    "U": "unrolled",
    "B": "bound to a GPU axis",
}
AXES: Final = ("bx", "by", "bz", "tx", "ty", "tz")
BLOCK_AXES: Final = ("bx", "by", "bz")
THREAD_AXES: Final = ("tx", "ty", "tz")

#: Function name -> number of arguments.
FUNCTIONS: Final[dict[str, int]] = {
    "exp": 1,
    "log": 1,
    "sqrt": 1,
    "abs": 1,
    "erf": 1,
    "max": 2,
    "min": 2,
    "if_then_else": 3,
    "tanh": 1,
    "sin": 1,
    "cos": 1,
    "floor": 1,
    "ceil": 1,
    "round": 1,
}
RESERVED_NAMES: Final = frozenset({*FUNCTIONS, "inf"})
ARITHMETIC: Final = ("+", "-", "*", "/", "//", "%", "**")
LOGICAL: Final = ("&", "|")
COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")

_INDEX = re.compile(r"[a-z]+\Z")
_TENSOR = re.compile(r"(?![BLPTUV])[A-Z][a-z]*\Z")


class InvalidNode(ValueError):
    """A node was constructed that no LEIR text can denote."""


@lru_cache(maxsize=4096)
def is_index_name(name: str) -> bool:
    """Whether ``name`` may name a loop index (lower-case, not reserved)."""
    return bool(_INDEX.match(name)) and name not in RESERVED_NAMES


@lru_cache(maxsize=4096)
def is_tensor_name(name: str) -> bool:
    """Whether ``name`` may name a tensor (a capital other than B L P T U V, then lower-case)."""
    return bool(_TENSOR.match(name))


def axis_of(index: str) -> str | None:
    """The hardware axis that an index name denotes (``tya`` -> ``ty``), or None."""
    return index[:2] if index[:2] in AXES else None


def _pos() -> int:
    return field(default=-1, compare=False, repr=False, kw_only=True)


@quickly_made
@dataclass(frozen=True, slots=True)
class Int:
    """An integer literal, never negative (``-3`` is ``Unary("-", Int(3))``)."""

    value: int
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse negative literals."""
        if self.value < 0:
            raise InvalidNode(f"an integer literal is not negative: {self.value}")


@dataclass(frozen=True, slots=True)
class Real:
    """A decimal literal, kept as decimal text in its shortest spelling (``literals.py``)."""

    text: str
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse other spellings: equal literals are equal nodes."""
        try:
            canonical = shortest(self.text)
        except ValueError as error:
            raise InvalidNode(f"not a decimal literal: {self.text!r} ({error})") from error
        if canonical != self.text:
            raise InvalidNode(f"not the shortest spelling {canonical!r}: {self.text!r}")

    @property
    def value(self) -> float:
        """The literal rounded to a binary64 float."""
        return float(self.text)


@dataclass(frozen=True, slots=True)
class Inf:
    """The literal ``inf``."""

    pos: int = _pos()


@quickly_made
@dataclass(frozen=True, slots=True)
class Index:
    """A use of a loop index as a value."""

    name: str
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse names that no loop can bind."""
        if not is_index_name(self.name):
            raise InvalidNode(f"not an index name: {self.name!r}")


@quickly_made
@dataclass(frozen=True, slots=True)
class Access:
    """A tensor with its annotations and subscripts; a scalar has none."""

    name: str
    dtype: str
    scope: str
    subscripts: tuple["Expr", ...] = ()
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse unknown names, dtypes and scopes."""
        if not is_tensor_name(self.name):
            raise InvalidNode(f"not a tensor name: {self.name!r}")
        if self.dtype not in DTYPES:
            raise InvalidNode(f"unknown dtype {self.dtype!r}; one of {' '.join(DTYPES)}")
        if self.scope not in SCOPES:
            raise InvalidNode(f"unknown scope {self.scope!r}; one of {' '.join(SCOPES)}")


@quickly_made
@dataclass(frozen=True, slots=True)
class Unary:
    """Unary minus."""

    op: Literal["-"]
    operand: "Expr"
    pos: int = _pos()


@quickly_made
@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic (``+ - * / // % **``) or a strict logical operator (``& |``)."""

    op: str
    left: "Expr"
    right: "Expr"
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse unknown operators."""
        if self.op not in ARITHMETIC and self.op not in LOGICAL:
            raise InvalidNode(f"unknown operator {self.op!r}")


@quickly_made
@dataclass(frozen=True, slots=True)
class Compare:
    """A chain of comparisons, ``operands[0] ops[0] operands[1] ...``: their conjunction."""

    operands: tuple["Expr", ...]
    ops: tuple[str, ...]
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse chains whose parts do not fit together."""
        if len(self.operands) != len(self.ops) + 1 or not self.ops:
            raise InvalidNode("a comparison has one operand more than operators")
        if any(op not in COMPARISONS for op in self.ops):
            raise InvalidNode(f"unknown comparison in {self.ops}")


@quickly_made
@dataclass(frozen=True, slots=True)
class Call:
    """A function application; ``if_then_else`` is lazy."""

    function: str
    arguments: tuple["Expr", ...]
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse unknown functions and wrong argument counts."""
        arity = FUNCTIONS.get(self.function)
        if arity is None:
            raise InvalidNode(f"unknown function {self.function!r}; one of {' '.join(FUNCTIONS)}")
        if len(self.arguments) != arity:
            raise InvalidNode(
                f"{self.function} takes {arity} argument(s), not {len(self.arguments)}"
            )


Expr = Int | Real | Inf | Index | Access | Unary | Binary | Compare | Call


@quickly_made
@dataclass(frozen=True, slots=True)
class Loop:
    """``KIND^{extent}_{index=start}``: the index runs over start .. start + extent - 1.

    Raises InvalidNode for an unknown kind, an extent < 1, a negative start, a ``B`` index that
    does not start with an axis, or another kind's index that does.
    """

    kind: Kind
    index: str
    extent: int
    start: int = 0
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse loops that the grammar excludes."""
        if self.kind not in KINDS:
            raise InvalidNode(f"unknown loop kind {self.kind!r}; one of {' '.join(KINDS)}")
        if not is_index_name(self.index):
            raise InvalidNode(f"not an index name: {self.index!r}")
        if self.extent < 1:
            raise InvalidNode(f"the extent of loop {self.index!r} is not positive: {self.extent}")
        if self.start < 0:
            raise InvalidNode(f"the start of loop {self.index!r} is negative: {self.start}")
        if (self.kind == "B") != (axis_of(self.index) is not None):
            raise InvalidNode(
                f"index {self.index!r} of a {self.kind} loop: a B index starts with one of "
                f"{' '.join(AXES)}, no other index does"
            )

    @property
    def axis(self) -> str | None:
        """The hardware axis of a ``B`` loop, or None."""
        return axis_of(self.index)


@quickly_made
@dataclass(frozen=True, slots=True)
class Equation:
    """``target = value : guard``; without a guard it holds in every iteration."""

    target: Access
    value: Expr
    guard: Expr | None = None
    pos: int = _pos()


@quickly_made
@dataclass(frozen=True, slots=True)
class Nest:
    """One or more loops around a body of equations and nests, executed in order."""

    loops: tuple[Loop, ...]
    body: tuple["Statement", ...]
    pos: int = _pos()

    def __post_init__(self) -> None:
        """Refuse nests without loops or without statements."""
        if not self.loops:
            raise InvalidNode("a nest has at least one loop")
        if not self.body:
            raise InvalidNode("a nest has at least one statement")


Statement = Equation | Nest


@dataclass(frozen=True, slots=True)
class Program:
    """Top-level nests in text order. Each is a kernel."""

    nests: tuple[Nest, ...]

    def __post_init__(self) -> None:
        """Refuse empty programs."""
        if not self.nests:
            raise InvalidNode("a program has at least one nest")
