"""The text and the JSON of an explanation: golden, deterministic, truthful, of bounded length."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steptp_dagster.dataset.tokens import count
from steptp_dagster.reasoning.conditions import CONDITIONS, OBVIOUS, condition
from steptp_dagster.reasoning.phrases import phrase
from steptp_dagster.reasoning.render import render_json, render_text
from steptp_dagster.reasoning.style import BRIEF, FULL, Style
from steptp_dagster.reasoning.wording import listed, plain, sentence, statements
from steptp_dagster.strategies.alternatives import compared
from steptp_dagster.strategies.evidence import figures
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.registry import own_strategies, strategy
from steptp_dagster.strategies.soundness import RULES
from steptp_dagster.strategies.step import Step, take
from tests.support.programs import random_program
from tests.support.strategy_cases import cases_of
from tests.support.strategy_steps import step_cases, step_named

NAMES = list(step_cases())


def _text(step: Step) -> str:
    return _styled(step, BRIEF)


def _styled(step: Step, style: Style) -> str:
    return render_text(strategy(step.strategy), step.site, step.explanation, style)


def _example() -> Step:
    step = step_named("cache_read_write", "example")
    return compared(strategy(step.strategy), step)


BRIEF_TEXT = """\
The relevant part: Statement 1.1 accumulates with `+`, reduces over `c` and has 24 iterations.

Rule out what would make `cache_read_write` illegal at statement 1.
- The copy fits its memory: after the step, `E` takes 4 bytes; otherwise shared or local memory \
would overflow.
- Nothing else shares the loops: statement 1.1 is a pure update.
The rest holds as well: all reduction loops stand below; every row has an element of its own; and \
so on.

Decision: apply `cache_read_write` at statement 1 with direction = `write`, scope = `l`, tensor \
= `D`, under = `a`. The step adds `E`. After the step, `E` stands in local memory. This is one \
of 5 sites. With under = `tx` instead, loops would be 5 instead of 3.

Statement 1 changed in place.

Equivalence: The accumulator starts from the value that the target started from, takes the same \
operands in the same order and dtype, and is stored once at the end. `D` is stored as `f32`. \
After the step, `E` is stored as `f32`. The values are equal bit for bit.

