"""Seals: nothing is looked at where nothing changed, and everything where anything did."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steptp_dagster import progress
from steptp_dagster.dataset import parts, seals
from steptp_dagster.dataset.config import Profile, UserPlan
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import ZOO
from steptp_dagster.dataset.seals import Part, Seals
from steptp_dagster.dataset.stages.judgements import update_judgements
from steptp_dagster.dataset.stages.leir import update_leir
from steptp_dagster.dataset.stages.records import update_records
from steptp_dagster.dataset.stages.renderings import update_renderings
from steptp_dagster.dataset.stages.sources import update_sources
from steptp_dagster.dataset.stages.steps import update_steps
from steptp_dagster.dataset.stages.tokens import update_tokens
from steptp_dagster.dataset.stages.user_leir import update_user_leir
from steptp_dagster.dataset.stages.user_sources import update_user_sources
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.users.files import UserFile
from tests.support import small_build
from tests.support.rows import key
from tests.support.small_build import Agreeable

ROW = {"pair": "p", "kind": "k", "wrong": True, "accepted": False, "published_rule": None}
STAGE = Stage("zoo", {"zoo": ZOO}, {}, again=pl.col("reason") == "timed-out")
PART = Part((STAGE,), reads=("surveys",))


class Counted:
    """A part of one unit, which counts how often it is looked at."""

    def __init__(self, folder: Path, reason: str | None = None) -> None:
        self.store = Store(folder)
        self.profile = small_build.profile()
        self.reason = reason
        self.looked = 0

    def _update(self) -> Report:
        self.looked += 1
        rows = [{**ROW, "reason": self.reason}]
        made = lambda missing: (Made(u, {"zoo": rows}, 0.0) for u in missing)  # noqa: E731
        return update(self.store, STAGE, "softmax", [Unit(key(1), None)], made, origin=Origin())

    def __call__(self) -> Report:
        """What a build does."""
        return Seals.of(self.store, self.profile).update(PART, self._update, "softmax")


@pytest.fixture
def part(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


def test_what_did_not_change_is_not_looked_at(part: Counted) -> None:
    assert part() == Report(1, 0, 0, {"zoo": 1})
    assert [part(), part()] == [Report(0, 1, 0, {"zoo": 1})] * 2
    assert part.looked == 1


def spoil(part: Counted) -> None:
    path = part.store.part("zoo", "softmax")
    path.write_bytes(path.read_bytes()[:-9] + b"012345678")


def read_more(part: Counted) -> None:
    path = part.store.part("surveys", "softmax")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"new")


def settings(part: Counted) -> None:
    part.profile = replace(part.profile, seed=part.profile.seed + 1)


def seal(part: Counted) -> None:
    (part.store.root / "zoo.seal" / "softmax.json").write_text("{")


@pytest.mark.parametrize(
    "change",
    [
        spoil,
        read_more,
        settings,
        seal,
        lambda part: part.store.part("zoo", "softmax").unlink(),
        lambda part: part.store.part("lineage-zoo", "softmax").unlink(),
    ],
)
def test_whatever_changes_is_seen(part: Counted, change: Callable[[Counted], None]) -> None:
    part()
    change(part)
    part()
    assert part.looked == 2
    assert part.store.read(ZOO, "softmax").height == 1
    part()
    assert part.looked == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("library_digest", lambda: "other"),
        ("code_version", lambda stage: f"other {stage}"),
        ("steps_version", lambda: "other"),
        ("releases", lambda: {"python": "4.0"}),
        ("package_version", lambda name: f"{name} 99"),
        ("gpu_here", lambda: "another"),
        ("nvrtc_available", lambda: "another"),
        ("faults", lambda: ("a plug-in without strategies",)),
    ],
)
def test_other_code_and_another_machine_are_seen(
    part: Counted, monkeypatch: pytest.MonkeyPatch, name: str, told: Callable[..., object]
) -> None:
    part()
    monkeypatch.setattr(seals, name, told)
    part()
    assert part.looked == 2


def test_a_file_that_somebody_changed_is_not_believed(part: Counted) -> None:
    """Its rows can be read and fit the schema, as those of a bit that flipped on a disk may."""
    part()
    path = part.store.part("zoo", "softmax")
    whole = path.read_bytes()
    pl.read_parquet(path, hive_partitioning=False).with_columns(kind=pl.lit("x")).write_parquet(
        path
    )
    assert part().new == 1
    assert path.read_bytes() == whole
    assert part() == Report(0, 1, 0, {"zoo": 1})


def test_rows_that_are_to_be_made_again_are_not_sealed(tmp_path: Path) -> None:
    part = Counted(tmp_path, reason="timed-out")
    assert [part().new, part().new] == [1, 1]
    assert part.looked == 2


def test_what_is_read_and_changes_meanwhile_is_not_sealed(part: Counted) -> None:
    plain = part._update

    def disturbed() -> Report:
        read_more(part)
        return plain()

    Seals.of(part.store, part.profile).update(PART, disturbed, "softmax")
    part()
    assert part.looked == 2


def test_a_part_that_failed_is_not_sealed(part: Counted) -> None:
    part()
    settings(part)

    def failing() -> Report:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        Seals.of(part.store, part.profile).update(PART, failing, "softmax")
    assert not list(part.store.root.glob("*.seal/*.json"))


@contextmanager
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[str, str]]]:
    """Folders whose finished files are asked for, and of which program."""
    found: set[tuple[str, str]] = set()
    plain = Store.part

    def watched(self: Store, table: str, program: str) -> Path:
        found.add((table, program))
        return plain(self, table, program)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "part", watched)
        yield found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small build."""
    folder = tmp_path_factory.mktemp("data")
    small_build.build(folder)
    return folder


