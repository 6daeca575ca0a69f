"""cache_read_write: every site of every program executed, budgets, threads, chains of caches."""

import pytest

from steptp_dagster.leir.ast import THREAD_AXES
from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, equations
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.memory.cache_read_write import CacheReadWrite
from steptp_dagster.strategies.step import Step, take
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs
from tests.support.strategy_cases import all_cases

CACHE = CacheReadWrite()
MATMUL = """
# input A {dtype}[{m},{k}]
# input C {dtype}[{k},{n}]
# output D {dtype}[{m},{n}]
B^{{{m}}}_{{tx=0}}L^{{{n}}}_{{a=0}}L^{{{k}}}_{{c=0}}[
  D^{{{dtype},g}}_{{tx,a}}=D^{{{dtype},g}}_{{tx,a}}
    +A^{{{dtype},g}}_{{tx,c}}*C^{{{dtype},g}}_{{c,a}};];
"""
TILED = """
# input A f32[4,8]
# input C f32[8,6]
# output D f32[4,6]
B^{2}_{bx=0}B^{3}_{by=0}L^{2}_{d=0}B^{2}_{tx=0}B^{2}_{ty=0}L^{4}_{c=0}[
  D^{f32,g}_{bx*2+tx,by*2+ty}=D^{f32,g}_{bx*2+tx,by*2+ty}
    +A^{f32,g}_{bx*2+tx,d*4+c}*C^{f32,g}_{d*4+c,by*2+ty};];
"""


def _matmul(m: int, n: int, k: int, dtype: str = "f32") -> SignedProgram:
    return read(MATMUL.format(m=m, n=n, k=k, dtype=dtype)).signed


def _take(program: SignedProgram, site: Site) -> Step:
    step = take(CACHE, program, site)
    assert isinstance(step, Step), step
    return step


def _site(program: SignedProgram, **wanted: str) -> Site:
    found = [
        site
        for site in CACHE.survey(program).sites
        if all(site.named[name] == value for name, value in wanted.items())
    ]
    assert len(found) == 1, [site.describe() for site in found]
    return found[0]


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [
        ((4, 6, 8), "f32"),
        ((3, 5, 7), "f16"),
        ((2, 3, 5), "f64"),
        ((2, 3, 4), "i32"),
        ((1, 2, 3), "f32"),
        ((2, 1, 2), "f32"),
        ((11, 2, 5), "f32"),
    ],
)
def test_every_site_is_exact(sizes: tuple[int, int, int], dtype: str) -> None:
    program = _matmul(*sizes, dtype=dtype)
    sites = CACHE.survey(program).sites
    assert sites
    for site in sites:
        step = _take(program, site)
        assert step.numerics == "exact"
        assert_equal_outputs(program, step.after, random_inputs(program, 1), "exact")


def test_every_site_of_every_case_is_exact() -> None:
    taken = 0
    for case in all_cases():
        if case.strategy == "cache_read_write" and cost(case.before).iterations < 5000:
            for site in CACHE.survey(case.before).sites:
                step = _take(case.before, site)
                assert_equal_outputs(
                    case.before, step.after, random_inputs(case.before, 2), "exact"
                )
                taken += 1
    assert taken > 40


def test_both_tiles_then_shared_memory_serves_all_reads() -> None:
    program = read(TILED).signed
    for tensor in ("A", "C"):
        step = _take(program, _site(program, tensor=tensor, scope="s", under="d"))
        assert_equal_outputs(program, step.after, random_inputs(program, 3), "exact")
        program = step.after
    before, after = cost(read(TILED).signed), cost(program)
    assert after.bytes_read["g"] < before.bytes_read["g"]
    body = program.program.nests[0].body
    assert len(body) == 3
    caches = {e.equation.target.name for e in equations(program.program)} - {"D"}
    product = [e.equation for e in equations(program.program)][-1]
    assert {a.name for a in accesses_in(product.value)} == {"D", *caches}


def test_the_copy_uses_the_thread_axes_of_the_block() -> None:
    program = read(TILED).signed
    step = _take(program, _site(program, tensor="A", scope="s", under="d"))
    axes = [
        {loop.axis for loop in located.loops if loop.axis in THREAD_AXES}
        for located in equations(step.after.program)
    ]
    assert axes == [{"tx", "ty"}, {"tx", "ty"}]


def test_an_accumulator_writes_each_element_once() -> None:
    program = _matmul(4, 6, 8)
    step = _take(program, _site(program, direction="write", under="a"))
    assert cost(step.after).bytes_written["g"] == 4 * 6 * 4
    assert cost(program).bytes_written["g"] == 4 * 6 * 8 * 4


def test_caches_hold_the_dtype_of_their_tensor() -> None:
    program = _matmul(4, 6, 8, "f16")
    for site in CACHE.survey(program).sites:
        step = _take(program, site)
        dtypes = {e.equation.target.dtype for e in equations(step.after.program)}
        assert dtypes == {"f16"}


def test_what_does_not_fit_is_refused_with_the_limit() -> None:
    program = _matmul(4, 64, 512)
    refused = [r for r in CACHE.survey(program).refusals if r.reason == "cache-too-large"]
    assert any("131072" in r.message for r in refused), refused
    sites = {(s.text("tensor"), s.text("scope")) for s in CACHE.survey(program).sites}
    assert ("C", "s") not in sites


def test_a_block_reduction_is_not_accumulated_privately() -> None:
    program = read("""
        # input A f32[4,8]
        # output D f32[4]
        L^{4}_{a=0}B^{8}_{tx=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a,tx};];
    """).signed
    survey = CACHE.survey(program)
    assert [s for s in survey.sites if s.text("direction") == "write"] == []
    assert "threads-misplaced" in {r.reason for r in survey.refusals}


def test_sites_are_listed_in_text_order_and_repeat() -> None:
    program = read(TILED).signed
    first, second = CACHE.survey(program), CACHE.survey(read(TILED).signed)
    assert first == second
    paths = [site.path for site in first.sites]
    assert paths == sorted(paths)


def test_a_cache_can_be_cached_no_further() -> None:
    program = _matmul(4, 6, 8)
    step = _take(program, _site(program, tensor="A", scope="l"))
    again = CACHE.survey(step.after)
    assert all(site.text("tensor") != "E" for site in again.sites)
    assert "not-global" in {r.reason for r in again.refusals}
