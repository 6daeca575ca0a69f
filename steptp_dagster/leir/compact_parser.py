"""Reading the compact spelling of LEIR (``compact`` says what it leaves out).

Expressions are those of the paper's spelling, read by the same parser; this module has what
differs: loops, annotations, subscripts, updates, and what ends a statement. White space may stand
between tokens, a ``;`` also behind a bracket and before one.

```
program    = dtype ";" statement ([";"] statement)* [";"]
statement  = nest | equation          (top level: nests only)
nest       = (loop+ | '"') (equation | "{" statement ([";"] statement)* [";"] "}")
loop       = kind index extent ["+" start]
equation   = tensor ("=" | "+=" | "-=" | "*=" | "/=" | ">?=" | "<?=") expr [":" expr]
tensor     = Name ["^" (dtype | scope | dtype scope)] ["[" expr ("," expr)* "]"]
```
A tensor without annotation has that of the tensor's last use in the text; a first use the
program's dtype and scope ``g``. ``if`` is ``if_then_else``.
"""

import re
from itertools import accumulate
from pathlib import Path
from typing import Final, NoReturn, cast

from steptp_dagster.leir.annotations import normalise
from steptp_dagster.leir.ast import (
    KINDS,
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    InvalidNode,
    Kind,
    Loop,
    Nest,
    Program,
    Statement,
    is_tensor_name,
)
from steptp_dagster.leir.compact import DITTO, LONG_NAME, SCOPE, SHORT_NAME, UPDATES
from steptp_dagster.leir.dtypes import DTYPES, SCOPES
from steptp_dagster.leir.fileform import ReadFile, program_text, read, read_signature
from steptp_dagster.leir.lexer import END, LOOKAHEAD, Tokens
from steptp_dagster.leir.parser import MAX_HEIGHT, Parsed, ParseError, _Parser
from steptp_dagster.leir.signature import Signature, SignedProgram
from steptp_dagster.leir.texterror import position

