"""A broken rule of LEIR, as a value: what validity, types and target limits report."""

from dataclasses import dataclass

from steptp_dagster.leir.walk import Path


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule at one place.

    ``kind`` is the rule's kebab-case name, ``path`` the statement's path (``walk.Path``; empty
    where the whole program is meant), ``pos`` the text offset of the offending node or -1 for
    nodes that a program made. ``found`` and ``required`` say what stands there and what the
    rule asks for; ``message`` says both in one sentence.
    """

    kind: str
    message: str
    path: Path = ()
    pos: int = -1
    found: str = ""
    required: str = ""
