"""What users' files give: every form, inputs of every kind, samples, translations."""

from pathlib import Path

import pytest

from steptp_dagster.dataset.user_bench import bench
from steptp_dagster.leir.fileform import write
from steptp_dagster.leir.validity import check
from steptp_dagster.translate.translate import SAME_AS_COMPOSED
from steptp_dagster.users.files import file_of
from steptp_dagster.users.isolation import Limits
from steptp_dagster.users.programs import (
    Untranslated,
    UserSample,
    UserTranslation,
)
from steptp_dagster.users.refusal import UserRefusal
from tests.support.users import BENCHMARK, FLOW, FUNCTION, LARGE, SEVERAL

BENCH = bench(Limits(60.0, 1500))
FILE = file_of(Path("mine.py"))


def programs(text: str) -> list[tuple[str, str]]:
    found = BENCH.programs(FILE, text)
    assert not isinstance(found, UserRefusal), found
    return [(program.name, program.form) for program in found]


def samples(text: str, program: str = "", count: int = 1) -> tuple[UserSample, ...]:
    found = BENCH.samples(FILE, text, program, ["f32", "f16"], count)
    assert not isinstance(found, UserRefusal), found
    assert found.late is None
    return found.samples


def translation(
    sample: UserSample, program: str = "", dtype: str = "", form: str = "composed"
) -> UserTranslation:
    found = BENCH.translation(FILE, sample.text, program, sample.shape, dtype, form=form)
    assert isinstance(found, UserTranslation), found
    assert check(found.signed) == ()
    return found


def assert_faithful(found: UserTranslation) -> None:
    assert found.objection is None
    assert found.figures is not None
    assert len(found.figures["comparisons"]) >= 3
    assert found.fidelity is not None
    assert found.fidelity < 1e-9


def shape(sample: UserSample) -> tuple[int, ...]:
    """The shape of the first input of a sample's translation."""
    variables = translation(sample).signed.signature.variables
    return next(v.shape for v in variables if v.role == "input")


def test_benchmark_form(capfd: pytest.CaptureFixture[str]) -> None:
    assert programs(BENCHMARK) == [("", "benchmark")]
    (sample,) = samples(BENCHMARK)
    assert sample.text == BENCHMARK
    assert sample.dtypes == ("f32", "f16")
    assert sample.inputs == ({"name": "x", "shape": [2, 5], "dtype": "f32"},)
    found = translation(sample)
    assert_faithful(found)
    assert set(found.names.values()) == {"x", "layer.weight", "layer.bias", "output 0"}
    assert found.origins[0]["location"].startswith("mine.py:14: ")
    half = translation(sample, dtype="f16")
    assert {v.dtype for v in half.signed.signature.variables} == {"f16"}
    assert_faithful(half)
    assert BENCH.screens(write(found.signed)) == ()
    assert capfd.readouterr().out == ""


def test_several_programs_with_nested_inputs_keywords_and_constants() -> None:
    assert programs(SEVERAL) == [
        ("Scale", "class"),
        ("Pair", "class"),
        ("Broken", "class"),
        ("soft max", "table"),
    ]
    (scale,) = samples(SEVERAL, "Scale")
    assert [i["name"] for i in scale.inputs] == ["x", "bias"]
    assert scale.constants == {"mode": "'mul'"}
    assert_faithful(translation(scale, "Scale"))
    (pair,) = samples(SEVERAL, "Pair")
    assert [i["name"] for i in pair.inputs] == ["both[0]", "both[1]['w']"]
    assert pair.constants == {"n": "3"}
    found = translation(pair, "Pair")
    assert_faithful(found)
    named = {found.names[v.name] for v in found.signed.signature.variables}
    assert named == {"both[0]", "both[1]['w']", "output 0", "output 1"}
    assert_faithful(translation(samples(SEVERAL, "soft max")[0], "soft max"))
    broken = BENCH.samples(FILE, SEVERAL, "Broken", ["f32"], 1)
    assert isinstance(broken, UserRefusal)
    assert broken.location == "mine.py:41"


def test_other_extents_of_constants_and_of_rows() -> None:
    given, *others = samples(BENCHMARK, count=3)
    assert given.shape == {}
    assert len({str(sample.inputs) for sample in (given, *others)}) == 3
    for sample in others:
        assert f"rows = {sample.shape['rows']}\n" in sample.text
        assert_faithful(translation(sample))
    rows = samples(FUNCTION.replace("torch.ones(n)", "torch.ones(4, 2)"), count=2)
    assert [s.inputs[0]["shape"] for s in rows] == [[4, 2], [3, 2]]
    assert shape(rows[1]) == (3, 2)


def test_a_file_says_its_extents_itself() -> None:
    found = samples(FUNCTION + "SHAPES = [{'n': 5}, {'n': 1}]\n", count=7)
    assert [s.shape for s in found] == [{"n": 5}, {"n": 1}]
    assert [shape(s) for s in found] == [(5,), (1,)]
    constant = samples(BENCHMARK + "SHAPES = {'': [{'rows': 7}]}\n")
    assert [s.inputs[0]["shape"] for s in constant] == [[7, 5]]
    assert "rows = 7\n" in constant[0].text


def test_a_large_program_is_translated_without_memory_and_compared_when_shrunk() -> None:
    large, small = samples(LARGE)
    found = translation(large, dtype="f16")
    assert [v.shape for v in found.signed.signature.variables if v.role == "param"] == [
        (262144, 65536),
        (262144,),
    ]
    assert found.fidelity is None
    assert "over 5000000" in found.unexecuted
    assert small.shape == {"batch": 8, "inner": 8, "outer": 8}
    assert_faithful(translation(small))


def test_forms() -> None:
    text = FUNCTION.replace("x * 2", "x.reshape(1, -1).transpose(0, 1) * 2")
    (sample,) = samples(text)
    composed, naive = translation(sample), translation(sample, form="naive")
    assert len(naive.signed.program.nests) > len(composed.signed.program.nests)
    dead = translation(sample, form="dead-code")
    assert len(dead.signed.program.nests) > len(composed.signed.program.nests)
    assert dead.plain == composed.plain == write(composed.signed)
    twin = BENCH.translation(FILE, FUNCTION, "", {}, "", form="naive", twin=True)
    assert isinstance(twin, Untranslated)
    assert twin.operator == "same-as-composed"
    assert SAME_AS_COMPOSED.message in twin.message


def test_control_flow_on_data_is_refused_with_its_line() -> None:
    (sample,) = samples(FLOW, count=3)
    found = BENCH.translation(FILE, sample.text, "", {}, "")
    assert isinstance(found, Untranslated)
    assert "mine.py:6" in found.message
