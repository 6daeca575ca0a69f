"""Accumulations whose order matters for more than rounding do not run in any order."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.validity import check
from steptp_dagster.strategies.registry import strategy


def program(target: str, source: str, value: str, loop: str = "L^{4}_{a=0}") -> str:
    index = "tya" if "tya" in loop else "a"
    value = value.replace("D", f"D^{{{target},g}}_{{tx}}").replace(
        "A", f"A^{{{source},g}}_{{tx,I}}"
    )
    return (
        f"# input A {source}[2,4]\n# output D {target}[2]\n"
        f"B^{{2}}_{{tx=0}}{loop}[D^{{{target},g}}_{{tx}}={value.replace('I', index)};];\n"
    )


IN_ORDER = [
    ("i32", "f32", "D+A"),
    ("i32", "f32", "max(D,A)"),
    ("i8", "i32", "max(D,A)"),
    ("bool", "f32", "D+A"),
    ("bool", "i32", "D+A"),
]
IN_ANY_ORDER = [
    ("f16", "f32", "D+A"),
    ("i32", "i32", "D+A"),
    ("i8", "i32", "D+A"),
    ("i32", "i32", "max(D,A)"),
    ("bool", "bool", "max(D,A)"),
    ("bool", "f32", "max(D,A<1)"),
]


@pytest.mark.parametrize(("target", "source", "value"), IN_ORDER)
def test_what_converts_at_every_step_keeps_its_order(target: str, source: str, value: str) -> None:
    serial = read(program(target, source, value)).signed
    assert check(serial) == ()
    bound = read(program(target, source, value, "B^{4}_{tya=0}")).signed
    assert {v.kind for v in check(bound)} == {"loop-conflict"}
    for name in ("loop_binding", "loop_parallelization", "reduction_factorization"):
        assert not [
            s for s in strategy(name).survey(serial).sites if dict(s.parameters)["loop"] == "a"
        ]


@pytest.mark.parametrize(("target", "source", "value"), IN_ANY_ORDER)
def test_what_only_rounds_may_be_reduced_by_threads(target: str, source: str, value: str) -> None:
    bound = read(program(target, source, value, "B^{4}_{tya=0}")).signed
    assert check(bound) == ()
