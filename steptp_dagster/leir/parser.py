"""Reading LEIR text: a hand-written recursive-descent parser with positions.

It accepts, and normalises, what published LEIR contains beyond the canonical form: white space
anywhere between tokens, redundant parentheses, subscripts before superscripts, the sibling
spelling ``loops1[eq;]loops2[eq;];`` (loops2 stands inside loops1, after eq), and annotations of
reads that contradict the defining occurrence. Reading and checking are apart: a program that
breaks rules of validity still parses.
"""

from dataclasses import dataclass
from typing import Final, NoReturn, cast

from steptp_dagster.leir.annotations import normalise
from steptp_dagster.leir.ast import (
    COMPARISONS,
    FUNCTIONS,
    KINDS,
    RESERVED_NAMES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    InvalidNode,
    Kind,
    Loop,
    Nest,
    Program,
    Real,
    Statement,
    Unary,
    is_tensor_name,
)
from steptp_dagster.leir.dtypes import DTYPES, SCOPES
from steptp_dagster.leir.lexer import ANNOTATIONS, END, header, open_brackets, split
from steptp_dagster.leir.literals import MAX_DIGITS, shortest
from steptp_dagster.leir.notes import Note
from steptp_dagster.leir.printer import COMPARE_LEVEL, LEVELS
from steptp_dagster.leir.signature import Signature
from steptp_dagster.leir.texterror import TextError, position

#: Deepest nesting of brackets (parentheses, calls, subscripts, nests) and powers that is read, and
#: the greatest height of an expression, in operators and calls one below the other (a sum of n
#: terms has height n). They keep all recursion over trees far from Python's own limit.
MAX_BRACKETS: Final = 100
MAX_HEIGHT: Final = 200
#: Largest loop extent and start.
MAX_EXTENT: Final = 2**63 - 1

_TENSOR_NAME = "a tensor name (a capital other than B L P T U V, then lower-case letters)"
_OPERATOR = "an operator"
_LOOP = "a loop such as L^{16}_{a=0}"
_STATEMENT = ("a tensor such as A^{f32,g}_{a}", _LOOP)
_OPERAND = ("a number", "an index", "a tensor", "a function", "'('", "'-'")
_BINARY_LEVELS: Final = {op: n for op, n in LEVELS.items() if op != "**"} | dict.fromkeys(
    COMPARISONS, COMPARE_LEVEL
)
_ENDS_EARLY = (END, ";", ")", "]", "}")


class ParseError(TextError):
    """Text that is no LEIR program, with the position of the first token that cannot stand."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A program as written, and notes on what was normalised while reading."""

    program: Program
    notes: tuple[Note, ...] = ()


def parse(text: str, signature: Signature | None = None) -> Parsed:
    """Read a program. Never simplifies, never checks validity.

    Where ``signature`` is given, its dtypes (and scope ``g``) define the annotations of the known
    variables. Raises ParseError.
    """
    parser = _Parser(text)
    nests: list[Nest] = []
    try:
        while True:
            nests.append(parser.nest())
            if parser.at_end():
                break
    except RecursionError:
        # The caller's own stack was nearly full: the depth limit could not take effect.
        parser.fail_at(parser.start(), "less nesting, or a caller with more stack left")
    program, notes = normalise(Program(tuple(nests)), signature, text, parser.annotations)
    return Parsed(program, tuple(sorted((*parser.notes, *notes), key=lambda note: note.pos)))


def parse_expr(text: str) -> Expr:
    """Read one expression. Raises ParseError."""
    parser = _Parser(text)
    expr = parser.expr(1)
    if not parser.at_end():
        parser.fail(_OPERATOR, "the end of the text")
    return expr


