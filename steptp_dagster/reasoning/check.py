"""Grounding: does an explanation, and the text made from it, say only what is so?

Every fact is derived again from the two programs; nothing that the strategy computed is trusted.
The text must be the one that the explanation renders to, and, apart from that, every number, name
and piece of LEIR in it must be held by a fact or by the site.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import all_nests, tensor_names
from steptp_dagster.reasoning.derive import derive
from steptp_dagster.reasoning.kinds import DerivationError
from steptp_dagster.reasoning.render import render_text
from steptp_dagster.reasoning.style import BRIEF, Style
from steptp_dagster.strategies.base import Site, Strategy
from steptp_dagster.strategies.evidence import EFFECT_FIGURES
from steptp_dagster.strategies.facts import Explanation, Fact, Value
from steptp_dagster.strategies.soundness import RULES

_CODE: Final = re.compile(r"`([^`]*)`")
_NUMBERED: Final = re.compile(
    r"\b[Ss]tatements? (?P<all>\d+(?:\.\d+)*(?:(?:, | and )\d+(?:\.\d+)*)*)"
)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_WORD: Final = re.compile(r"[A-Za-z]+")
#: Single letters that are English words where they stand outside code.
_ENGLISH_LETTERS: Final = frozenset({"a", "A", "x"})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something in an explanation or its text that the programs do not bear out.

    ``kind`` is one of: value, underivable, missing-precondition, unexpected-precondition,
    empty-evidence, empty-state, unknown-rule, parameter-not-shown, transition-incomplete,
    effect-incomplete, text-differs, free-number, free-statement, free-code, free-name.
    """

    kind: str
    message: str
    fact: Fact | None = None


def grounding(
    before: SignedProgram,
    after: SignedProgram,
    strategy: Strategy,
    site: Site,
    explanation: Explanation,
    text: str,
    style: Style = BRIEF,
) -> tuple[Mismatch, ...]:
    """All mismatches, in the order of the explanation, then of the text; empty: grounded.

    ``style`` is the one that the text was written in.
    """
    return (
        *fact_mismatches(all_facts(explanation), before, after),
        *_structure(before, after, strategy, site, explanation),
        *text_mismatches(before, after, strategy, site, explanation, text, style),
    )


def all_facts(explanation: Explanation) -> tuple[Fact, ...]:
    """Every fact of an explanation, in order."""
    return (
        *explanation.state,
        *(fact for evidence in explanation.preconditions for fact in evidence.facts),
        *explanation.decision,
        *explanation.transition,
        *explanation.soundness,
        *explanation.effect,
        *explanation.alternatives,
    )


def fact_mismatches(
    facts: Iterable[Fact], before: SignedProgram, after: SignedProgram
) -> Iterator[Mismatch]:
    """Facts that the programs do not bear out, each once."""
    for fact in dict.fromkeys(facts):
        try:
            value = derive(fact, before, after)
        except DerivationError as error:
            yield Mismatch("underivable", str(error), fact)
            continue
        if not _same(value, fact.value):
            claim = f"{fact.kind}{fact.arguments} {fact.side}"
            yield Mismatch("value", f"{claim} is {value!r}, not {fact.value!r}", fact)


