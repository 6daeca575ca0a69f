"""The text and the JSON of an explanation: golden, deterministic, truthful, of bounded length."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steptp_dagster.reasoning.render import render_json, render_text
from steptp_dagster.reasoning.wording import listed, plain, sentence, statements
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.soundness import RULES
from steptp_dagster.strategies.step import Step
from tests.support.strategy_steps import step_cases, step_named

NAMES = list(step_cases())

GOLDEN = """\
{opening} Statement 1.1 accumulates with `+`, reduces over `c` and has 24 iterations.

{question}
- not global? No: `D` stands in global memory.
- inside parallel loop? No: after the step, statement 1.1 runs under \
`B^{{2}}_{{tx=0}}L^{{3}}_{{a=0}}`.
- threads misplaced? No: the loops of statement 1 are `tx`, `a` and `c`; after the step, the loops \
of statement 1.1 are `tx` and `a`; `E` stands in local memory.
- no reuse? No: statement 1.1 writes elements of `D` up to 24 times; after the step, statement 1.3 \
writes elements of `D` up to 6 times.
- cache too large? No: after the step, `E` takes 4 bytes.
- not alone? No: statement 1.1 is a pure update and accumulates with `+`.
- reduction outside? No: statement 1.1 reduces over `c`; after the step, the loops of statement \
1.1 are `tx` and `a`.
- rows overlap? No: statement 1.1 writes `D` as `D^{{f32,g}}_{{tx,a}}`.
- guarded by reduction? No: statement 1.1 has no guard.
- no identity? No: statement 1.1 starts from the identity of its operation; after the step, the \
right side of statement 1.1 is `0`.

Decision: apply `cache_read_write` at statement 1 with direction = `write`, scope = `l`, tensor = \
`D`, under = `a`. The step adds `E`. After the step, `E` stands in local memory and is a scalar.

Statement 1 became statement 1.
Before:
`B^{{2}}_{{tx=0}}L^{{3}}_{{a=0}}L^{{4}}_{{c=0}}[D^{{f32,g}}_{{tx,a}}=D^{{f32,g}}_{{tx,a}}\
+A^{{f32,g}}_{{tx,c}}*C^{{f32,g}}_{{c,a}};];`
After:
`B^{{2}}_{{tx=0}}L^{{3}}_{{a=0}}[E^{{f32,l}}=0;L^{{4}}_{{c=0}}[E^{{f32,l}}=E^{{f32,l}}\
+A^{{f32,g}}_{{tx,c}}*C^{{f32,g}}_{{c,a}};];D^{{f32,g}}_{{tx,a}}=E^{{f32,l}};];`

{meaning} The accumulator starts from the value that the target started from, takes the same \
operands in the same order and dtype, and is stored once at the end. `D` is stored as `f32`. After \
the step, `E` is stored as `f32`. Inputs, parameters and outputs are unchanged. The values are \
equal bit for bit.

Expected effect, before to after, guards counted as true: Floating-point operations: still 48; \
iterations: 24 to 36; bytes read from global memory: 288 to 192; bytes written to global memory: \
96 to 24; bytes read from local memory: 0 to 120; bytes written to local memory: 0 to 120; \
equations: 1 to 3."""


def _text(step: Step) -> str:
    return render_text(strategy(step.strategy), step.site, step.explanation)


def _example() -> Step:
    return step_named("cache_read_write", "example")


def test_golden_text() -> None:
    assert _text(_example()) == GOLDEN.format(
        opening="What the program shows:",
        question="Is `cache_read_write` legal at statement 1? Check its preconditions:",
        meaning="Why this computes the same:",
    )


@pytest.mark.parametrize(("name", "case"), NAMES)
def test_text_is_bounded_and_truthful_about_rounding(name: str, case: str) -> None:
    step = step_named(name, case)
    text = _text(step)
    quoted = sum(
        len(str(f.value)) for f in step.explanation.transition if f.kind == "statement_text"
    )
    assert len(text) - quoted < 3000
    exact = step.numerics == "exact"
    assert ("The values are equal bit for bit." in text) == exact
    assert ("The values are equal up to rounding." in text) == (not exact)
    assert text == _text(step)
    assert not [line for line in text.split("\n") if line != line.strip()]


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
    ]
    assert data["soundness"]["numerics"] == step.numerics
    assert [len(data[part]) for part in ("state", "decision", "transition", "effect")] == [
        len(step.explanation.state),
        len(step.explanation.decision),
        len(step.explanation.transition),
        len(step.explanation.effect),
    ]


def test_wording_varies_between_sites() -> None:
    openings = {_text(step_named(*key)).partition(":")[0] for key in NAMES}
    assert len(openings) == 3


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
