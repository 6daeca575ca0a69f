"""Short constructors with which strategies state facts.

A strategy passes the value that *it* found (in its own matching, or by asking an analysis);
``reasoning.derive`` lists the kinds and derives every value again from the programs alone. Where
the value is nothing but text or a figure of the program (``quoted``, ``costs``), the constructor
takes it from the program, so that no strategy spells it out.
"""

from typing import Final

from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.parallelism import parallelism
from steptp_dagster.leir.printer import statement_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, at
from steptp_dagster.strategies.facts import Evidence, Fact, Side, Value

#: Figures of ``cost`` and ``parallelism`` that an effect reports, in this order; those that did
#: not change are left out by ``effects``, except the first two.
EFFECT_FIGURES: Final = (
    "flops",
    "iterations",
    "bytes_read_g",
    "bytes_written_g",
    "bytes_read_s",
    "bytes_written_s",
    "bytes_read_l",
    "bytes_written_l",
    "launches",
    "at_once",
    "barriers",
    "nests",
    "loops",
    "equations",
    "loop_depth",
)


def before(kind: str, *arguments: Value, value: Value) -> Fact:
    """A fact about the program before the step."""
    return Fact(kind, "before", arguments, value)


def after(kind: str, *arguments: Value, value: Value) -> Fact:
    """A fact about the program after the step."""
    return Fact(kind, "after", arguments, value)


def pair(kind: str, *arguments: Value, value: Value) -> Fact:
    """A fact about both programs, or about numbers alone."""
    return Fact(kind, "pair", arguments, value)


def evidence(precondition: str, *facts: Fact) -> Evidence:
    """A precondition with the facts that show that it holds."""
    return Evidence(precondition, facts)


def quoted(side: Side, program: SignedProgram, path: Path) -> Fact:
    """The canonical text of the statement at ``path``."""
    return Fact("statement_text", side, (path,), statement_text(at(program.program, path)))


def changed_nests(
    old: SignedProgram, new: SignedProgram
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Top-level nests that the step replaced and that it put in their place, as paths.

    What is left after the longest common prefix and then suffix of equal nests are taken off.
    """
    a, b = old.program.nests, new.program.nests
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[len(a) - 1 - tail] == b[len(b) - 1 - tail]:
        tail += 1
    return (
        tuple((i,) for i in range(head, len(a) - tail)),
        tuple((i,) for i in range(head, len(b) - tail)),
    )


def transition(old: SignedProgram, new: SignedProgram) -> tuple[Fact, ...]:
    """The nests that changed, quoted before and after, led by ``changed_nests`` itself."""
    gone, come = changed_nests(old, new)
    return (
        pair("changed_nests", value=(gone, come)),
        *(quoted("before", old, path) for path in gone),
        *(quoted("after", new, path) for path in come),
    )


def effects(old: SignedProgram, new: SignedProgram) -> tuple[Fact, ...]:
    """Cost figures before and after: flops and iterations always, others where they changed."""
    first, second = figures(old), figures(new)
    facts: list[Fact] = []
    for name in EFFECT_FIGURES:
        if name in EFFECT_FIGURES[:2] or first[name] != second[name]:
            facts.append(before("cost", name, value=first[name]))
            facts.append(after("cost", name, value=second[name]))
    return tuple(facts)


def figures(program: SignedProgram) -> dict[str, int]:
    """All figures of ``leir.cost`` by the names of ``EFFECT_FIGURES``."""
    found, parallel = cost(program), parallelism(program.program)
    values = {
        "launches": parallel.launches,
        "at_once": parallel.at_once,
        "barriers": parallel.barriers,
        "flops": found.flops,
        "iterations": found.iterations,
        "nests": found.nests,
        "loops": found.loops,
        "equations": found.equations,
        "loop_depth": found.loop_depth,
    }
    for scope in ("g", "s", "l"):
        values[f"bytes_read_{scope}"] = found.bytes_read.get(scope, 0)
        values[f"bytes_written_{scope}"] = found.bytes_written.get(scope, 0)
    return {name: values[name] for name in EFFECT_FIGURES}
