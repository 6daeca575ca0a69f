"""Whether the text of a program reads back as the program, remembered by nests and equations.

Text is made of statements one after the other, so a nest reads back if its loops and its equations
do; only the limit on levels of brackets looks at the whole. Where a nest comes near that limit it
is read as a whole.
"""

from functools import lru_cache
from typing import Final

from steptp_dagster.leir.ast import Access, Equation, Int, Loop, Nest, Program
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.parser import MAX_BRACKETS, ParseError, parse
from steptp_dagster.leir.printer import statement_text, to_text
from steptp_dagster.leir.signature import Signature
from steptp_dagster.leir.walk import equations_in, nests_in

_AROUND: Final = (Loop("L", "a", 1),)
_WITHIN: Final = (Equation(Access("A", "f32", "g"), Int(0)),)


def reads_back(program: Program, signature: Signature | None) -> bool:
    """Whether the text of a program reads as the program."""
    try:
        return parse(to_text(program), signature).program == program
    except ParseError:
        return False


@per_nest
def nest_reads_back(nest: Nest) -> bool:
    """Whether a nest, whose tensors have one annotation each, reads back."""
    located = list(equations_in(nest))
    nested = 1 + max(len(one.path) for one in located)
    deepest = max(_brackets(one.equation) for one in located)
    if nested + deepest >= MAX_BRACKETS:
        return reads_back(Program((nest,)), None)
    loops = all(_loops_read_back(inner.loops) for _, inner in nests_in(nest))
    return loops and all(_equation_reads_back(one.equation) for one in located)


@lru_cache(maxsize=4096)
def _equation_reads_back(equation: Equation) -> bool:
    return reads_back(Program((Nest(_AROUND, (equation,)),)), None)


@lru_cache(maxsize=4096)
def _loops_read_back(loops: tuple[Loop, ...]) -> bool:
    return reads_back(Program((Nest(loops, _WITHIN),)), None)


@lru_cache(maxsize=4096)
def _brackets(equation: Equation) -> int:
    """At least as many as the levels of brackets and powers in the equation's text."""
    text = statement_text(equation)
    return 1 + sum(text.count(mark) for mark in ("(", "_{", "**"))
