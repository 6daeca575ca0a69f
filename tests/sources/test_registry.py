"""The workload library: names, texts, samples and siblings."""

import random
import subprocess
import sys

import pytest

from steptp_dagster.sources.base import BUDGET, Source, SourceError
from steptp_dagster.sources.registry import SOURCES, WORKLOADS
from steptp_dagster.sources.tables import mathematical
from tests.support.workloads import LEVEL_1, LEVEL_2

sources = pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))


def test_every_workload_is_there_and_no_other() -> None:
    levels = {name: SOURCES[name].workload_level for name in WORKLOADS}
    assert levels == {**dict.fromkeys(LEVEL_1, 1), **dict.fromkeys(LEVEL_2, 2)}
    assert (len(LEVEL_1), len(LEVEL_2), len(WORKLOADS)) == (83, 119, 202)


def test_programs_of_our_own_stand_beside_the_published_ones() -> None:
    own = [name for name, source in SOURCES.items() if source.origin == "steptp"]
    assert own == [source.program for source in mathematical.SOURCES]
    assert len(SOURCES) == len(WORKLOADS) + len(own)


def test_importing_the_registry_does_not_import_torch() -> None:
    code = "import sys, steptp_dagster.sources.registry; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@sources
def test_row_is_complete(source: Source) -> None:
    assert SOURCES[source.program] is source
    assert source.workload_level in (1, 2)
    assert set(source.arguments) | source.structure | set(source.large) <= set(source.pools)
    named = {e for i in source.inputs for e in i.extents if isinstance(e, str)}
    assert named <= set(source.pools)


@sources
def test_code_stands_alone(source: Source) -> None:
    name = source.module.split(":")[1]
    space: dict[str, object] = {}
    exec(compile(source.code, source.program, "exec"), space)
    assert isinstance(space[name], type)
    assert len(source.code_hash) == 32


@sources
def test_default_samples(source: Source) -> None:
    shapes = source.sample(random.Random(3), 4)
    assert shapes == source.sample(random.Random(3), 4)
    assert len(shapes) >= 3
    assert len({tuple(s.items()) for s in shapes}) == len(shapes)
    for shape in shapes:
        assert set(shape) == set(source.pools)
        assert source.admits(shape)
        assert 0 < source.work(shape) <= BUDGET


@sources
def test_usual_samples_have_no_ones_that_practice_lacks(source: Source) -> None:
    shapes = source.sample(random.Random(3), 3, usual=True)
    assert shapes
    for shape in shapes:
        assert source.admits(shape)
        assert source.work(shape) <= BUDGET
        ones = {name for name, extent in shape.items() if extent == 1}
        assert not {n for n in ones & set(source.large) if min(source.large[n]) > 1}
    # They are those of all samples that are usual, in the same order.
    every = source.sample(random.Random(3), 40)
    assert [s for s in every if s in shapes] == [s for s in shapes if s in every]


@sources
def test_large_samples_have_small_siblings(source: Source) -> None:
    (large,) = source.sample(random.Random(5), 1, "large")
    sibling = source.sibling(large, random.Random(5))
    assert sibling == source.sibling(large, random.Random(5))
    assert source.work(sibling) <= BUDGET
    for name in sibling:
        if name in source.structure or large[name] == 1:
            assert sibling[name] == large[name]
        else:
            assert sibling[name] > 1


def test_samples_differ_by_seed() -> None:
    source = SOURCES["Matmul3D"]
    assert source.sample(random.Random(1), 5) != source.sample(random.Random(2), 5)


def test_samples_hold_ones_primes_and_rests() -> None:
    shapes = SOURCES["Matmul3D"].sample(random.Random(0), 20)
    extents = {v for s in shapes for v in s.values()}
    assert {1, 7, 13} <= extents


def test_bias_is_sampled_both_ways() -> None:
    source = SOURCES["conv_standard_2D__square_input__square_kernel"]
    assert {s["bias"] for s in source.sample(random.Random(0), 8)} == {0, 1}


def test_pooling_is_padded() -> None:
    assert all(s["padding"] for s in SOURCES["Max_Pooling_2D"].sample(random.Random(0), 8))


def test_building_is_deterministic_and_typed() -> None:
    source = SOURCES["LayerNorm"]
    shape = {"batch": 1, "rows": 3, "features": 5}
    first, second = source.build(shape, "f16", seed=4), source.build(shape, "f16", seed=4)
    assert str(first.module.state_dict()) == str(second.module.state_dict())
    assert first.inputs[0].dtype == "f16"
    assert first.inputs[0].shape == (1, 3, 5)
    assert (first.example(1)[0] == second.example(1)[0]).all()
    assert (first.example(1)[0] != second.example(2)[0]).any()


def test_ranges_bound_the_examples() -> None:
    source = SOURCES["log_log"]
    built = source.build(source.sample(random.Random(0), 1)[0])
    low, high = built.ranges["a"]
    assert all((x >= low).all() and (x <= high).all() for x in built.example(0))


def test_misuse_is_refused() -> None:
    source = SOURCES["softmax"]
    with pytest.raises(SourceError, match="no dtype 'f8'"):
        source.build({"rows": 2, "columns": 3}, "f8")
    with pytest.raises(SourceError, match="rows columns"):
        source.build({"rows": 2})


def test_blank_inputs_are_the_same_each_time() -> None:
    """Translations look at integers, so that leftovers in memory would show in their texts."""
    built = SOURCES["CrossEntropyLoss"].build({"rows": 12, "columns": 32}, "f16")
    scores, classes = built.blank()
    assert (scores == 0).all()
    assert classes.min() >= 0
    assert classes.max() < 32
    assert all(a.equal(b) for a, b in zip(built.blank(), built.blank(), strict=True))
