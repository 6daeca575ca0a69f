"""Nests are compiled once, whatever program they stand in and whatever their names are."""

from collections.abc import Mapping

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import abi, build, compile_programs, library
from steptp_dagster.lowering.abi import FlatFunction, OptLevel
from steptp_dagster.lowering.library import Library
from steptp_dagster.lowering.lower import facts_of, lower_nests
from steptp_dagster.lowering.nests import NestKey, nest_uses, uses_in
from steptp_dagster.lowering.precision import Precision

HEAD = "# input A f32[4]\n# output D f32[4]\n"
SQUARE = "L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a}*A^{f32,g}_{a};];"
TWICE = "L^{4}_{a=0}[D^{f32,g}_{a}=C^{f32,g}_{a}+C^{f32,g}_{a};];"
TOTAL = "L^{4}_{a=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a};];"
DATA = np.array([1.0, -2.0, 3.0, 0.5], np.float32)


def signed(*nests: str) -> SignedProgram:
    return read(HEAD + "\n".join(nests)).signed


def keys(*nests: str, precision: Precision = "working") -> list[NestKey]:
    uses = uses_in(nest_uses(facts_of(signed(*nests))), precision)
    return [use.key for use in uses]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many functions each call of the compiler got, with no code there before."""
    counts: list[int] = []

    def counting(functions: Mapping[str, FlatFunction], level: OptLevel) -> dict[str, abi.Entry]:
        if functions:
            counts.append(len(functions))
        return abi.compile_functions(functions, level)

    monkeypatch.setattr(library, "compile_functions", counting)
    monkeypatch.setattr(build, "_library", Library(512))
    monkeypatch.setattr(build, "_programs", type(build._programs)())
    return counts


def test_a_candidate_compiles_only_the_nests_that_changed(compiled: list[int]) -> None:
    original = signed(SQUARE, TWICE)
    compile_programs([original])
    assert compiled == [2]
    changed = signed(SQUARE, TWICE.replace("+", "-"))
    renamed = signed(SQUARE.replace("a", "c").replace("C^", "F^"), TWICE.replace("C^", "F^"))
    first, second = compile_programs([changed, renamed])
    assert compiled == [2, 1]
    assert first.run({"A": DATA})["D"].tolist() == [0.0] * 4
    assert second.run({"A": DATA})["D"].tolist() == (2 * DATA * DATA).tolist()
    compile_programs([original], "float64")
    assert compiled == [2, 1, 2]


def test_several_programs_are_one_module(compiled: list[int]) -> None:
    found = build.compile_wanted(
        [(signed(SQUARE, TWICE), "working"), (signed(SQUARE, TWICE), "float64")]
    )
    assert compiled == [4]
    assert [k.run({"A": DATA})["D"].dtype for k in found] == [np.float32, np.float64]


def test_what_decides_the_code_is_in_the_key() -> None:
    (fresh,) = keys(TOTAL)
    first, continued = keys("L^{4}_{a=0}[D^{f32,g}_{a}=1;];", TOTAL)
    assert fresh.text == continued.text
    assert fresh != continued  # one starts from zero, the other goes on
    assert keys(TOTAL, precision="float64") != [fresh]
    whole = keys(SQUARE.replace("{4}", "{3}"), TWICE.replace("{4}", "{3}"))[1]
    sparse = keys(SQUARE.replace("_{a}=", "_{2*a}=").replace("{4}", "{3}"), TWICE)[0]
    assert len({key.tensors for key in (whole, sparse, first)}) == 3


@pytest.mark.parametrize("precision", ["working", "float64"])
def test_starts_differ_where_keys_do(precision: Precision) -> None:
    one, other = signed(TOTAL), signed("L^{4}_{a=0}[D^{f32,g}_{a}=1;];", TOTAL)
    kernels = compile_programs([one, other, one], precision)
    results = [k.run({"A": DATA})["D"].tolist() for k in kernels]
    assert results == [DATA.tolist(), (DATA + 1).tolist(), DATA.tolist()]


def test_runs_of_one_call_are_runs_of_their_own() -> None:
    kernel = compile_programs([signed(SQUARE, TWICE)])[0]
    many = np.arange(40, dtype=np.float32).reshape(10, 4)
    together = kernel.run_many({"A": many}, 10)["D"]
    assert together.tolist() == [kernel.run({"A": row})["D"].tolist() for row in many]


def test_the_library_is_bounded_and_keeps_what_is_used() -> None:
    small = Library(4)
    texts = [SQUARE.replace("*", f"*{n}*") for n in range(2, 10)]
    often = keys(SQUARE)[0]

    def functions(text: str) -> dict[NestKey, FlatFunction]:
        facts = facts_of(signed(text, TWICE))
        use = next(nest_uses(facts))
        return {use.key: lower_nests(facts, [0], use.names, "working")}

    small.add(functions(SQUARE))
    for text in texts:
        small.add(functions(text))
        assert small[often] is not None
        small.shrink()
        assert len(small) <= 4
    last = keys(texts[-1], TWICE)[0]
    assert often in small
    assert last in small
    assert keys(texts[0], TWICE)[0] not in small
    with pytest.raises(KeyError):
        small[keys(texts[0], TWICE)[0]]


def test_functions_that_share_machine_code_are_told_apart(compiled: list[int]) -> None:
    nests = [TWICE.replace("+", f"*{k}-") for k in range(40)]
    programs = [signed(SQUARE, nest) for nest in nests]
    kernels = compile_programs(programs)
    assert compiled == [41]
    for k, kernel in enumerate(kernels):
        assert kernel.run({"A": DATA})["D"].tolist() == (k * DATA * DATA - DATA * DATA).tolist()
    entries = {kernel.calls[1].entry for kernel in kernels}
    assert len(entries) == len(programs)
    assert len({entry.function for entry in entries}) < len(programs)
