"""The normal form of instances: it never calls different instances equal, and sees common steps."""

import random
from collections import Counter
from itertools import product

import pytest

from steptp_dagster.leir.ast import Program
from steptp_dagster.leir.instance_forms import form_of
from steptp_dagster.leir.instance_normal import normal_form
from steptp_dagster.leir.instance_values import evaluate
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.walk import Located, equations
from tests.support.programs import random_mutant, random_program


def only(text: str) -> Located:
    (located,) = equations(parse(text).program)
    return located


def instances(one: Located) -> Counter[tuple[int, ...]]:
    """Every filling of the holes, by plain counting."""
    form = form_of(one.equation)
    found: Counter[tuple[int, ...]] = Counter()
    ranges = [range(loop.start, loop.start + loop.extent) for loop in one.loops]
    for point in product(*ranges):
        values = {loop.index: i for loop, i in zip(one.loops, point, strict=True)}
        if all(evaluate(c, values) for c in form.conditions):
            found[tuple(int(evaluate(h, values)) for h in form.holes)] += 1
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("L^8_a=0[D_{a}=A_{a};];", "L^2_c=0L^4_a=0[D_{c*4+a}=A_{c*4+a};];"),
        ("L^7_a=0[D_{a}=A_{a};];", "L^2_c=0L^4_a=0[D_{c*4+a}=A_{c*4+a}:c*4+a<7;];"),
        ("L^7_a=0[D_{a}=A_{a};];", "L^7_a=3[D_{a-3}=A_{a-3};];"),
        ("L^3_a=0L^4_c=0[D_{a,c}=A_{c,a};];", "L^12_f=0[D_{f//4,f%4}=A_{f%4,f//4};];"),
        ("L^3_a=0L^4_c=0[D_{a,c}=A_{c,a};];", "P^4_c=0L^3_a=0[D_{a,c}=A_{c,a};];"),
        ("L^3_a=0L^4_c=0[D=D+A_{a};];", "L^2_f=0L^3_a=0L^2_c=0[D=D+A_{a};];"),
        (
            "L^6_a=0L^9_c=0[D_{a,c}=A_{a,c};];",
            "L^2_f=0L^3_g=0L^3_a=0L^3_c=0[D_{f*3+a,g*3+c}=A_{f*3+a,g*3+c};];",
        ),
        (
            "L^12_a=0[D_{a//4}=D_{a//4}+A_{a};];",
            "L^3_c=0L^4_a=0[D_{c}=D_{c}+A_{c*4+a};];",
        ),
    ],
)
def test_common_steps_have_one_form(before: str, after: str) -> None:
    one, other = only(_annotated(before)), only(_annotated(after))
    assert instances(one) == instances(other)
    normal = normal_form(one.equation, one.loops)
    assert normal is not None
    assert normal == normal_form(other.equation, other.loops)


@pytest.mark.parametrize(
    "after",
    [
        "L^2_c=0L^4_a=0[D_{c*4+a}=A_{c*4+a}:c*4+a<6;];",
        "L^2_c=0L^4_a=0[D_{c*4+a}=A_{c*4+a};];",
        "L^7_a=0[D_{a}=A_{a+1};];",
        "L^7_a=0L^2_c=0[D_{a}=A_{a};];",
        "L^7_a=1[D_{a}=A_{a};];",
        "L^2_c=0L^4_a=0[D_{c*3+a}=A_{c*3+a};];",
        "L^14_a=0[D_{a//2}=A_{a//2};];",
    ],
)
def test_others_do_not(after: str) -> None:
    one, other = only(_annotated("L^7_a=0[D_{a}=A_{a};];")), only(_annotated(after))
    assert normal_form(one.equation, one.loops) != normal_form(other.equation, other.loops)


def _annotated(short: str) -> str:
    """Loops as ``L^8_a=0``, tensors without annotations."""
    text = ""
    for i, char in enumerate(short):
        text += f"{char}^{{f32,g}}" if char in "DA" else char
        del i
    head, body = text.split("[", 1)
    loops = "".join(
        f"{kind}^{{{extent}}}_{{{index}}}"
        for kind, extent, index in ((part[0], *part[2:].split("_")) for part in _parts(head))
    )
    return f"{loops}[{body}"


def _parts(head: str) -> list[str]:
    starts = [i for i, char in enumerate(head) if char in "LP"]
    return [head[i:j] for i, j in zip(starts, [*starts[1:], len(head)], strict=True)]


def _programs(seeds: range) -> list[Program]:
    return [make(seed).program for seed in seeds for make in (random_program, random_mutant)]


def _compare(seeds: range) -> int:
    """Equal normal forms of any two equations mean equal instances; how many pairs were equal."""
    by_form: dict[object, list[Located]] = {}
    for program in _programs(seeds):
        for one in equations(program):
            size = 1
            for loop in one.loops:
                size *= loop.extent
            normal = normal_form(one.equation, one.loops) if size <= 400 else None
            if normal is not None:
                by_form.setdefault(normal, []).append(one)
    pairs = 0
    for found in by_form.values():
        first = instances(found[0])
        for other in random.Random(0).sample(found[1:], min(3, len(found) - 1)):
            assert instances(other) == first
            pairs += other != found[0]
    return pairs


def test_equal_forms_of_random_equations_mean_equal_instances() -> None:
    assert _compare(range(150)) > 20


@pytest.mark.slow
def test_equal_forms_of_many_random_equations_mean_equal_instances() -> None:
    assert _compare(range(1000, 4000)) > 500
