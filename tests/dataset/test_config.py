from pathlib import Path
from typing import get_args

import pytest

from steptp_dagster.dataset import config
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.registry import own_strategies
from steptp_dagster.verify.record import TARGETS

GOOD = """
name: x
seed: 1
dtypes: [f32]
programs: [{name: softmax}]
"""


def load(tmp_path: Path, text: str) -> config.Profile:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    return config.load(str(path))


def test_packaged_profiles_load() -> None:
    assert config.available() == ("default", "tiny")
    default = config.load("default")
    assert len(default.programs) == 13
    assert default.dtypes == ("f16", "f32")
    assert default.steps.depth == 4
    assert set(default.steps.prefer) <= set(own_strategies())
    assert set(default.program_names) <= set(SOURCES)


def test_what_is_not_said_has_defaults(tmp_path: Path) -> None:
    profile = load(tmp_path, GOOD)
    assert profile.steps == config.StepPlan()
    assert profile.plan("softmax").samples == 1
    assert profile.forms_of("softmax") == ("composed",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.yaml: top level: expected a mapping, found nothing"),
        ("name: [", "p.yaml: not YAML"),
        ("name: x", "p.yaml: seed: missing"),
        (GOOD + "colour: red", "p.yaml: colour: unknown setting; known here: name, seed"),
        (GOOD.replace("seed: 1", "seed: one"), "seed: expected a whole number, found 'one' (str)"),
        (GOOD.replace("seed: 1", "seed: true"), "seed: expected a whole number, found True"),
        (GOOD.replace("[f32]", "[f32, f8]"), "dtypes[1]: expected one of 'f16', 'bf16'"),
        (GOOD.replace("[f32]", "f32"), "dtypes: expected a list, found 'f32'"),
        (GOOD.replace("[f32]", "[]"), "dtypes must not be empty"),
        (GOOD.replace("[f32]", "[f32, f32]"), "dtypes named twice: f32"),
        (GOOD + "steps: {sites: 0}", "steps: sites must be positive and below 2147483648, not 0"),
        (GOOD + f"steps: {{depth: {10**30}}}", "steps: depth, chains, chain_sites, traj"),
        (GOOD + "verification: {timeout_s: .nan}", "timeout_s must be positive and below"),
        (GOOD + f"verification: {{memory_mb: {10**30}}}", "memory_mb must be positive and below"),
        (GOOD + "verification: {seed: -1}", "verification: seed must be at least 0 and below"),
        (
            GOOD + "verification: {targets: [gpu]}",
            "verification.targets[0]: expected one of 'llvm', 'cuda:sm_80'",
        ),
        (GOOD + "verification: {targets: ['cuda:sm_90']}", "targets must name llvm: it decides"),
        (GOOD + "verification: {cuda_share: 0}", "cuda_share must be in (0, 1]"),
        (GOOD.replace("seed: 1", f"seed: {2**31}"), "seed must be at least 0 and below"),
        (GOOD + "forms: [naive, naive]", "forms named twice: naive"),
        (
            GOOD + "forms: [terse]",
            "forms[0]: expected one of 'composed', 'naive', 'inlined', 'dead-code', 'repeated-",
        ),
        (GOOD.replace("softmax}", "softmax, forms: []}"), "programs[0]: forms must not be empty"),
        (GOOD + "strategies: [a, a]", "strategies named twice: a"),
        (GOOD + "strategies: []", "strategies must not be empty"),
        (GOOD.replace("softmax", "''"), "programs must not be empty, nor a name of them"),
        (GOOD + "splits: {train: .nan}", "splits: the shares of the splits must sum to 1"),
        (GOOD + "splits: {train: 0.5}", "splits: the shares of the splits must sum to 1"),
        (GOOD.replace("softmax", "softmax, samples: x"), "programs[0].samples: expected a whole"),
        (
            GOOD + "balance: {sizes: [{name: a}, {name: b, tokens: 3}]}",
            "balance: sizes must rise in tokens",
        ),
        (
            GOOD + "balance: {sizes: [{name: a, tokens: 0}, {name: b}]}",
            "balance: tokens must be positive",
        ),
        (
            GOOD + "balance: {classes: [{name: a, cap: 0}]}",
            "balance.classes[0]: cap must be positive and below 2147483648, not 0",
        ),
        (
            GOOD + "balance: {classes: [{name: a, strategies: [loop_split]}]}",
            "balance: classes must have exactly one without strategies",
        ),
        (
            GOOD + "balance: {classes: [{name: a, strategies: [apart]}, {name: a}]}",
            "balance: classes must have different names, not a, a",
        ),
        (
            GOOD
            + "balance: {classes: [{name: a, strategies: [apart]}, {name: b, strategies: [apart]}, "
            "{name: c}]}",
            "balance: classes name a strategy twice: apart",
        ),
        (
            GOOD + "balance: {classes: [{name: a, keep_all: true, cap: 5}]}",
            "balance.classes[0]: the class a has keep_all and a cap",
        ),
        (
            GOOD + "balance: {families: {norm: {weight: -1}}}",
            "balance.families.norm: weight must be above 0 and at most 1000, not -1.0",
        ),
        (GOOD + "balance: {minimum: -1}", "balance: minimum must be at least 0 and below"),
        (GOOD + "balance: {enabled: 1}", "balance.enabled: expected true or false, found 1"),
        (
            GOOD + "records: {program: ptx}",
            "records.program: expected one of 'leir', 'tir', 'cuda', found 'ptx'",
        ),
        (
            GOOD + "records: {tasks: [single, double]}",
            "records.tasks[1]: expected one of 'single', 'multi', 'trajectory', 'negative'",
        ),
        (GOOD + "records: {answers: 1}", "records: answers must be at least 2"),
    ],
)
def test_a_bad_profile_is_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(config.ProfileError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(config.ProfileError, match="no profile 'huge'; there are default, tiny"):
        config.load("huge")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(config.ProfileError, match=r"gone.yaml: No such file"):
        config.load(str(tmp_path / "gone.yaml"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(config.ProfileError, match=r"p.yaml: not UTF-8 text"):
        config.load(str(tmp_path / "p.yaml"))


def test_targets_are_those_of_the_verifier() -> None:
    assert get_args(config.Target) == TARGETS
