"""Stages over users' files: rows, refusals, and that only what changed is executed again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from assets.source_programs import brought
from steptp_dagster import progress
from steptp_dagster.dataset import config
from steptp_dagster.dataset.config import Profile, ProfileError
from steptp_dagster.dataset.incremental import Origin, Report
from steptp_dagster.dataset.mapping import build
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import (
    LEIR_PROGRAMS,
    SOURCE_PROGRAMS,
    TRANSLATIONS,
    USER_PROGRAMS,
)
from steptp_dagster.dataset.stages import user_leir, user_sources
from steptp_dagster.dataset.stages.user_leir import update_user_leir
from steptp_dagster.dataset.stages.user_sources import update_user_sources
from steptp_dagster.dataset.store import Store
from steptp_dagster.paths import USERS_VARIABLE
from steptp_dagster.users.isolation import Isolation
from steptp_dagster.users.refusal import UserRefusal
from tests.support.users import BENCHMARK, FLOW

PROFILE = """
name: mine
seed: 3
dtypes: [f32, f16]
programs: []
user_programs: {folder: nets, samples: 1, dtypes: [f32]}
"""
TWO = """
import torch

class Fine(torch.nn.Module):
    def forward(self, x):
        return x.tanh()

    @staticmethod
    def example_inputs():
        return torch.randn(2, 3)

class Broken(Fine):
    @staticmethod
    def example_inputs():
        return torch.randn(-1)
