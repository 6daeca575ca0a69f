"""Steps of programs too large to run, judged on siblings: what is mapped, and what is not."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from steptp_dagster.dataset.siblings import (
    SmallStep,
    explained,
    on_siblings,
    small_steps,
)
from steptp_dagster.dataset.small_shapes import sibling_shapes
from steptp_dagster.dataset.stages.steps import parameters
from steptp_dagster.dataset.structure import structure
from steptp_dagster.leir.ast import Int, Loop
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.base import Refusal, Site
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.translate.translate import TranslationRefusal, translate
from steptp_dagster.verify import reasons
from steptp_dagster.verify.record import Verdict
from steptp_dagster.verify.verdict import verify

SHAPE = {"batch": 64, "m": 1024, "n": 128, "k": 512}


def translated(program: str, shape: Mapping[str, int]) -> SignedProgram:
    built = SOURCES[program].build(shape, "f32", 0)
    found = translate(built.module, built.blank(), source=program, ranges=built.ranges)
    assert not isinstance(found, TranslationRefusal)
    return found.signed


def written(shape: Mapping[str, int]) -> SignedProgram:
    """The program as the translation writes it, without PyTorch."""
    b, m, n, k = (shape[name] for name in ("batch", "m", "n", "k"))
    return read(
        f"# input A f32[{b},{m},{k}]\n# input C f32[{k},{n}]\n# output D f32[{b},{m},{n}]\n"
        f"B^{{{b}}}_{{tx=0}}L^{{{m}}}_{{a=0}}L^{{{n}}}_{{c=0}}L^{{{k}}}_{{d=0}}"
        "[D^{f32,g}_{tx,a,c}=D^{f32,g}_{tx,a,c}+A^{f32,g}_{tx,a,d}*C^{f32,g}_{d,c};];"
    ).signed


@cache
def matmul() -> tuple[SignedProgram, dict[str, SignedProgram]]:
    shapes = sibling_shapes(SOURCES["Matmul3D"], SHAPE)
    siblings = {str(i): written(s) for i, s in enumerate(shapes)}
    return written(SHAPE), siblings


def stepped(name: str, large: SignedProgram, **wanted: object) -> Step:
    """The first step of a strategy whose site has the parameters named."""
    chosen = strategy(name)
    for site in chosen.survey(large).sites:
        if all(site.named[k] == v for k, v in wanted.items()):
            step = take(chosen, large, site)
            assert not isinstance(step, Refusal)
            return step
    raise AssertionError(f"no such site of {name}")


def plain(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(parameters(site)))
    return found


def mapped(step: Step, after: SignedProgram | None = None) -> dict[str, SmallStep] | str:
    large, siblings = matmul()
    chosen = strategy(step.strategy)
    pair = (large, after or step.after)
    return small_steps(chosen, step.site.path, plain(step.site), pair, siblings)


def test_siblings_are_small_alike_and_unlike_each_other() -> None:
    source = SOURCES["Matmul3D"]
    shapes = sibling_shapes(source, SHAPE)
    assert len(shapes) >= 2
    assert shapes == sibling_shapes(source, dict(reversed(SHAPE.items())))
    assert all(source.work(s) < source.work(SHAPE) / 1000 for s in shapes)
    assert sum(shapes[0][n] != shapes[1][n] for n in SHAPE) >= 3


def test_siblings_are_equal_but_for_numbers() -> None:
    large, siblings = matmul()
    forms = {structure(p)[0] for p in (large, *siblings.values())}
    assert len(forms) == 1
    assert len({structure(p)[1] for p in (large, *siblings.values())}) == 1 + len(siblings)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("loop_split", {"tail": "exact", "loop": "a"}),
        ("loop_split", {"tail": "guard", "loop": "a"}),
        ("cache_read_write", {"scope": "l"}),
        ("reduction_factorization", {}),
    ],
)
def test_a_step_is_repeated_on_siblings_and_accepted(name: str, wanted: dict[str, str]) -> None:
    large, _ = matmul()
    step = stepped(name, large, **wanted)
    assert verify(large, step.after).reason == reasons.TOO_LARGE
    found = mapped(step)
    assert not isinstance(found, str), found
    assert len(found) >= 2
    for small in list(found.values())[:1]:
        assert small.site.path == step.site.path
        assert structure(small.after)[0] == structure(step.after)[0]
        assert verify(small.before, small.after).accepted


def test_a_number_that_is_wrong_at_the_large_shape_only_is_refused() -> None:
    """Every number of the large result changed by one: the siblings must not stand for any."""
    large, _ = matmul()
    step = stepped("loop_split", large, tail="exact", loop="a")
    _, numbers = structure(step.after)
    body = len(numbers) - sum(len(v.shape) for v in large.signature.variables)
    refused = 0
    for place in range(body):
        for change in (-1, 1):
            wrong = _changed(step.after, place, change)
            if wrong is None or wrong == step.after:
                continue
            found = mapped(step, wrong)
            assert isinstance(found, str), (place, change)
            refused += 1
    assert refused >= 12


def _changed(signed: SignedProgram, place: int, change: int) -> SignedProgram | None:
    """The program with its number ``place`` changed; None where that is no number of LEIR."""
    seen = iter(range(10**6))
    nests = _renumbered(signed.program.nests, place, change, seen)
    try:
        return SignedProgram(replace(signed.program, nests=nests), signed.signature)
    except ValueError:
        return None


def _renumbered(node: Any, place: int, change: int, seen: Any) -> Any:
    """The tree in the order of ``structure``, one number changed."""

    def number(value: int) -> int:
        return value + change if next(seen) == place else value

    if isinstance(node, Int):
        return Int(max(0, number(node.value)))
    if isinstance(node, Loop):
        start = max(0, number(node.start))
        return replace(node, start=start, extent=max(1, number(node.extent)))
    if isinstance(node, tuple):
        return tuple(_renumbered(item, place, change, seen) for item in node)
    if isinstance(node, str) or node is None:
        return node
    fields = [f for f in type(node).__slots__ if f != "pos"]
    return replace(node, **{f: _renumbered(getattr(node, f), place, change, seen) for f in fields})


def test_another_structure_is_no_sibling() -> None:
    large, siblings = matmul()
    split = stepped("loop_split", large, tail="exact", loop="a")
    other = stepped("loop_reorder", large)
    found = small_steps(
        strategy("loop_split"), split.site.path, plain(split.site), (large, other.after), siblings
    )
    assert isinstance(found, str)
    assert "0 siblings" in found


def test_numbers_follow_from_numbers_by_one_formula() -> None:
    known = [(1024, 16, 8), (512, 8, 16), (128, 4, 2)]
    factor = [(32, 4, 3)]
    assert explained((1024, 16, 8), known)
    assert explained((3, 3, 3), known)
    assert explained((1024 * 512, 128, 128), known)
    assert explained((1024 * 512 * 128, 512, 256), known)
    assert explained((1023, 15, 7), known)
    assert explained((32, 4, 3), known, factor)
    assert explained((32, 4, 3), known, factor)
    assert explained((1024, 16, 9), known, factor)  # rounded up to whole factors
    assert explained((1 / 512, 1 / 8, 1 / 16), known)
    assert explained((1024**0.5, 4.0, 8**0.5), known)
    assert not explained((1023, 16, 8), known, factor)
    assert not explained((1025, 16, 8), known, factor)
    assert not explained((16, 16, 8), known, factor)
    assert not explained((33, 4, 3), known, factor)
    assert not explained((1 / 511, 1 / 8, 1 / 16), known)


def test_the_weakest_sibling_decides() -> None:
    exact = Verdict(True, "exact", True, None, evidence="executed")
    close = Verdict(True, "reassociated", False, None, evidence="executed")
    wrong = Verdict(False, "rejected", False, reasons.MATHEMATICS, "on the family normal")
    named = [("a", "{}"), ("b", "{}")]
    both = on_siblings([exact, close], named)
    assert (both.accepted, both.equality, both.bitwise) == (True, "reassociated", False)
    assert (both.evidence, both.sibling, both.message) == ("sibling", tuple(named), "")
    one = on_siblings([exact, wrong], named)
    assert (one.accepted, one.reason) == (False, reasons.MATHEMATICS)
    assert one.message == "on a sibling: on the family normal"


@pytest.mark.slow
def test_steps_of_all_families_are_repeated() -> None:
    """One large sample of a program per family: four in five first sites have small ones."""
    from steptp_dagster.strategies.registry import strategies

    tried = mapped_count = 0
    families: set[str] = set()
    assert structure(translated("Matmul3D", SHAPE)) == structure(matmul()[0])
    for name, source in SOURCES.items():
        if source.family in families:
            continue
        families.add(source.family)
        (shape,) = source.sample(random.Random(0), 1, "large")
        large = translated(name, shape)
        shapes = sibling_shapes(source, shape)
        small = {str(i): translated(name, s) for i, s in enumerate(shapes)}
        form = structure(large)[0]
        small = {n: p for n, p in small.items() if structure(p)[0] == form}
        for chosen in strategies().values():
            for site in chosen.survey(large).sites[:1]:
                step = take(chosen, large, site)
                if isinstance(step, Refusal):
                    continue
                found = small_steps(chosen, site.path, plain(site), (large, step.after), small)
                tried += 1
                mapped_count += not isinstance(found, str)
    assert tried > 100
    assert mapped_count >= 0.8 * tried