Update = Callable[[Store, Profile], Any]
NOWHERE = Workers(None), Origin(), progress.silent
JUDGE: Any = Agreeable()
UPDATES: dict[str, tuple[Part, Update]] = {
    "sources": (
        parts.SOURCES,
        lambda s, p: update_sources(s, "softmax", p, Origin(), progress.silent),
    ),
    "steps": (parts.STEPS, lambda s, p: update_steps(s, "softmax", p, *NOWHERE)),
    "verdicts": (
        parts.JUDGEMENTS,
        lambda s, p: update_judgements(s, "softmax", p, JUDGE, Origin(), progress.silent),
    ),
    "tokens": (parts.TOKENS, lambda s, p: update_tokens(s, p, *NOWHERE)),
    "records": (parts.RECORDS, lambda s, p: update_records(s, p, Origin())),
    "renderings": (parts.RENDERINGS, lambda s, p: update_renderings(s, p, *NOWHERE)),
    "leir": (parts.LEIR, lambda s, _: update_leir(s, "softmax", *NOWHERE)),
    "user_sources": (
        parts.SOURCES,
        lambda s, p: update_user_sources(s, mine(p), p, Origin(), progress.silent),
    ),
    "user_leir": (parts.LEIR, lambda s, p: update_user_leir(s, mine(p), p, *NOWHERE)),
}


def mine(profile: Profile) -> UserFile:
    """The user's file of a profile that has one."""
    file = profile.user_file("user_mine")
    assert file is not None
    return file


#: Stages whose work takes seconds, and that leave rows out here.
HEAVY = ("leir", "tokens", "renderings", "user_leir")


@pytest.mark.parametrize("name", UPDATES)
def test_a_part_names_all_files_that_its_stages_open(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A copy, since some leave nothing for others to read.
    stages = tmp_path / "stages"
    shutil.copytree(data / "stages", stages)
    part, run = UPDATES[name]
    profile = small_build.profile()
    if name == "renderings":
        profile = replace(profile, records=replace(profile.records, program="tir"))
    if name == "records":  # with nothing new, its journals are not opened
        for folder in part.writes:
            shutil.rmtree(stages / folder, ignore_errors=True)
    if name.startswith("user"):
        (tmp_path / "nets").mkdir()
        (tmp_path / "nets" / "mine.py").write_text("import torch\n")
        plan = UserPlan(str(tmp_path / "nets"), files=("mine.py",))
        profile = replace(profile, user_programs=plan)
        nothing: dict[str, Any] = {"user_programs": [], "source_programs": []}
        sources = "steptp_dagster.dataset.stages.user_sources"
        monkeypatch.setattr(f"{sources}._rows", lambda task: nothing)
    if name in HEAVY:
        module = f"steptp_dagster.dataset.stages.{name}"
        monkeypatch.setattr(f"{module}.work", lambda unit: Made(unit, {}, 0))
    with opened(monkeypatch) as found:
        run(Store(stages), profile)
    assert part.name == name.removeprefix("user_")
    folders = {folder for folder, _ in found}
    assert folders - {"runs"} <= {*part.reads, *part.writes}
    own = set() if name == "user_sources" else {"user_programs"}
    assert folders >= set(part.writes) - own
    if not part.whole:
        partition = "user_mine" if name.startswith("user") else "softmax"
        assert {program for folder, program in found if folder != "runs"} == {partition}


def test_a_seal_is_plain_to_read(part: Counted) -> None:
    part()
    told = json.loads((part.store.root / "zoo.seal" / "softmax.json").read_text())
    assert told["units"] == 1 and told["rows"] == {"zoo": 1}
    assert told["files"].keys() == {"zoo", "lineage-zoo", "timings-zoo"}
    assert WHOLE not in told
