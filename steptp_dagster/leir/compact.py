"""The compact spelling of LEIR: the same programs in less than half the tokens.

It leaves out what a reader can fill in, and nothing else: a dtype that the text states once, scope
``g``, the start 0 of a loop, brackets and ``;`` around the only equation of a nest, loops that
are those of the nest before, the target where an equation updates it::

    L^{4}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a,c}*K^{f16,s}_{c};];
    f32;La4Lc8D[a]+=A[a,c]*K^f16s[c]

``parse_compact(compact(program)).program == program`` for every program
(``compact_parser``). Programs are exchanged, hashed and shown to people in the paper's spelling.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, get_args

from steptp_dagster.leir.ast import Access, Binary, Call, Equation, Expr, Loop, Nest, Program
from steptp_dagster.leir.fileform import header_text
from steptp_dagster.leir.printer import expr_text, to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, equations, expressions

Spelling = Literal["paper", "compact"]
SPELLINGS: Final[tuple[Spelling, ...]] = get_args(Spelling)

#: The scope that goes without saying.
SCOPE: Final = "g"
#: Loops that are those of the nest that began last before.
DITTO: Final = '"'
#: Spelling of an update -> the operator or function whose first operand is the target.
UPDATES: Final[dict[str, str]] = {
    "+=": "+",
    "-=": "-",
    "*=": "*",
    "/=": "/",
    ">?=": "max",
    "<?=": "min",
}
_UPDATE_OF: Final = {meaning: spelling for spelling, meaning in UPDATES.items()}
#: The function with a shorter name.
LONG_NAME: Final = "if_then_else"
SHORT_NAME: Final = "if"
#: What differs between the spellings inside an expression; other brackets do not occur there.
_DIFFERING: Final = re.compile(
    rf"(?P<name>[A-Z][a-z]*)\^\{{(?P<dtype>\w+),(?P<scope>\w)\}}(?P<open>_\{{)?"
    rf"|(?P<close>\}})|(?P<call>{LONG_NAME}\()"
)


def spell(program: Program, spelling: Spelling) -> str:
    """The text of a program in one of the spellings."""
    return compact(program) if spelling == "compact" else to_text(program)


def write(signed: SignedProgram, spelling: Spelling = "compact") -> str:
    """The file form: the header, then the text in one of the spellings on one line."""
    return f"{header_text(signed.signature)}{spell(signed.program, spelling)}\n"


def compact(program: Program) -> str:
    """The compact text of a program."""
    dtype = usual_dtype(program)
    return f"{dtype};{_Writer(dtype).body(program.nests)}"


def usual_dtype(program: Program) -> str:
    """The dtype of most tensors; of several with equally many the one first by name."""
    tensors: dict[str, str] = {}
    for located in equations(program):
        for access in _in_text_order(located.equation):
            tensors.setdefault(access.name, access.dtype)
    counted = list(tensors.values())
    return min(set(counted), key=lambda dtype: (-counted.count(dtype), dtype))


def _in_text_order(equation: Equation) -> Iterator[Access]:
    for expr in expressions(equation):
        yield from accesses_in(expr)


def updated(equation: Equation) -> tuple[str, Expr] | None:
    """The update spelling and its operand, where the target is the first operand of the value."""
    match equation.value:
        case Binary(op=op, left=left, right=operand) if left == equation.target:
            spelling = _UPDATE_OF.get(op)
        case Call(function=function, arguments=(left, operand)) if left == equation.target:
            spelling = _UPDATE_OF.get(function)
        case _:
            return None
    return None if spelling is None else (spelling, operand)


class _Writer:
    """Writes statements in text order; keeps what the reader knows at that point of the text.

    ``annotations`` holds the last annotation of each tensor, ``loops`` the last nest's loops.
    """

    def __init__(self, dtype: str) -> None:
        self.usual = (dtype, SCOPE)
        self.annotations: dict[str, tuple[str, str]] = {}
        self.loops: tuple[Loop, ...] = ()

    def body(self, statements: tuple[Equation | Nest, ...]) -> str:
        """Statements with a ``;`` behind each that does not end with a bracket, but the last."""
        told = [self.statement(statement) for statement in statements]
        return "".join(t if t.endswith("}") else f"{t};" for t in told[:-1]) + told[-1]

    def statement(self, statement: Equation | Nest) -> str:
        """An equation or a nest without what separates it from the next."""
        if isinstance(statement, Equation):
            return self.equation(statement)
        loops = DITTO if statement.loops == self.loops else "".join(map(_loop, statement.loops))
        self.loops = statement.loops
        if len(statement.body) == 1 and isinstance(statement.body[0], Equation):
            return loops + self.equation(statement.body[0])
        return f"{loops}{{{self.body(statement.body)}}}"

    def equation(self, equation: Equation) -> str:
        """``target=value``, or an update; with its guard."""
        update = updated(equation)
        sign, value = ("=", equation.value) if update is None else update
        text = f"{self.expr(equation.target)}{sign}{self.expr(value)}"
        return text if equation.guard is None else f"{text}:{self.expr(equation.guard)}"

    def expr(self, expr: Expr) -> str:
        """An expression."""
        return _DIFFERING.sub(self.part, expr_text(expr))

    def part(self, match: re.Match[str]) -> str:
        """The short form of an annotated name, a closing bracket, or a function's name."""
        if match["close"]:
            return "]"
        if match["call"]:
            return f"{SHORT_NAME}("
        name, now = match["name"], (match["dtype"], match["scope"])
        known = self.annotations.get(name, self.usual)
        self.annotations[name] = now
        said = [new for new, old in zip(now, known, strict=True) if new != old]
        annotation = f"^{''.join(said)}" if said else ""
        return f"{name}{annotation}{'[' if match['open'] else ''}"


def _loop(loop: Loop) -> str:
    start = f"+{loop.start}" if loop.start else ""
    return f"{loop.kind}{loop.index}{loop.extent}{start}"