In figures (guards true): Iterations: 24 to 36; global bytes read: 288 to 192; global bytes \
written: 96 to 24."""


def test_golden_text() -> None:
    assert _text(_example()) == BRIEF_TEXT


@pytest.mark.parametrize(("name", "case"), NAMES)
def test_text_is_bounded_and_truthful_about_rounding(name: str, case: str) -> None:
    step = step_named(name, case)
    text = _text(step)
    assert len(text) < 3000
    exact = step.numerics == "exact"
    assert ("The values are equal bit for bit." in text) == exact
    assert ("The values are equal up to rounding." in text) == (not exact)
    assert text == _text(step)
    assert not [line for line in text.split("\n") if line != line.strip()]


def test_brief_texts_fit_training_contexts() -> None:
    """One step of each strategy: half of the texts have at most 330 tokens."""
    first = {strategy: (strategy, case) for strategy, case in reversed(NAMES)}
    lengths = sorted(
        count(_text(compared(strategy(n), step_named(n, c)))) for n, c in first.values()
    )
    assert 200 < lengths[len(lengths) // 2] <= 330
    assert lengths[-1] <= 800


@pytest.mark.parametrize(("name", "case"), NAMES)
def test_json_holds_every_fact(name: str, case: str) -> None:
    step = step_named(name, case)
    data = render_json(strategy(step.strategy), step.site, step.explanation)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert list(data) == [
        "strategy",
        "level",
        "site",
        "state",
        "preconditions",
        "decision",
        "transition",
        "soundness",
        "effect",
        "alternatives",
    ]
    assert data["soundness"]["numerics"] == step.numerics
    assert [len(data[part]) for part in ("state", "decision", "transition", "effect")] == [
        len(step.explanation.state),
        len(step.explanation.decision),
        len(step.explanation.transition),
        len(step.explanation.effect),
    ]


@pytest.mark.parametrize(("name", "case"), NAMES)
def test_the_full_text_argues_every_precondition_and_quotes_what_changed(
    name: str, case: str
) -> None:
    step = step_named(name, case)
    text = _styled(step, FULL)
    for evidence in step.explanation.preconditions:
        assert condition(evidence.precondition).holds in text.lower()
    for fact in step.explanation.transition:
        if fact.kind == "statement_text":
            assert f"`{fact.value}`" in text
    assert len(_text(step)) <= len(text)


def test_every_precondition_has_words_of_its_own() -> None:
    needed = {p for found in own_strategies().values() for p in found.preconditions}
    assert needed <= CONDITIONS.keys()
    assert needed >= OBVIOUS
    for words in CONDITIONS.values():
        for clause in (words.holds, words.otherwise):
            assert clause[0].islower()
            assert not re.search(r"[.`:;]|\d", clause)


def test_a_precondition_of_a_plugin_is_told_by_its_name() -> None:
    assert condition("phase-of-the-moon").holds == "it is not the case of phase of the moon"


def test_texts_of_one_strategy_do_not_read_alike() -> None:
    """Names and numbers aside, most texts at the sites of one strategy are different texts."""
    chosen = strategy("loop_split")
    skeletons = []
    for seed in range(20):
        program = random_program(seed)
        for site in chosen.survey(program).sites[:8]:
            step = take(chosen, program, site)
            assert isinstance(step, Step)
            skeletons.append(re.sub(r"`[^`]*`|\d+", "_", _text(step)))
    assert len(skeletons) > 60
    assert len(set(skeletons)) > 0.9 * len(skeletons)


def test_the_choice_is_told_with_a_figure_of_the_other_one() -> None:
    own = strategy("loop_split")
    (program,) = (
        c.before for c in cases_of("loop_split") if c.name == "reduction loop with a tail"
    )
    site = next(s for s in own.survey(program).sites if s.text("tail") == "guard")
    step = take(own, program, site)
    assert isinstance(step, Step)
    step = compared(own, step)
    text = _text(step)
    found = re.search(r"[Ww]ith inner = `L`[^.]* instead, ([a-z -]+) would be (\d+)", text)
    assert found is not None, text
    other = next(
        s
        for s in own.survey(step.before).sites
        if s.path == site.path
        and s.text("outer") == s.text("loop") == "tx"
        and s.integer("factor") == 2
    )
    assert int(found[2]) == figures(own.apply(program, other))["at_once"]


def test_text_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from tests.reasoning.test_render import _example, _text; import sys;"
        "sys.stdout.write(_text(_example()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {_text(_example()).encode()}


def test_every_rule_is_a_clause() -> None:
    for rule in RULES.values():
        assert rule.because[0].islower()
        assert not rule.because.endswith(".")


def test_lists_and_statements() -> None:
    assert listed(()) == "nothing"
    assert listed(("x",)) == "x"
    assert listed(("x", "y", "z")) == "x, y and z"
    assert statements(()) == "no statement"
    assert statements(((0,), (1, 2))) == "statements 1 and 2.3"
    assert plain((2, "c", True)) == "2, `c` and yes"
    assert sentence("`A` is read") == "`A` is read."


def test_the_documentation_shows_the_real_text() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reasoning.md").read_text(encoding="utf-8")
    assert f"```text\n{_text(step_named('loop_split', 'example'))}\n```" in page


#: A product with two of its parts; two products, the text of one inside that of the other.
PARTS = tuple(
    text.replace("A", "A^{f32,g}_{tx}")
    .replace("C", "C^{f32,g}_{tx}")
    .replace("D", "D^{f32,g}_{tx}")
    for text in ("exp(A-C)*D", "exp(A-C)", "A-C", "C*A*D", "A*D")
)


def test_new_parts_inside_each_other_are_said_once() -> None:
    told = phrase(Fact("range_kept", "before", ((1,), "", PARTS[:3]), True))
    assert f"so are `{PARTS[0]}` and its parts" in told
    apart = phrase(Fact("range_kept", "before", ((1,), "", PARTS[3:]), True))
    assert apart.endswith(f"so are `{PARTS[3]}` and `{PARTS[4]}`")
    alone = phrase(Fact("range_kept", "before", ((1,), "", PARTS[2:3]), True))
    assert alone.endswith(f"so is `{PARTS[2]}`")


def test_a_number_is_not_said_to_be_itself() -> None:
    number = Fact("value_is", "before", ((0, 0), "0.25", "nonzero"), ("a number", 0.25, 0.25))
    assert phrase(number) == "`0.25` is not zero"
    fixed = Fact("value_is", "before", ((0, 0), "tanh(0*A^{f32,g})+2", "nonzero"), ("x", 2.0, 2.0))
    assert phrase(fixed) == "`tanh(0*A^{f32,g})+2` is always 2"