_TOKEN: Final = re.compile(
    rf"""[LPVUB][a-z]+[0-9]+(?:\+[0-9]+)?
      | \^(?:{"|".join(DTYPES)})?(?:{"|".join(SCOPES)})?(?![A-Za-z0-9])
      | [A-Za-z]+(?:_[A-Za-z]+)*
      | [0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?
      | >\?=|<\?=|\*\*|//|<=|>=|==|!=|[-+*/]=
      | \s+
      | .""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ANNOTATION: Final = re.compile(rf"\^(?=.)({'|'.join(DTYPES)})?({'|'.join(SCOPES)})?\Z")
_LOOP: Final = re.compile(r"([LPVUB])([a-z]+)([0-9]+)(?:\+([0-9]+))?\Z")
_START: Final = re.compile(r"\s*(?:f16|bf16|f32|f64|[iu][0-9]+|bool)\s*;", re.ASCII)
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}
_EXAMPLE: Final = "a loop such as La16"


def parse_compact(text: str, signature: Signature | None = None) -> Parsed:
    """Read a program in the compact spelling; as ``parse``. Raises ParseError."""
    reader = _Reader(text)
    try:
        nests = reader.program()
    except RecursionError:
        reader.fail_at(reader.start(), "less nesting, or a caller with more stack left")
    program, notes = normalise(Program(nests), signature, text, reader.annotations)
    return Parsed(program, notes)


def is_compact(text: str) -> bool:
    """Whether a program's text (with or without header lines) is in the compact spelling.

    >>> is_compact("f32;La4D[a]=1"), is_compact("L^{4}_{a=0}[D^{f32,g}_{a}=1;];")
    (True, False)
    """
    return _START.match(program_text(text)) is not None


def read_either(
    text: str, *, inherit: Signature | None = None, base: Path | None = None
) -> ReadFile:
    """Read the file form in whichever spelling its program is; as ``fileform.read``."""
    if not is_compact(text):
        return read(text, inherit=inherit, base=base)
    signature = read_signature(text, base=base) or inherit
    if signature is None:
        # The error of a file without a header is the same in both spellings.
        return read(text)
    parsed = parse_compact(program_text(text), signature)
    return ReadFile(SignedProgram(parsed.program, signature), parsed.notes)


def _split(text: str) -> Tokens:
    """All tokens of ``text``, white space left out; END tokens at the end."""
    found = _TOKEN.findall(text)
    starts = accumulate(map(len, found), initial=0)
    kept = [(t, s) for t, s in zip(found, starts, strict=False) if not t.isspace()]
    texts = [t for t, _ in kept]
    # An index may have the name; only a function has a bracket behind it.
    texts = [
        LONG_NAME if (token, after) == (SHORT_NAME, "(") else token
        for token, after in zip(texts, [*texts[1:], END], strict=True)
    ]
    return Tokens([*texts, *[END] * LOOKAHEAD], [*(s for _, s in kept), *[len(text)] * LOOKAHEAD])


class _Reader(_Parser):
    """The parser of the paper's spelling with the rules that differ.

    ``known`` holds the last annotation of each tensor, ``last`` the loops of the last nest.
    """

    __slots__ = ("known", "last", "usual")

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.tokens, self.starts = _split(text)
        self.known: dict[str, tuple[str, str]] = {}
        self.last: tuple[Loop, ...] = ()
        self.usual = ("", SCOPE)

    def fail(self, *expected: str) -> NoReturn:
        """Raise at the current token."""
        token = self.tokens[self.i]
        options = tuple(dict.fromkeys(expected))
        message = f"expected {' or '.join(options)}, found "
        message += "the end of the text" if token == END else repr(token[:24])
        if token in (END, ";", *_CLOSERS.values()) and (unclosed := self.unclosed()):
            bracket, offset = unclosed[-1]
            if _CLOSERS[bracket] != token and f"'{_CLOSERS[bracket]}'" in options:
                line, column = position(self.text, offset)
                message += f"; the '{bracket}' at line {line}, column {column} is not closed"
        raise ParseError.at(message, self.text, self.start(), options)

    def unclosed(self) -> list[tuple[str, int]]:
        """The brackets open before the current token, outermost first, with their offsets."""
        stack: list[tuple[str, int]] = []
        for token, start in zip(self.tokens[: self.i], self.starts, strict=False):
            if token in _CLOSERS:
                stack.append((token, start))
            elif stack and token == _CLOSERS[stack[-1][0]]:
                stack.pop()
        return stack

    # -- statements --------------------------------------------------------------------------

    def program(self) -> tuple[Nest, ...]:
        """The usual dtype, then nests to the end of the text."""
        dtype = self.tokens[self.i]
        # A dtype that the lexer cuts into a word and a number.
        digits = self.tokens[self.i + 1]
        if digits.isdigit() and self.starts[self.i + 1] == self.start() + len(dtype):
            dtype += digits
            self.i += 1
        if dtype not in DTYPES:
            self.i = 0
            self.fail(f"the usual dtype, one of {' '.join(DTYPES)}")
        self.i += 1
        self.take(";")
        self.usual = (dtype, SCOPE)
        nests = [self.nest()]
        while not self.at_end():
            nests.append(self.nest())
        return tuple(nests)

    def nest(self) -> Nest:
        """Loops or ``"``, and an equation or a body in braces."""
        pos = self.start()
        loops = self.loops()
        self.last = loops
        if self.tokens[self.i] != "{":
            if not self.tokens[self.i][:1].isupper():
                self.fail("'{'", "a tensor such as A[a]", _EXAMPLE)
            self.deeper()
            equation = self.equation()
            self.depth -= 1
            return Nest(loops, (equation,), pos=pos)
        self.i += 1
        self.deeper()
        body = [self.statement()]
        while self.tokens[self.i] != "}":
            body.append(self.statement("'}'"))
        self.i += 1
        self.skip()
        self.depth -= 1
        return Nest(loops, tuple(body), pos=pos)

    def loops(self) -> tuple[Loop, ...]:
        """One or more loops, or those of the nest before."""
        if self.tokens[self.i] == DITTO:
            if not self.last:
                self.fail_at(self.start(), f"{_EXAMPLE} in the first nest", found=DITTO)
            self.i += 1
            return self.last
        found = [self.loop()]
        while self.tokens[self.i][:1] in KINDS:
            found.append(self.loop())
        return tuple(found)

    def loop(self) -> Loop:
        """``La16``, or ``La16+2`` for a loop that starts at 2."""
        pos = self.start()
        match = _LOOP.match(self.tokens[self.i])
        if match is None:
            self.fail(_EXAMPLE, f"'{DITTO}'")
        self.i += 1
        kind, index, extent, start = match[1], match[2], match[3], match[4] or "0"
        at = [pos + max(match.start(part), 0) for part in (3, 2, 4)]
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

    def statement(self, *alternatives: str) -> Statement:
        """A nest or an equation."""
        token = self.tokens[self.i]
        if token == DITTO or token[:1] in KINDS:
            return self.nest()
        if not token[:1].isupper():
            self.fail("a tensor such as A[a]", _EXAMPLE, *alternatives)
        return self.equation()

    def equation(self) -> Equation:
        """A target, ``=`` or an update, the value, and a guard; with the ``;`` behind it."""
        pos, name = self.start(), self.tokens[self.i]
        self.i += 1
        target = self.access(name, pos)
        height = self.height
        sign = self.tokens[self.i]
        if sign != "=" and sign not in UPDATES:
            self.fail("'='", *(f"'{update}'" for update in UPDATES))
        self.i += 1
        value = self.expr(1)
        if sign in UPDATES:
            value = self.updated(target, UPDATES[sign], value)
            self.height = max(height, self.height) + 1
            if self.height > MAX_HEIGHT:
                self.too_high()
        guard = None
        if self.tokens[self.i] == ":":
            self.i += 1
            guard = self.expr(1)
        if self.tokens[self.i] not in ("}", END):
            # What could have gone on here: an operator, or what ends the equation.
            self.take(";", "an operator", "'}'")
            self.skip()
        return Equation(target, value, guard, pos=pos)

    def updated(self, target: Access, operation: str, operand: Expr) -> Expr:
        """The value of an update, in which the target stands first."""
        if operation in ("max", "min"):
            return Call(operation, (target, operand), pos=target.pos)
        return Binary(operation, target, operand, pos=target.pos)

    def skip(self) -> None:
        """Step over ``;`` that say nothing."""
        while self.tokens[self.i] == ";":
            self.i += 1

    # -- expressions -------------------------------------------------------------------------

    def access(self, name: str, pos: int) -> Access:
        """Annotation and subscripts, where there are any; the cursor stands behind the name."""
        if not is_tensor_name(name):
            self.i -= 1
            self.fail("a tensor name (a capital other than B L P T U V, then lower-case letters)")
        dtype, scope = self.known.get(name, self.usual)
        token = self.tokens[self.i]
        if token[:1] == "^":
            said = _ANNOTATION.match(token)
            if said is None:
                self.fail("a dtype, a scope or both behind '^', such as ^f32s")
            dtype, scope = said[1] or dtype, said[2] or scope
            self.i += 1
        self.known[name] = (dtype, scope)
        self.annotations.setdefault(name, set()).add((dtype, scope))
        subscripts: tuple[Expr, ...] = ()
        height = 0
        if self.tokens[self.i] == "[":
            subscripts = self.subscripts()
            height = self.height
        self.height = height + 1
        return Access(name, dtype, scope, subscripts, pos=pos)

    def subscripts(self) -> tuple[Expr, ...]:
        """``[expr,...]``; ``height`` is then that of the highest one."""
        self.i += 1
        self.deeper()
        found = [self.expr(1)]
        height = self.height
        while self.tokens[self.i] == ",":
            self.i += 1
            found.append(self.expr(1))
            height = max(height, self.height)
        self.take("]", "an operator", "','")
        self.depth -= 1
        self.height = height
        return tuple(found)
