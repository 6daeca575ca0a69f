from pathlib import Path
from typing import get_args

import pytest

from steptp_dagster.dataset import config
from steptp_dagster.paths import OVERRIDES_VARIABLE, USERS_VARIABLE
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
    assert config.available() == ("cpu", "default", "full", "tiny")
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
    with pytest.raises(
        config.ProfileError, match="no profile 'huge'; there are cpu, default, full"
    ):
        config.load("huge")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(config.ProfileError, match=r"gone.yaml: No such file"):
        config.load(str(tmp_path / "gone.yaml"))
    for name in (str(tmp_path / "gone.yaml"), "x" * 5000):
        with pytest.raises(config.ProfileError, match=r"one of cpu, default, full.*, or the path"):
            config.load(name)


def test_what_the_environment_says_is_not_blamed_on_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(USERS_VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(config.ProfileError) as caught:
        load(tmp_path, GOOD)
    assert str(caught.value).startswith(f"$STEPTP_USER_PROGRAMS: the folder {tmp_path / 'gone'}: ")
    monkeypatch.setenv(OVERRIDES_VARIABLE, "foo")
    with pytest.raises(config.ProfileError, match=r"'foo' \(--set, or \$STEPTP_SET\): expected"):
        load(tmp_path, GOOD)


def test_a_base_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for text, message in (("a: 1\na: 2", "'a' is said in line"), ("\xff", "not UTF-8")):
        (tmp_path / "mine.yaml").write_text(text, encoding="latin-1")
        with pytest.raises(config.ProfileError, match=f"mine.yaml: {message}"):
            load(tmp_path, GOOD + "balance: {base: mine.yaml}")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(config.ProfileError, match=r"p.yaml: not UTF-8 text"):
        config.load(str(tmp_path / "p.yaml"))


def test_targets_are_those_of_the_verifier() -> None:
    assert get_args(config.Target) == TARGETS


def test_the_full_profile_has_the_published_scale() -> None:
    full = config.load("full")
    assert len(full.programs) == 202
    assert {plan.samples + plan.large for plan in full.programs} == {20}
    assert len(full.dtypes) == 3
    assert full.steps.depth == 9
    assert config.build(config.Profile, full.settings()) == full


def test_the_library_is_what_programs_do_not_name(tmp_path: Path) -> None:
    more = "library: {samples: 3, without: [GELU]}\n"
    profile = load(tmp_path, GOOD + more)
    assert profile.program_names[0] == "softmax"
    assert set(profile.program_names) == set(SOURCES) - {"GELU"}
    assert profile.plan("softmax").samples == 1
    assert profile.plan("LayerNorm").samples == 3
    with pytest.raises(config.ProfileError, match=r"library.without: no source program 'GELUU'"):
        load(tmp_path, GOOD + more.replace("GELU", "GELUU"))


def test_policies_are_bases_that_single_settings_replace(tmp_path: Path) -> None:
    standard = load(tmp_path, GOOD + "balance: {base: standard, minimum: 3}").balance
    assert standard.minimum == 3
    assert standard.class_of("online_softmax").keep_all
    assert standard.class_of("loop_split").name == "easy"
    assert {s for c in standard.classes for s in c.strategies or ()} <= set(own_strategies())
    (tmp_path / "mine.yaml").write_text("program_cap: 4")
    assert load(tmp_path, GOOD + "balance: {base: mine.yaml}").balance.program_cap == 4
    with pytest.raises(config.ProfileError, match=r"no policy 'best'; there are standard"):
        load(tmp_path, GOOD + "balance: {base: best}")
    with pytest.raises(config.ProfileError, match=r"gone.yaml: No such file"):
        load(tmp_path, GOOD + "balance: {base: gone.yaml}")


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ("strategies: [loop_splitt]", "strategies"),
        ("steps: {prefer: [loop_splitt]}", "steps.prefer"),
        ("steps: {sites_of: {loop_splitt: 2}}", "steps.sites_of"),
        ("balance: {strategies: {loop_splitt: {cap: 3}}}", "balance"),
    ],
)
def test_an_unknown_strategy_is_named_with_its_place(tmp_path: Path, more: str, where: str) -> None:
    message = f"p.yaml: {where}: no strategy 'loop_splitt'; one of additive_split"
    with pytest.raises(config.ProfileError, match=message):
        load(tmp_path, GOOD + more)


def test_single_settings_come_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(*settings: str) -> config.Profile:
        monkeypatch.setenv(OVERRIDES_VARIABLE, "\n".join(settings))
        return load(tmp_path, GOOD + "balance: {minimum: 2}")

    profile = given("balance.enabled=false", "records.reasoning=false", "records.program=tir")
    assert not profile.balance.enabled
    assert profile.balance.minimum == 2
    assert (profile.records.reasoning, profile.records.program) == (False, "tir")
    for setting, message in (
        ("balance.enabled", "expected KEY=VALUE, such as balance.enabled=false"),
        ("seed.low=1", "seed.low: the profile has 1 there"),
        ("balance.capp=1", "balance.capp: unknown setting; known here: enabled, tokens"),
        ("seed=[", "seed: not a YAML value"),
        ("seed=one", "seed: expected a whole number, found 'one'"),
    ):
        with pytest.raises(config.ProfileError) as caught:
            given(setting)
        assert message in str(caught.value)
