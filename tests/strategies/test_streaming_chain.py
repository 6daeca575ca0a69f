"""From naive attention to one pass over rolling state: consecutive steps on the same program."""

import random
import re
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.fileform import read, write
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import equations
from steptp_dagster.reasoning.check import grounding
from steptp_dagster.reasoning.render import render_text
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.translate.translate import TranslationRefusal, translate
from steptp_dagster.verify.verdict import verify
from tests.support.attention import (
    CHAIN,
    DEFERRED,
    HARD_ROWS,
    PROGRAMS,
    ROWS,
    SOFTMAX_STEPS,
    program_named,
    taken,
    walked,
)
from tests.support.numerics import TOLERANCE, assert_equal_outputs, normalised_difference
from tests.support.programs import random_inputs

FLASH = "flashattention_wo_tiling"
ROLLING = "flashattention_rolling_state"
ATTENTION = tuple(name for name, source in SOURCES.items() if source.family == "attention")
#: Source programs with a softmax, log-softmax or cross-entropy that nothing is weighted by.
SOFTMAX = (
    "MatMul_and_Softmax",
    "softmax",
    "LogSoftmax",
    "CrossEntropyLoss",
    "KLDivLoss",
    "Gemm_BatchNorm_Scaling_Softmax",
    "Matmul_GELU_Softmax",
    "Matmul_Mean_Softmax",
    "Conv3d_Min_Softmax",
    "Conv3d_HardSwish_ReLU_Softmax_Mean",
    "Conv3d_Softmax_MaxPool_MaxPool",
)


def _source(name: str, *, naive: bool = False, dtype: str = "f32") -> SignedProgram:
    """The translation of a source program at a small shape."""
    source = SOURCES[name]
    built = source.build(source.sample(random.Random(7), 1)[0], dtype, 0)
    found = translate(built.module, built.example(0), ranges=built.ranges, naive=naive)
    assert not isinstance(found, TranslationRefusal), str(found)
    return found.signed


@cache
def _steps(name: str) -> list[Step]:
    """The chain from a program of ``PROGRAMS``."""
    return walked(program_named(name))


def _judge(steps: list[Step]) -> None:
    """Each step and all of them together, by the verdict."""
    for step in steps:
        verdict = verify(step.before, step.after)
        assert verdict.accepted, (step.strategy, verdict.reason, verdict.message)
    whole = verify(steps[0].before, steps[-1].after)
    assert whole.accepted, (whole.reason, whole.message)


def _compare(steps: list[Step], seeds: range) -> None:
    """Each step and all of them together, by the interpreter."""
    for seed in seeds:
        inputs = random_inputs(steps[0].before, seed)
        for step in steps:
            assert_equal_outputs(step.before, step.after, inputs, step.numerics)
        assert_equal_outputs(steps[0].before, steps[-1].after, inputs, "reassociated")


def _tensors(program: SignedProgram) -> set[str]:
    return {one.equation.target.name for one in equations(program.program)}


