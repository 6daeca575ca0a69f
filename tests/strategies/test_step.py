"""``step.take`` refuses results that break the contract, each with its own reason."""

from collections.abc import Callable

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, steps, take

HEADER = "# input A f32[4]\n# output D f32[4]\n"
PROGRAM = read(HEADER + "B^{4}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2;];").signed


class Broken(Strategy):
    """A strategy that gives what it is told to give."""

    name = "broken"
    level = "operator"
    version = "1"
    summary = "Breaks the contract."

    def __init__(self, result: Callable[[SignedProgram], SignedProgram]) -> None:
        self._result = result

    def survey(self, program: SignedProgram) -> Survey:
        return Survey((Site.of(self.name, (0,)),), ())

    def keeps_instances(self, site: Site) -> bool:
        return True

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        return self._result(program)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        raise AssertionError("a refused step is not explained")


def _text(text: str) -> Callable[[SignedProgram], SignedProgram]:
    return lambda old: SignedProgram(parse(text, old.signature).program, old.signature)


def _other_signature(old: SignedProgram) -> SignedProgram:
    more = Variable("input", "C", "f32", (4,))
    new = _text("B^{4}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*3;];")(old)
    return SignedProgram(new.program, Signature((*old.signature.variables, more)))


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda old: old, "nothing-changed"),
        (_other_signature, "signature-changed"),
        (_text("B^{5}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2;];"), "result-invalid"),
        (_text("B^{3}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2;];"), "result-invalid"),
        (
            _text(
                "B^{4}_{tx=0}B^{2000}_{ty=0}[D^{f32,g}_{tx}=max(D^{f32,g}_{tx},A^{f32,g}_{tx});];"
            ),
            "result-over-limits",
        ),
        (_text("B^{4}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{3-tx}*2;];"), "instances-changed"),
        (_text("L^{2}_{a=0}L^{4}_{c=0}[D^{f32,g}_{c}=A^{f32,g}_{c}*2;];"), "instances-changed"),
    ],
)
def test_a_broken_result_is_refused(
    result: Callable[[SignedProgram], SignedProgram], reason: str
) -> None:
    (found,) = steps(Broken(result), PROGRAM)
    assert isinstance(found, Refusal)
    assert found.reason == reason
    assert found.message
    assert found.path == (0,)


def test_a_step_carries_its_explanation_and_numerics() -> None:
    split = strategy("loop_split")
    site = split.survey(PROGRAM).sites[0]
    step = take(split, PROGRAM, site)
    assert isinstance(step, Step)
    assert (step.strategy, step.version, step.site) == ("loop_split", split.version, site)
    assert step.numerics == "exact"
    assert step.explanation.state
