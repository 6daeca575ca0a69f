"""A hand-written program with a name, in a short notation.

The texts use a short notation that ``long_form`` expands: ``L^4_a`` is ``L^{4}_{a=0}``, and a
tensor without annotation gets the one its declaration states: ``g`` for the signature's
variables, and what ``temps`` says for the others (``X f32 l``; ``f32 g`` where it says nothing).
"""

import re
from dataclasses import dataclass
from functools import cached_property

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram

_LOOP = re.compile(r"\b([LPVUB])\^(\d+)_([a-z]+)")
_TENSOR = re.compile(r"(?<![A-Za-z])([A-Z][a-z]*)(?![a-z^])")


@dataclass(frozen=True)
class Case:
    """One program. ``kinds`` are the rule names that a checker may report first; empty: valid."""

    name: str
    header: str
    short: str
    temps: str = ""
    kinds: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str:
        """The program in the file form."""
        return long_form(self.header, self.short, self.temps)

    @cached_property
    def signed(self) -> SignedProgram:
        """The program, read."""
        return read(self.text).signed


def long_form(header: str, short: str, temps: str = "") -> str:
    """The file form of a program in the short notation; header lines are parted by ``;``."""
    annotations: dict[str, str] = {}
    lines = [line.strip() for line in header.split(";") if line.strip()]
    for line in lines:
        _, name, dtype = line.split("[")[0].split()
        annotations[name] = f"{dtype},g"
    for temp in filter(None, (t.strip() for t in temps.split(";"))):
        name, dtype, scope = temp.split()
        annotations[name] = f"{dtype},{scope}"

    def annotated(match: re.Match[str]) -> str:
        return f"{match[1]}^{{{annotations.get(match[1], 'f32,g')}}}"

    body = _TENSOR.sub(annotated, _LOOP.sub(r"\1^{\2}_{\3=0}", short))
    return "".join(f"# {line}\n" for line in lines) + body + "\n"