@pytest.mark.parametrize("name", ["sums are an output", "stored exponentials", "hidden rows"])
def test_every_step_and_the_whole_compute_the_same(name: str) -> None:
    _compare(_steps(name), range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_step_of_every_program_computes_the_same(name: str) -> None:
    _compare(_steps(name), range(3))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_step_is_grounded(name: str) -> None:
    for step in _steps(name):
        chosen = strategy(step.strategy)
        text = render_text(chosen, step.site, step.explanation)
        assert not grounding(step.before, step.after, chosen, step.site, step.explanation, text)


def _at_once(name: str) -> None:
    """Each stage leads to both forms of one pass, without the stages between."""
    steps = _steps(name)
    inputs = random_inputs(steps[0].before, 3)
    naive = interpret(steps[0].before, inputs, precision="float64").outputs
    alone = [v.name for v in steps[0].before.signature.outputs] == ["O"]
    for last, stages in ((FLASH, steps[:5]), (ROLLING, steps)):
        for step in stages:
            result = taken(step.before, last).after
            found = interpret(result, inputs, precision="float64").outputs
            assert all(normalised_difference(naive[n], found[n]) <= TOLERANCE for n in naive)
            ends = next(s.after for s in steps if s.strategy == last)
            # what hides rows may read a copy of the maximum, which only `online_softmax` removes
            copies = 1 if name == "rows without a score" else 0
            more = len(result.program.nests) - len(ends.program.nests)
            assert not alone or 0 <= more <= copies


def test_each_stage_leads_to_one_pass_at_once() -> None:
    _at_once("plain")
    _at_once("sums are an output")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_stage_of_every_program_leads_to_one_pass_at_once(name: str) -> None:
    _at_once(name)


def test_one_division_at_the_end_streams_as_well() -> None:
    """There is no softmax, so ``online_softmax`` has nothing to do; the other steps have."""
    program = read(DEFERRED).signed
    assert strategy("online_softmax").survey(program).sites == ()
    steps = walked(program, tuple(name for name in CHAIN if name != "online_softmax"))
    _compare(steps, range(2))
    _compare(
        [taken(step.before, name) for step in steps[:4] for name in (FLASH, ROLLING)], range(1)
    )


@pytest.mark.parametrize(
    "text", [PROGRAMS["plain"], *ROWS.values()], ids=["plain", *(name.split()[-1] for name in ROWS)]
)
def test_an_online_softmax_over_rolling_state_leads_on(text: str) -> None:
    program, online = read(text).signed, strategy("online_softmax")
    (site,) = (s for s in online.survey(program).sites if s.text("form") == "rolling")
    step = take(online, program, site)
    assert isinstance(step, Step)
    operand = np.arange(12, dtype=np.float32).reshape(6, 2) - 5
    for name in (FLASH, ROLLING):
        result = taken(step.after, name)
        assert_equal_outputs(program, result.after, random_inputs(program, 4), "reassociated")
        if text in ROWS.values():
            _on_hard_rows([step, result], {"S": HARD_ROWS, "X": operand})
    assert structural_hash(result.after) == structural_hash(taken(program, ROLLING).after)


def test_the_last_step_leaves_one_nest_and_private_state() -> None:
    result = _steps("plain")[-1].after
    _, attention = result.program.nests
    assert isinstance(attention, Nest)
    own = [one.equation.target for one in equations(result.program) if one.path[0] == 1]
    assert {target.scope for target in own if target.name != "O"} == {"l"}
    assert _tensors(result) == {"S", "O", *(target.name for target in own)}


def test_weights_that_something_else_reads_stay() -> None:
    steps = _steps("weights are an output")
    assert all("W" in _tensors(step.after) for step in steps)
    assert "W" not in _tensors(_steps("plain")[-1].after)


@pytest.mark.parametrize("form", ["softmax", "log_softmax", "logsumexp", "sum"])
def test_rows_of_a_softmax_that_are_hard(form: str) -> None:
    value, shape = {
        "softmax": ("exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx}", "[9,6]"),
        "log_softmax": ("S^{f32,g}_{tx,a}-M^{f32,g}_{tx}-log(Z^{f32,g}_{tx})", "[9,6]"),
        "logsumexp": ("M^{f32,g}_{tx}+log(Z^{f32,g}_{tx})", "[9]"),
        "sum": ("M^{f32,g}_{tx}+log(Z^{f32,g}_{tx})+Z^{f32,g}_{tx}", "[9]"),
    }[form]
    inner, target = (
        ("L^{6}_{a=0}", "O^{f32,g}_{tx,a}") if shape == "[9,6]" else ("", "O^{f32,g}_{tx}")
    )
    passes = PROGRAMS["rows"].split("# output")[1].split("\n")[1:3]
    text = f"# input S f32[9,6]\n# output O f32{shape}\n" + "\n".join(passes)
    program = read(f"{text}\nB^{{9}}_{{tx=0}}{inner}[{target}={value};];").signed
    steps = walked(program, SOFTMAX_STEPS)
    online = strategy("online_softmax")
    for step in walked(program, SOFTMAX_STEPS):
        found = [take(online, step.before, site) for site in online.survey(step.before).sites]
        steps += [other for other in found if isinstance(other, Step)]
    assert len(steps) > 2 * len(SOFTMAX_STEPS)
    _on_hard_rows(steps, {"S": HARD_ROWS})


def _hard_attention(program: SignedProgram) -> tuple[list[Step], dict[str, np.ndarray]]:
    """All steps from a program over the rows, the later ones from every stage, and its inputs."""
    steps = walked(program)
    steps += [taken(step.before, FLASH) for step in steps[:4]]
    steps += [taken(step.before, ROLLING) for step in steps[:6]]
    operand = np.arange(12, dtype=np.float32).reshape(6, 2) - 5
    return steps, {"S": HARD_ROWS, "X": operand}


@pytest.mark.parametrize("form", ROWS)
def test_hard_rows_of_softmax_written_otherwise(form: str) -> None:
    """Relative to a finite maximum, or to the logarithm of the sum; infinite scores, too."""
    steps, inputs = _hard_attention(read(ROWS[form]).signed)
    assert [step.strategy for step in steps[: len(CHAIN)]] == list(CHAIN)
    _on_hard_rows(steps, inputs)
    scores = HARD_ROWS.copy()
    scores[[1, 5, 6], [0, 3, 5]] = np.inf
    _on_hard_rows(steps, {**inputs, "S": scores})


def test_an_infinity_of_something_else_is_no_shift() -> None:
    """``if_then_else(D==inf,D,R)`` copies a running sum only where D is its running maximum."""
    program = walked(read(ROWS["relative to a finite maximum"]).signed, CHAIN[:2])[-1].after
    assert strategy(FLASH).survey(program).sites
    text = write(program).replace("# input X", "# input D f32[9,6]\n# input X")
    other = read(re.sub(r"(A)(\^\{f32,g\}_\{tx,5\})==inf,A", r"D\2==inf,D", text)).signed
    assert "D^{f32,g}_{tx,5}==inf" in write(other)
    assert not strategy(FLASH).survey(other).sites
    assert not strategy("online_softmax").survey(other).sites


def test_rows_of_an_attention_that_are_hard() -> None:
    steps, inputs = _hard_attention(program_named("rows"))
    operand = inputs["X"]
    _on_hard_rows(steps, inputs)
    with np.errstate(invalid="ignore"):  # the row of nothing but -inf
        expected = np.exp(HARD_ROWS - HARD_ROWS.max(1, keepdims=True))
    expected = expected / expected.sum(1, keepdims=True) @ operand
    assert np.isnan(expected[2]).all()
    for step in steps:
        found = interpret(step.after, {"S": HARD_ROWS, "X": operand}).outputs["O"]
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def _on_hard_rows(steps: list[Step], inputs: dict[str, np.ndarray]) -> None:
    """Finite, infinite and undefined results stand where they stood in the naive program."""
    naive = interpret(steps[0].before, inputs, precision="float64").outputs
    for step in steps:
        run = interpret(step.after, inputs, precision="float64")
        assert run.faults == ()
        for name, value in naive.items():
            assert normalised_difference(value, run.outputs[name]) <= TOLERANCE, step.strategy


@pytest.mark.parametrize("name", ["float mask", "hidden rows", "rows without a score"])
def test_masks_may_hide_whole_rows_and_first_keys(name: str) -> None:
    steps = _steps(name)
    hidden = np.array([[1, 1, 0, 0, 1], [1, 1, 1, 1, 1], [0, 1, 0, 1, 0]], bool)
    inputs = random_inputs(steps[0].before, 5)
    added = np.where(hidden, -np.inf, 0).astype(np.float32)
    inputs["J"] = added if name == "float mask" else ~hidden
    naive = interpret(steps[0].before, inputs).outputs["O"]
    assert (np.isnan(naive[:, 1]) if name == "float mask" else naive[:, 1] == 0).all()
    assert np.isfinite(naive[:, [0, 2]]).all()
    _on_hard_rows(steps, inputs)


def test_infinite_operands_of_vanished_weights_stay_undefined() -> None:
    """Zero times infinity is no number in the naive program, and at no stage after it."""
    operand = np.arange(12, dtype=np.float32).reshape(6, 2) - 5
    operand[0, 0], operand[1, 1] = np.inf, -np.inf
    steps = walked(program_named("rows"))
    steps += [taken(step.before, ROLLING) for step in steps]
    inputs = {"S": HARD_ROWS, "X": operand}
    naive = interpret(steps[0].before, inputs).outputs["O"]
    assert np.isnan(naive[0]).all()
    assert np.isposinf(naive[4, 0]) and np.isneginf(naive[4, 1])
    _on_hard_rows(steps, inputs)


def test_scores_of_hidden_rows_do_not_matter() -> None:
    text = PROGRAMS["rows"].replace("# output", "# input J bool[9]\n# output")
    old = "=exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx};"
    new = f"=if_then_else(J^{{bool,g}}_{{tx}},0,{old[1:-1]});"
    program = read(text.replace(old, new)).signed
    scores = HARD_ROWS.copy()
    scores[8, 2] = np.inf
    operand = np.arange(12, dtype=np.float32).reshape(6, 2) - 5
    hidden = np.array([0, 1, 1, 0, 1, 0, 1, 0, 1], bool)
    steps = walked(program)
    naive = interpret(program, {"S": scores, "X": operand, "J": hidden}).outputs["O"]
    assert (naive[hidden] == 0).all()
    _on_hard_rows(steps, {"S": scores, "X": operand, "J": hidden})
    operand[3, 0] = np.inf
    _on_hard_rows(steps, {"S": scores, "X": operand, "J": hidden})


def test_the_published_recurrence_would_fail_on_these_rows() -> None:
    unsafe = read(
        "# input S f32[9,6]\n# output O f32[9]\n"
        "B^{9}_{tx=0}L^{6}_{a=0}["
        "N^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,N^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});"
        "R^{f32,g}_{tx,a}=if_then_else(a-1<0,0,R^{f32,g}_{tx,a-1}"
        "*exp(N^{f32,g}_{tx,a-1}-N^{f32,g}_{tx,a}))+exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,a});];"
        "B^{9}_{tx=0}[O^{f32,g}_{tx}=R^{f32,g}_{tx,5};];"
    ).signed
    found = interpret(unsafe, {"S": HARD_ROWS}).outputs["O"]
    assert np.isnan(found[[0, 1, 2]]).all()


def test_source_programs_reach_one_pass() -> None:
    """Two of them here, the last by the verdict on the whole chain; all of them when slow."""
    for name in ("GQA_max", "MinGPTCausalAttention"):
        steps = walked(_source(name))
        assert [step.strategy for step in steps] == list(CHAIN)
    verdict = verify(steps[0].before, steps[-1].after)
    assert verdict.accepted, (verdict.reason, verdict.message)


class _Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        """What the function gives."""
        return self.function(*inputs)


def _by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.bmm(q, k.transpose(1, 2)) / 2
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return torch.bmm(weights / weights.sum(-1, keepdim=True), v)


def _einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k), -1)
    return torch.einsum("bhqk,bhkd->bqhd", weights, v)