class _Parser:
    """The token cursor and one method per rule of the grammar.

    ``height`` is the height of the expression read last, ``depth`` the number of brackets and
    powers around the cursor; both are bounded.
    """

    __slots__ = ("annotations", "depth", "height", "i", "notes", "starts", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        if not text.isascii():
            bad = next(n for n, char in enumerate(text) if not char.isascii())
            self.fail_at(bad, "only ASCII characters", found=text[bad])
        self.tokens, self.starts = split(text)
        self.i = 0
        self.depth = 0
        self.height = 0
        self.notes: list[Note] = []
        self.annotations: dict[str, set[tuple[str, str]]] = {}

    # -- errors ------------------------------------------------------------------------------

    def start(self) -> int:
        """Offset of the current token."""
        return self.starts[self.i]

    def at_end(self) -> bool:
        """Whether all tokens were read."""
        return self.tokens[self.i] == END

    def fail(self, *expected: str) -> NoReturn:
        """Raise at the current token."""
        token = self.tokens[self.i]
        hint = ""
        if token in _ENDS_EARLY:
            unclosed = open_brackets(split(self.text), self.i)
            if unclosed and f"'{unclosed[-1][0]}'" in expected and unclosed[-1][0] != token:
                closer, offset = unclosed[-1]
                line, column = position(self.text, offset)
                opener = {"]": "[", ")": "(", "}": "{"}[closer]
                hint = f"; the '{opener}' at line {line}, column {column} is not closed"
        found = "the end of the text" if token == END else _quoted(token)
        message = f"expected {_either(expected)}, found {found}{hint}"
        raise ParseError.at(message, self.text, self.start(), expected)

    def fail_at(self, offset: int, expected: str, *, found: str = "") -> NoReturn:
        """Raise at an offset, about what stands there."""
        tail = f", found {_quoted(found)}" if found else ""
        raise ParseError.at(f"expected {expected}{tail}", self.text, offset, (expected,))

    def take(self, token: str, *alternatives: str) -> None:
        """Step over ``token``; ``alternatives`` name what else could have stood here."""
        if self.tokens[self.i] != token:
            self.fail(*alternatives, f"'{token}'")
        self.i += 1

    def deeper(self) -> None:
        """Count one more bracket or power around the cursor."""
        self.depth += 1
        if self.depth > MAX_BRACKETS:
            self.fail_at(self.start(), f"at most {MAX_BRACKETS} levels of brackets and powers")

    def too_high(self) -> NoReturn:
        """Raise for an expression beyond the limit."""
        self.fail_at(self.start(), f"at most {MAX_HEIGHT} operators and calls below one another")

    # -- statements --------------------------------------------------------------------------

    def nest(self) -> Nest:
        """Loops, a body, and what closes it."""
        pos = self.start()
        loops = [self.loop()]
        while self.tokens[self.i][:1] in KINDS:
            loops.append(self.loop())
        self.take("[", _LOOP)
        self.deeper()
        body: list[Statement] = [self.statement()]
        while self.tokens[self.i] != "]":
            body.append(self.statement("']'"))
        self.i += 1
        if self.tokens[self.i][:1] in KINDS:
            self.notes.append(
                Note.at(
                    "a nest follows ']' without ';': read as the last statement of the nest "
                    "before it",
                    self.text,
                    self.start(),
                )
            )
            body.append(self.nest())
        else:
            self.take(";")
        self.depth -= 1
        return Nest(tuple(loops), tuple(body), pos=pos)

    def loop(self) -> Loop:
        """One loop header, in either order of its two parts."""
        pos = self.start()
        token = self.tokens[self.i]
        whole = header(token)
        if whole is not None:
            self.i += 1
            kind, extent, index, start = whole[:4]
            at = [pos + offset for offset in whole[4:]]
        else:
            kind = token
            if kind not in KINDS:
                if kind[:1].isupper() and self.tokens[self.i + 1] in ("^{", "_{"):
                    self.fail_at(pos, f"a loop kind, one of {' '.join(KINDS)}", found=kind)
                self.fail(_LOOP)
            self.i += 1
            if self.tokens[self.i] == "_{":
                (index, start), ends = self.loop_start()
                extent, first = self.loop_extent()
            else:
                extent, first = self.loop_extent()
                (index, start), ends = self.loop_start()
            at = [first, *ends]
        try:
            return Loop(
                cast("Kind", kind),
                index,
                self.natural(extent, at[0]),
                self.natural(start, at[2]),
                pos=pos,
            )
        except InvalidNode:
            self.fail_loop(kind, extent, index, at)

    def fail_loop(self, kind: str, extent: str, index: str, at: list[int]) -> NoReturn:
        """Raise for a loop that is well written but that no program may have."""
        if not extent.strip("0"):
            self.fail_at(at[0], "an extent of at least 1", found=extent)
        if index in RESERVED_NAMES:
            self.fail_at(at[1], "an index name that is no function name", found=index)
        rule = "that starts with bx, by, bz, tx, ty or tz in a B loop"
        if kind != "B":
            rule = "that does not start with an axis (bx by bz tx ty tz) outside B loops"
        self.fail_at(at[1], f"an index {rule}", found=index)

    def loop_extent(self) -> tuple[str, int]:
        """``^{extent}``: the text of the extent and its offset."""
        self.take("^{")
        extent = self.digits("a positive integer extent")
        self.take("}")
        return extent

    def loop_start(self) -> tuple[tuple[str, str], tuple[int, int]]:
        """``_{index=start}``: both texts, then their offsets."""
        self.take("_{")
        index, pos = self.tokens[self.i], self.start()
        if not (index.isalpha() and index.islower()):
            self.fail("a lower-case index name")
        self.i += 1
        self.take("=")
        start, start_pos = self.digits("an integer start")
        self.take("}")
        return (index, start), (pos, start_pos)

    def digits(self, what: str) -> tuple[str, int]:
        """A natural number: its text and offset."""
        token, pos = self.tokens[self.i], self.start()
        if not token.isdigit():
            self.fail(what)
        self.i += 1
        return token, pos

    def natural(self, digits: str, pos: int) -> int:
        """The value of an extent or start, which must fit a signed 64-bit integer."""
        if len(digits) > MAX_DIGITS or int(digits) > MAX_EXTENT:
            self.fail_at(pos, f"a number of at most {MAX_EXTENT}", found=digits)
        return int(digits)

    def statement(self, *alternatives: str) -> Statement:
        """A nest or an equation."""
        token = self.tokens[self.i]
        if token[:1] in KINDS:
            if token not in KINDS and self.tokens[self.i + 1] in (*ANNOTATIONS, "="):
                self.fail(_TENSOR_NAME)
            return self.nest()
        pos = self.start()
        if not token[:1].isupper():
            self.fail(*_STATEMENT, *alternatives)
        self.i += 1
        target = self.access(token, pos)
        self.take("=")
        value = self.expr(1)
        guard = None
        if self.tokens[self.i] == ":":
            self.i += 1
            guard = self.expr(1)
            self.take(";", _OPERATOR)
        else:
            self.take(";", _OPERATOR, "':'")
        return Equation(target, value, guard, pos=pos)

    # -- expressions -------------------------------------------------------------------------

    def expr(self, minimum: int) -> Expr:
        """An expression; its operators outside brackets bind at least as tightly as ``minimum``."""
        pos = self.starts[self.i]
        left = self.operand()
        height = self.height
        while True:
            op = self.tokens[self.i]
            level = _BINARY_LEVELS.get(op, 0)
            if level < minimum or level == 0:
                self.height = height
                return left
            if level == COMPARE_LEVEL:
                operands, ops = [left], []
                while op in COMPARISONS:
                    self.i += 1
                    ops.append(op)
                    operands.append(self.expr(COMPARE_LEVEL + 1))
                    height = max(height, self.height)
                    op = self.tokens[self.i]
                left = Compare(tuple(operands), tuple(ops), pos=pos)
            else:
                self.i += 1
                right = self.expr(level + 1)
                left = Binary(op, left, right, pos=pos)
            height = max(height, self.height) + 1
            if height > MAX_HEIGHT:
                self.too_high()

    def operand(self) -> Expr:
        """Minus signs, an atom, and its exponent: what stands between binary operators."""
        signs: list[int] = []
        while self.tokens[self.i] == "-":
            signs.append(self.starts[self.i])
            self.i += 1
        pos = self.starts[self.i]
        token = self.tokens[self.i]
        node: Expr
        if "A" <= token[:1] <= "Z":
            self.i += 1
            node = self.access(token, pos)
        elif token == "(":
            self.i += 1
            self.deeper()
            node = self.expr(1)
            self.take(")", _OPERATOR)
            self.depth -= 1
        elif self.tokens[self.i + 1] == "(" and token in FUNCTIONS:
            node = self.call(token, pos)
        else:
            node = self.leaf(token, pos)
        if self.tokens[self.i] == "**":
            self.i += 1
            height = self.height
            self.deeper()
            node = Binary("**", node, self.operand(), pos=pos)
            self.depth -= 1
            self.height = max(height, self.height) + 1
        if signs:
            self.height += len(signs)
            for sign in reversed(signs):
                node = Unary("-", node, pos=sign)
        if self.height > MAX_HEIGHT:
            self.too_high()
        return node

    def leaf(self, token: str, pos: int) -> Expr:
        """A number, an index or ``inf``."""
        self.height = 1
        if token.isdigit():
            if len(token) > MAX_DIGITS:
                self.fail_at(pos, f"a number of at most {MAX_DIGITS} digits", found=token)
            self.i += 1
            return Int(int(token), pos=pos)
        if token[:1].isdigit():
            try:
                real = Real(shortest(token), pos=pos)
            except ValueError as error:
                self.fail_at(pos, f"a decimal number ({error})", found=token)
            self.i += 1
            return real
        if token == "inf":
            self.i += 1
            return Inf(pos=pos)
        if self.tokens[self.i + 1] == "(" and token[:1].isalpha():
            self.fail_at(pos, f"a function, one of {' '.join(FUNCTIONS)}", found=token)
        try:
            index = Index(token, pos=pos)
        except InvalidNode:
            self.fail(*_OPERAND)
        self.i += 1
        return index

    def call(self, function: str, pos: int) -> Call:
        """A function with its arguments; the cursor stands on the name."""
        self.i += 2
        self.deeper()
        arity = FUNCTIONS[function]
        arguments = [self.expr(1)]
        height = self.height
        while self.tokens[self.i] == "," and len(arguments) < arity:
            self.i += 1
            arguments.append(self.expr(1))
            height = max(height, self.height)
        if len(arguments) < arity or self.tokens[self.i] == ",":
            if self.tokens[self.i] in (",", ")"):
                wanted = f"{arity} argument{'s' if arity > 1 else ''} of {function}"
                self.fail_at(self.start(), wanted, found=self.tokens[self.i])
            self.fail(_OPERATOR, "','")
        self.take(")", _OPERATOR)
        self.depth -= 1
        self.height = height + 1
        return Call(function, tuple(arguments), pos=pos)

    def access(self, name: str, pos: int) -> Access:
        """Annotation and subscripts, in either order; the cursor stands behind the name."""
        if self.tokens[self.i] == "^{" and self.tokens[self.i + 1].isdigit():
            self.fail_at(pos, f"a loop kind, one of {' '.join(KINDS)}", found=name)
        if not is_tensor_name(name):
            self.i -= 1
            self.fail(_TENSOR_NAME)
        subscripts: tuple[Expr, ...] = ()
        height = 0
        if self.tokens[self.i] == "_{":
            subscripts = self.subscripts()
            height = self.height
            dtype, scope = self.annotation("^{")
        else:
            dtype, scope = self.annotation("'_{'")
            if self.tokens[self.i] == "_{":
                subscripts = self.subscripts()
                height = self.height
        self.height = height + 1
        self.annotations.setdefault(name, set()).add((dtype, scope))
        return Access(name, dtype, scope, subscripts, pos=pos)

    def annotation(self, *alternatives: str) -> tuple[str, str]:
        """``^{dtype,scope}``."""
        found = ANNOTATIONS.get(self.tokens[self.i])
        if found is not None:
            self.i += 1
            return found
        self.take("^{", *alternatives)
        dtype = self.tokens[self.i]
        if dtype not in DTYPES:
            self.fail(f"a dtype, one of {' '.join(DTYPES)}")
        self.i += 1
        self.take(",")
        scope = self.tokens[self.i]
        if scope not in SCOPES:
            self.fail(f"a scope, one of {' '.join(SCOPES)}")
        self.i += 1
        self.take("}")
        return dtype, scope

    def subscripts(self) -> tuple[Expr, ...]:
        """``_{expr,...}``; ``height`` is then that of the highest one."""
        self.i += 1
        self.deeper()
        found = [self.expr(1)]
        height = self.height
        while self.tokens[self.i] == ",":
            self.i += 1
            found.append(self.expr(1))
            height = max(height, self.height)
        self.take("}", _OPERATOR, "','")
        self.depth -= 1
        self.height = height
        return tuple(found)


def _quoted(token: str) -> str:
    """A token as error messages show it."""
    return repr(token if len(token) <= 24 else f"{token[:21]}...")


def _either(options: tuple[str, ...]) -> str:
    """``a, b or c``."""
    if len(options) == 1:
        return options[0]
    return f"{', '.join(options[:-1])} or {options[-1]}"
