from pathlib import Path

import pytest

from steptp_dagster.dataset import config

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
    assert len(default.programs) == 8
    assert default.dtypes == ("f16", "f32", "f64")


def test_what_is_not_said_has_defaults(tmp_path: Path) -> None:
    profile = load(tmp_path, GOOD)
    assert profile.steps == config.StepPlan()
    assert profile.plan("softmax").samples == 1


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
        (GOOD + "steps: {sites: 0}", "steps: sites must be positive, not 0"),
        (GOOD + "splits: {train: 0.5}", "splits: the shares of the splits must sum to 1"),
        (GOOD.replace("softmax", "softmax, samples: x"), "programs[0].samples: expected a whole"),
        (
            GOOD + "balance: {difficulties: [{name: a}, {name: b, tokens: 3}]}",
            "balance: difficulties must rise in tokens",
        ),
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