"""
FILES = {"net.py": BENCHMARK, "many.py": TWO, "flow.py": FLOW, "broken.py": "def f(:\n"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with users' files."""
    monkeypatch.delenv(USERS_VARIABLE, raising=False)
    (tmp_path / "nets").mkdir()
    for name, text in FILES.items():
        (tmp_path / "nets" / name).write_text(text, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(PROFILE)
    return tmp_path


def load(folder: Path) -> Profile:
    return config.load(str(folder / "mine.yaml"))


def run(folder: Path) -> dict[str, tuple[Report, Report]]:
    """Both stages on all files: units done by file."""
    profile, store = load(folder), Store(folder / "stages")
    done = {}
    for name in profile.program_names:
        file = profile.user_file(name)
        assert file is not None
        rest = (Origin(), progress.silent)
        done[file.name] = (
            update_user_sources(store, file, profile, *rest),
            update_user_leir(store, file, profile, Workers(None), *rest),
        )
    return done


def read(folder: Path, table: Any) -> pl.DataFrame:
    return Store(folder / "stages").read_all(table, load(folder).program_names)


def test_files_become_rows_and_only_what_changed_is_executed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(folder)
    users = {row["program"]: row for row in read(folder, USER_PROGRAMS).to_dicts()}
    assert users.keys() == {
        "user_broken",
        "user_flow",
        "user_many.Broken",
        "user_many.Fine",
        "user_net",
    }
    assert {p: r["reason"] for p, r in users.items() if r["reason"]} == {
        "user_broken": "syntax-error",
        "user_many.Broken": "raised",
    }
    assert users["user_broken"]["message"].startswith("broken.py:1: no valid Python")
    sources, translations = read(folder, SOURCE_PROGRAMS), read(folder, TRANSLATIONS)
    assert sources.filter(program="user_net").height == users["user_net"]["samples"] == 1
    assert set(sources["dtype"]) == {"f32"}
    assert set(sources["family"]) == {"user_net", "user_many", "user_flow"}
    refused = translations.filter(pl.col("refusal").is_not_null())
    assert (
        refused["source_id"].to_list() == sources.filter(program="user_flow")["source_id"].to_list()
    )
    fine = translations.filter(pl.col("refusal").is_null())
    assert fine["fidelity"].max() < 1e-9  # type: ignore[operator]
    assert fine["comparisons"].list.len().min() >= 3  # type: ignore[operator]
    assert set(fine["leir_id"]) == set(read(folder, LEIR_PROGRAMS)["leir_id"])
    told = brought(Store(folder / "stages"), load(folder).program_names)
    assert (told["programs of users"], told["broken programs of users"]) == (3, 2)
    assert "broken.py:1" in told["what is wrong with them"].value

    asked: list[str] = []
    ask = Isolation.ask

    def counted(self: Isolation, file: Any, task: str, *rest: Any, **more: Any) -> Any:
        asked.append(file.name if file else task)
        return ask(self, file, task, *rest, **more)

    monkeypatch.setattr(Isolation, "ask", counted)
    assert {r.new for both in run(folder).values() for r in both} == {0}
    assert asked == []
    (folder / "nets" / "flow.py").write_text(FLOW.replace("x.sum() > 0", "True"))
    (folder / "nets" / "many.py").unlink()
    run(folder)
    assert set(asked) == {"flow.py", "screen"}
    assert set(read(folder, SOURCE_PROGRAMS)["family"]) == {"user_net", "user_flow"}
    assert read(folder, TRANSLATIONS)["refusal"].null_count() == 2
    (folder / "mine.yaml").write_text(PROFILE.replace("seed: 3", "seed: 4"))
    assert run(folder)["net.py"][0].new == 1


@pytest.mark.parametrize(
    ("refusal", "screens", "again"),
    [
        (None, [], False),
        (None, ["constant"], False),
        (None, ["constant", "screen-out-of-memory"], True),
        ("timed-out", [], True),
        ("crashed", [], True),
        ("aten.topk.default", [], False),
    ],
)
def test_what_ran_into_a_limit_is_tried_again(
    refusal: str | None, screens: list[str], again: bool
) -> None:
    columns = {"refusal": pl.String(), "reason": pl.String(), "screens": pl.List(pl.String())}
    row = pl.DataFrame(
        {"refusal": [refusal], "reason": [refusal], "screens": [screens]}, schema=columns
    )
    assert row.filter(user_leir.STAGE.again).height == again
    if not screens:
        assert row.filter(user_sources.STAGE.again).height == again


def test_the_folder_of_a_profile_is_relative_to_it(folder: Path) -> None:
    profile = load(folder)
    assert profile.program_names == ("user_broken", "user_flow", "user_many", "user_net")
    assert profile.user_programs is not None
    assert Path(profile.user_programs.folder) == folder / "nets"
    assert profile.user_file("softmax") is None
    stored = profile.settings()
    assert str(folder) not in str(stored)
    assert build(Profile, stored).program_names == profile.program_names


def test_the_environment_names_another_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "x.py").touch()
    monkeypatch.chdir(folder)
    monkeypatch.setenv(USERS_VARIABLE, "other")
    profile = load(folder)
    assert profile.program_names == ("user_x",)
    assert profile.user_programs == replace(
        profile.user_programs or config.UserPlan(""), folder=str(folder / "other"), samples=1
    )
    assert config.load("tiny").program_names == ("Matmul3D", "softmax", "GELU", "user_x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PROFILE.replace("folder: nets", "folder: gone"), "gone: No such file or directory"),
        (PROFILE.replace("folder: nets", "folder: empty"), "no programs, and no program file in"),
        (PROFILE.replace("samples: 1", "samples: 0"), "user_programs: samples must be positive"),
        (PROFILE.replace("dtypes: [f32]}", "dtypes: []}"), "user_programs: dtypes must not be"),
        (PROFILE.replace("samples: 1", "files: [../x.py]"), "files must be names of .py files"),
        (PROFILE.replace("samples: 1", "timeout_s: -1"), "timeout_s must be positive"),
        (PROFILE.replace("samples: 1", "colour: 1"), "user_programs.colour: unknown setting"),
        (PROFILE.replace("folder: nets, ", ""), "user_programs.folder: missing"),
        (PROFILE.partition("user_programs")[0], "programs must not be empty"),
    ],
)
def test_a_bad_setting_is_refused_in_words(folder: Path, text: str, message: str) -> None:
    (folder / "empty").mkdir()
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(ProfileError, match=r"mine\.yaml: ") as caught:
        load(folder)
    assert message in str(caught.value)


def test_samples_that_want_of_time_decided_are_looked_at_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, plain = UserRefusal("timed-out", "was not done after 60 s", "flow.py"), Isolation.ask

    def ask(self: Isolation, file: Any, wanted: str, *rest: Any, **named: Any) -> Any:
        return late if wanted == "judge" else plain(self, file, wanted, *rest, **named)

    def sources() -> Report:
        profile = load(folder)
        file = next(f for f in map(profile.user_file, profile.program_names) if f is not None)
        assert file.name == "many.py"
        store = Store(folder / "stages")
        return update_user_sources(store, file, profile, Origin(), progress.silent)

    for name in ("net.py", "flow.py", "broken.py"):
        (folder / "nets" / name).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Isolation, "ask", ask)
        assert (sources().unsettled, sources().new) == (1, 1)
    told = read(folder, USER_PROGRAMS).filter(pl.col("samples") > 0)
    assert told["reason"].to_list() == ["timed-out"]
    assert "the next build looks again: flow.py: was not done" in told["message"].item()
    assert [sources().new, sources().new] == [1, 0]
    assert set(read(folder, USER_PROGRAMS)["reason"]) == {None, "raised"}
