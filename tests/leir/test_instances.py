"""Equation instances: what moves is the same, what is lost, doubled or aimed elsewhere is not."""

from dataclasses import replace

import pytest

from steptp_dagster.leir import instances
from steptp_dagster.leir.ast import Program
from steptp_dagster.leir.instances import same_instances
from steptp_dagster.leir.parser import parse

MATMUL = "B^{3}_{tx=0}L^{10}_{a=0}L^{4}_{c=0}[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a};];"


def _program(text: str) -> str:
    for name in "ACDEY":
        text = text.replace(f"{name}_", f"{name}^{{f32,g}}_")
    return text


SAME = {
    "split": "B^{3}_{tx=0}L^{2}_{d=0}L^{5}_{a=0}L^{4}_{c=0}"
    "[D_{tx,d*5+a}=D_{tx,d*5+a}+A_{tx,c}*C_{c,d*5+a};];",
    "guarded tail": "B^{3}_{tx=0}L^{3}_{d=0}L^{4}_{a=0}L^{4}_{c=0}"
    "[D_{tx,d*4+a}=D_{tx,d*4+a}+A_{tx,c}*C_{c,d*4+a}:d*4+a<10;];",
    "reordered": "L^{4}_{c=0}L^{10}_{a=0}B^{3}_{tx=0}[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a};];",
    "two halves": "B^{3}_{tx=0}L^{5}_{a=0}L^{4}_{c=0}[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a};"
    "D_{tx,a+5}=D_{tx,a+5}+A_{tx,c}*C_{c,a+5};];",
}
DIFFERENT = {
    "lost": "B^{3}_{tx=0}L^{9}_{a=0}L^{4}_{c=0}[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a};];",
    "doubled": "B^{3}_{tx=0}L^{2}_{d=0}L^{10}_{a=0}L^{4}_{c=0}"
    "[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a};];",
    "aimed elsewhere": "B^{3}_{tx=0}L^{10}_{a=0}L^{4}_{c=0}"
    "[D_{tx,9-a}=D_{tx,9-a}+A_{tx,c}*C_{c,a};];",
    "another constant": "B^{3}_{tx=0}L^{10}_{a=0}L^{4}_{c=0}"
    "[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a}*2;];",
    "dropped tail": "B^{3}_{tx=0}L^{3}_{d=0}L^{4}_{a=0}L^{4}_{c=0}"
    "[D_{tx,d*4+a}=D_{tx,d*4+a}+A_{tx,c}*C_{c,d*4+a}:d*4+a<9;];",
}


@pytest.mark.parametrize("cheap", [0, instances.CHEAP])
@pytest.mark.parametrize("name", SAME)
def test_same(name: str, cheap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "CHEAP", cheap)
    before, after = parse(_program(MATMUL)).program, parse(_program(SAME[name])).program
    assert same_instances(before, after) == "same"
    assert same_instances(after, before) == "same"


@pytest.mark.parametrize("cheap", [0, instances.CHEAP])
@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str, cheap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "CHEAP", cheap)
    before, after = parse(_program(MATMUL)).program, parse(_program(DIFFERENT[name])).program
    assert same_instances(before, after) == "different"


def test_scopes_do_not_count() -> None:
    text = "B^{2}_{tx=0}[D^{f32,SCOPE}_{tx}=A^{f32,g}_{tx};E^{f32,g}_{tx}=D^{f32,SCOPE}_{tx};];"
    before = parse(text.replace("SCOPE", "g")).program
    after = parse(text.replace("SCOPE", "l")).program
    assert same_instances(before, after) == "same"


def test_large_and_one_to_one_is_decided_by_sets() -> None:
    text = "B^{1000}_{tx=0}L^{1000}_{a=0}L^{1000}_{c=0}[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a};];"
    split = (
        "B^{1000}_{tx=0}L^{143}_{d=0}L^{7}_{a=0}L^{1000}_{c=0}"
        "[D_{tx,d*7+a}=D_{tx,d*7+a}+A_{tx,c}*C_{c,d*7+a}:d*7+a<1000;];"
    )
    before, after = parse(_program(text)).program, parse(_program(split)).program
    assert same_instances(before, after) == "same"
    dropped = parse(_program(split.replace("<1000", "<999"))).program
    assert same_instances(before, dropped) == "different"


def test_large_and_not_one_to_one_is_unknown() -> None:
    text = "L^{2000}_{a=0}L^{2000}_{c=0}[D^{f32,g}=D^{f32,g}+A^{f32,g}_{a+c};];"
    body = "L^{2000}_{c=0}[D^{f32,g}=D^{f32,g}+A^{f32,g}_{a+c};];"
    halves = "".join(f"L^{{1000}}_{{a={start}}}{body}" for start in (0, 1000))
    assert same_instances(parse(text).program, parse(halves).program) == "unknown"
    swapped = "L^{2000}_{c=0}L^{2000}_{a=0}[D^{f32,g}=D^{f32,g}+A^{f32,g}_{a+c};];"
    assert same_instances(parse(text).program, parse(swapped).program) == "same"


def test_loops_that_nothing_uses_count_as_a_factor() -> None:
    text = "L^{3000}_{a=0}L^{2000}_{c=0}[K^{f32,l}=0;D^{f32,g}_{a,c}=K^{f32,l}+A^{f32,g}_{a,c};];"
    split = (
        "L^{1500}_{d=0}L^{2}_{a=0}L^{2000}_{c=0}[K^{f32,l}=0;"
        "D^{f32,g}_{d*2+a,c}=K^{f32,l}+A^{f32,g}_{d*2+a,c};];"
    )
    tail = (
        "L^{429}_{d=0}L^{7}_{a=0}L^{2000}_{c=0}[K^{f32,l}=0:d*7+a<3000;"
        "D^{f32,g}_{d*7+a,c}=K^{f32,l}+A^{f32,g}_{d*7+a,c}:d*7+a<3000;];"
    )
    before = parse(text).program
    assert same_instances(before, parse(split).program) == "same"
    assert same_instances(before, parse(tail).program) == "same"
    more = tail.replace("0:d*7+a<3000", "0:d*7+a<3001")
    assert same_instances(before, parse(more).program) == "different"


def test_equal_equations_add_up() -> None:
    twice = "L^{200}_{a=0}[L^{200}_{c=0}[D^{f32,g}_{a}=1;];L^{100}_{c=0}[D^{f32,g}_{a}=1;];];"
    once = "L^{200}_{a=0}L^{300}_{c=0}[D^{f32,g}_{a}=1;];"
    assert same_instances(parse(twice).program, parse(once).program) == "same"
    fewer = parse(once.replace("300", "299")).program
    assert same_instances(parse(twice).program, fewer) == "different"


def test_one_equation_in_other_orders_and_kinds_of_its_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The equation object stays; only what the loops run over decides."""

    def not_needed(*_: object) -> None:
        raise AssertionError("the loops alone say that the instances are the same")

    before = parse(_program(MATMUL)).program
    nest = before.nests[0]
    tx, a, c = nest.loops
    with monkeypatch.context() as patch:
        patch.setattr(instances, "normal_form", not_needed)
        for loops in ((c, tx, a), (tx, replace(a, kind="P"), replace(c, kind="U"))):
            assert same_instances(before, Program((replace(nest, loops=loops),))) == "same"
    for other in (replace(c, extent=5), replace(c, start=1)):
        after = Program((replace(nest, loops=(tx, a, other)),))
        assert same_instances(before, after) == "different"
