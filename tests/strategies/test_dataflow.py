"""Groups of tensors that depend on each other, and facts that no earlier question changes."""

import pytest

from steptp_dagster.leir import nest_memory
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.canonical import leir_id
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.dataflow import Groups, flows
from steptp_dagster.strategies.registry import own_strategies, strategy
from steptp_dagster.strategies.remembered import PerProgram
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.strategies.values import ValueFacts
from tests.support.strategy_cases import all_cases, cases_of

HEAD = "# input A f32[4]\n# output E f32[4]\n"
#: ``D`` and ``F`` depend on each other, ``E`` on both, ``C`` on data alone; nobody needs ``G``.
PROGRAM = read(
    HEAD + "B^{4}_{tx=0}[C^{f32,g}_{tx}=exp(A^{f32,g}_{tx});];"
    "B^{4}_{tx=0}[G^{f32,g}_{tx}=C^{f32,g}_{tx}*2;];"
    "B^{4}_{tx=0}[D^{f32,g}_{tx}=0;L^{3}_{a=0}[F^{f32,g}_{tx}=D^{f32,g}_{tx}*0.5;"
    "D^{f32,g}_{tx}=F^{f32,g}_{tx}+C^{f32,g}_{tx};];];"
    "B^{4}_{tx=0}[E^{f32,g}_{tx}=D^{f32,g}_{tx}+F^{f32,g}_{tx};];"
).signed


def _groups(program: SignedProgram, *names: str) -> list[tuple[frozenset[str], int, bool]]:
    found = Groups(Analysis.of(program).accesses).leading_to(names)
    return [(frozenset(g.names), len(g.statements), g.cyclic) for g in found]


def test_groups_come_after_what_they_need() -> None:
    assert _groups(PROGRAM, "E") == [
        (frozenset("C"), 1, False),
        (frozenset("DF"), 3, True),
        (frozenset("E"), 1, False),
    ]


def test_groups_are_handed_out_once() -> None:
    groups = Groups(Analysis.of(PROGRAM).accesses)
    assert [g.names for g in groups.leading_to(["C"])] == [("C",)]
    assert [set(g.names) for g in groups.leading_to(["F", "C", "A"])] == [{"D", "F"}]
    assert not list(groups.leading_to(["D", "F", "C"]))


def test_flows_name_what_is_read_in_subscripts_and_guards() -> None:
    text = (
        "# input A f32[4]\n# input C i64[3] in 0..3\n# input D f32[3]\n# output E f32[3]\n"
        "B^{3}_{tx=0}[E^{f32,g}_{tx}=0;E^{f32,g}_{tx}=A^{f32,g}_{C^{i64,g}_{tx}}-E^{f32,g}_{tx}"
        ":D^{f32,g}_{tx}<1;];"
    )
    start, update = flows(read(text).signed.program.nests[0])
    assert (start.target, start.read, dict(start.subtracted)) == ("E", frozenset(), {})
    assert (update.path, update.read) == ((1,), frozenset("ACDE"))
    assert list(update.subtracted) == ["E"]


@pytest.mark.parametrize("inputs", ["masked", "finite"])
def test_facts_do_not_depend_on_what_was_asked_before(inputs: str) -> None:
    programs = {leir_id(case.before): case.before for case in all_cases()}
    for program in (PROGRAM, *list(programs.values())[::12]):
        names = [t for n in program.program.nests for t in {f.target: 0 for f in flows(n)}]
        one, other = (ValueFacts(program, inputs) for _ in range(2))  # type: ignore[arg-type]
        first = {name: one.tensor(name) for name in names}
        assert first == {name: other.tensor(name) for name in reversed(names)}


@pytest.mark.parametrize("name", sorted(own_strategies()))
def test_what_surveys_remember_outlives_the_analyses(name: str) -> None:
    """A step taken when all analyses are forgotten is the step of a program seen anew."""
    one = strategy(name)
    for case in cases_of(name):
        program, twin = (SignedProgram(case.before.program, case.before.signature) for _ in "ab")
        sites = one.survey(program).sites
        if not sites:
            continue
        nest_memory.forget()
        Analysis._recent.clear()
        late, anew = (take(one, p, sites[-1]) for p in (program, twin))
        assert isinstance(late, Step)
        assert isinstance(anew, Step)
        assert late.after == anew.after
        assert late.explanation == anew.explanation
        return
    raise AssertionError(f"no case of {name} has a site")


def test_programs_are_remembered_by_identity() -> None:
    made: list[SignedProgram] = []

    def make(program: SignedProgram) -> int:
        made.append(program)
        return len(made)

    remembered = PerProgram(make)
    twin = SignedProgram(PROGRAM.program, PROGRAM.signature)
    assert [remembered(p) for p in (PROGRAM, PROGRAM, twin, PROGRAM)] == [1, 1, 2, 1]
    assert made[1] is twin