def _same(a: Value, b: Value) -> bool:
    """Equality that tells True from 1 and 1 from 1.0."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


def _structure(
    before: SignedProgram,
    after: SignedProgram,
    strategy: Strategy,
    site: Site,
    explanation: Explanation,
) -> Iterator[Mismatch]:
    if explanation.soundness_rule not in RULES:
        yield Mismatch("unknown-rule", f"no soundness rule {explanation.soundness_rule!r}")
    if not explanation.state:
        yield Mismatch("empty-state", "the explanation starts from nothing")
    shown = [evidence.precondition for evidence in explanation.preconditions]
    required = strategy.preconditions_at(site)
    for name in required:
        if name not in shown:
            yield Mismatch("missing-precondition", f"no evidence against {name!r}")
    for evidence in explanation.preconditions:
        if evidence.precondition not in required:
            message = f"{strategy.name} has no precondition {evidence.precondition!r} here"
            yield Mismatch("unexpected-precondition", message)
        if not evidence.facts:
            yield Mismatch("empty-evidence", f"nothing is shown against {evidence.precondition!r}")
    held = _numbers(_atoms(explanation.decision))
    for name, value in site.parameters:
        if isinstance(value, int) and not isinstance(value, bool) and str(value) not in held:
            yield Mismatch("parameter-not-shown", f"no fact of the decision holds {name}={value}")
    yield from _transition_complete(before, after, explanation)
    yield from _effect_complete(before, after, explanation)


def _transition_complete(
    before: SignedProgram, after: SignedProgram, explanation: Explanation
) -> Iterator[Mismatch]:
    """Every nest that went is quoted, and every nest that came."""
    changed = derive(Fact("changed_nests", "pair", (), ((), ())), before, after)
    quoted = {(f.side, f.arguments) for f in explanation.transition if f.kind == "statement_text"}
    if not isinstance(changed, tuple):
        return
    for side, paths in zip(("before", "after"), changed, strict=True):
        for path in paths if isinstance(paths, tuple) else ():
            if (side, (path,)) not in quoted:
                message = f"the changed statement {path} is not quoted ({side})"
                yield Mismatch("transition-incomplete", message)


def _effect_complete(
    before: SignedProgram, after: SignedProgram, explanation: Explanation
) -> Iterator[Mismatch]:
    """Operations and iterations are stated, and every figure that changed."""
    stated = {(f.side, f.arguments) for f in explanation.effect if f.kind == "cost"}
    for i, figure in enumerate(EFFECT_FIGURES):
        values = [derive(Fact("cost", s, (figure,), 0), before, after) for s in ("before", "after")]
        due = i < 2 or values[0] != values[1]
        if due and not {("before", (figure,)), ("after", (figure,))} <= stated:
            yield Mismatch("effect-incomplete", f"the effect leaves out {figure}")


def text_mismatches(
    before: SignedProgram,
    after: SignedProgram,
    strategy: Strategy,
    site: Site,
    explanation: Explanation,
    text: str,
    style: Style = BRIEF,
) -> Iterator[Mismatch]:
    """What the text says beyond the explanation, whose facts are taken as they are."""
    if explanation.soundness_rule in RULES:
        try:
            rendered = render_text(strategy, site, explanation, style)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            yield Mismatch("text-differs", f"the explanation has no text: {error!r}")
        else:
            if rendered != text:
                yield Mismatch("text-differs", "the text is not what the explanation says")
    facts = all_facts(explanation)
    atoms = (*_atoms(facts), *_leaves(tuple(value for _, value in site.parameters)))
    strings = {atom for atom in atoms if isinstance(atom, str)} | {strategy.name}
    numbers = _numbers(atoms)
    paths = {".".join(str(i + 1) for i in path) for path in (*_paths(facts), site.path)}
    for span in _CODE.findall(text):
        if span not in strings:
            yield Mismatch("free-code", f"no fact holds {span!r}")
    prose = _CODE.sub(" ", text)
    for match in _NUMBERED.finditer(prose):
        for number in re.split(r", | and ", match["all"]):
            if number not in paths:
                yield Mismatch("free-statement", f"no fact is about statement {number}")
    prose = _NUMBERED.sub(" ", prose)
    for number in _NUMBER.findall(prose):
        if number not in numbers:
            yield Mismatch("free-number", f"no fact holds {number}")
    names = _single_letters(before) | _single_letters(after)
    for word in _WORD.findall(prose):
        if word in names - _ENGLISH_LETTERS:
            yield Mismatch("free-name", f"{word!r} stands outside code")


def _single_letters(signed: SignedProgram) -> set[str]:
    """One-letter names of tensors and indices: the ones that prose could smuggle in."""
    indices = {loop.index for _, nest in all_nests(signed.program) for loop in nest.loops}
    return {name for name in tensor_names(signed.program) | indices if len(name) == 1}


def _leaves(value: Value) -> Iterator[int | float | str | bool]:
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _atoms(facts: Iterable[Fact]) -> Iterator[int | float | str | bool]:
    for fact in facts:
        yield from _leaves(fact.arguments)
        yield from _leaves(fact.value)


def _numbers(atoms: Iterable[int | float | str | bool]) -> set[str]:
    """The numbers among the atoms as they are written, without sign."""
    return {
        format(abs(a), "g") if isinstance(a, float) else str(abs(a))
        for a in atoms
        if isinstance(a, int | float) and not isinstance(a, bool)
    }


def _paths(facts: Iterable[Fact]) -> Iterator[tuple[int, ...]]:
    """Every tuple of integers in a fact: what may be the number of a statement."""
    for fact in facts:
        yield from _integer_tuples(fact.arguments)
        yield from _integer_tuples(fact.value)


def _integer_tuples(value: Value) -> Iterator[tuple[int, ...]]:
    if not isinstance(value, tuple):
        return
    integers = tuple(i for i in value if isinstance(i, int) and not isinstance(i, bool))
    if integers and len(integers) == len(value):
        yield integers
    for item in value:
        yield from _integer_tuples(item)