def _by_logsumexp(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.bmm(q, k.transpose(1, 2)) / 2
    weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    return torch.bmm(weights, v)


_3D = ((2, 3, 4), (2, 5, 4), (2, 5, 6))
_4D = ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4))
#: Attention as people write it, with the shapes of its inputs.
WRITTEN: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "by hand, across": (_by_hand, _3D),
    "by logsumexp": (_by_logsumexp, _3D),
    "einsum": (_einsum, _4D),
    "scaled dot product": (functional.scaled_dot_product_attention, _4D),
    "causal": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        _4D,
    ),
    "float mask": (functional.scaled_dot_product_attention, (*_4D, (3, 5))),
    "over another dimension": (
        lambda q, k, v: torch.softmax(k @ q.transpose(-2, -1), -2).transpose(-2, -1) @ v,
        _4D,
    ),
    "pooling": (
        lambda x: (torch.softmax(x.sum(-1), -1).unsqueeze(-1) * x).sum(1),
        ((2, 5, 4),),
    ),
}


def _written(name: str) -> SignedProgram:
    function, shapes = WRITTEN[name]
    found = translate(_Function(function), tuple(torch.zeros(shape) for shape in shapes))
    assert not isinstance(found, TranslationRefusal), str(found)
    return found.signed


@pytest.mark.parametrize("name", ["by hand, across", "causal"])
def test_attention_as_it_is_written_reaches_one_pass(name: str) -> None:
    steps = walked(_written(name))
    assert [step.strategy for step in steps] == list(CHAIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_attention_as_it_is_written_by_the_verdict(name: str) -> None:
    steps = walked(_written(name))
    _compare(steps, range(1))
    _judge(steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTENTION)
def test_all_attention_programs_reach_one_pass(name: str) -> None:
    steps = walked(_source(name))
    assert [step.strategy for step in steps] == list(CHAIN)
    _compare(steps, range(1))
    _on_hard_inputs(steps)
    _judge(steps)


def _hard_inputs(program: SignedProgram) -> Iterator[dict[str, np.ndarray]]:
    """Inputs of large magnitude, zeros, and the same row everywhere; other tensors are random."""
    for number, kind in enumerate(("large", "zero", "equal")):
        inputs = random_inputs(program, number)
        for v in program.signature.sources:
            value = inputs[v.name]
            if v.role != "input" or not np.issubdtype(value.dtype, np.floating):
                continue
            hard = {
                "large": value * 1e4,
                "zero": np.zeros_like(value),
                "equal": np.broadcast_to(value.reshape(-1, value.shape[-1])[0], value.shape),
            }[kind]
            inputs[v.name] = np.ascontiguousarray(hard, value.dtype)
        yield inputs


def _on_hard_inputs(steps: list[Step]) -> None:
    for inputs in _hard_inputs(steps[0].before):
        _on_hard_rows(steps, inputs)


@pytest.mark.parametrize("name", ["grouped heads in 4-D", "causal mask"])
def test_large_zero_and_equal_inputs(name: str) -> None:
    _on_hard_inputs(_steps(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_large_zero_and_equal_inputs_of_every_program(name: str) -> None:
    _on_hard_inputs(_steps(name))


def test_there_are_attention_programs_of_every_kind() -> None:
    kinds = [name.split("_")[0] for name in ATTENTION]
    assert len(ATTENTION) >= 27
    assert {"MHA", "MQA", "GQA", "MinGPTCausalAttention"} == set(kinds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTENTION)
def test_so_do_their_naive_translations(name: str) -> None:
    steps = walked(_source(name, naive=True))
    verdict = verify(steps[0].before, steps[-1].after)
    assert verdict.accepted, (verdict.reason, verdict.message)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOFTMAX)
def test_all_softmax_programs_become_online(name: str) -> None:
    steps = walked(_source(name), SOFTMAX_STEPS)
    _compare(steps, range(1))
    _judge(steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MHA_sum", "GQA", "MinGPTCausalAttention"])
def test_half_precision_reaches_one_pass(name: str) -> None:
    _judge(walked(_source(name, dtype="f16")))


def _after_other_steps(seed: int) -> int:
    """Streaming steps taken after random other ones; every one of them keeps the meaning."""
    rng = random.Random(seed)
    program = start = program_named(rng.choice(list(PROGRAMS)))
    inputs = random_inputs(start, seed)
    taken_steps, log = 0, []
    names = list(strategies())
    for _ in range(rng.randrange(3, 9)):
        name = rng.choice(CHAIN if rng.random() < 0.6 else names)
        sites = strategy(name).survey(program).sites
        if not sites:
            continue
        step = take(strategy(name), program, rng.choice(sites))
        log.append((name, step.site.describe() if isinstance(step, Step) else step))
        assert isinstance(step, Step), log
        try:
            assert_equal_outputs(program, step.after, inputs, step.numerics)
            assert_equal_outputs(start, step.after, inputs, "reassociated")
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {log}") from error
        taken_steps += name in CHAIN
        program = step.after
    return taken_steps


def test_among_other_steps() -> None:
    assert sum(_after_other_steps(seed) for seed in range(3)) > 3


@pytest.mark.slow
def test_among_many_other_steps() -> None:
    assert sum(_after_other_steps(seed) for seed in range(100, 600)) > 500
