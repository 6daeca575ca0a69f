"""The sensor of program files and the nightly schedule."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.automation import nightly, program_folder, stretches
from assets.partitions import file_versions, recorded, synchronise
from resources.build import Build
from steptp_dagster.dataset.config import load

PROFILE = """
name: mine
seed: 1
dtypes: [f32]
programs: [{name: softmax}]
user_programs: {folder: programs}
"""
FILE = "import torch\n\nclass Model(torch.nn.Module):\n    ...\n"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    (tmp_path / "programs").mkdir()
    (tmp_path / "mine.yaml").write_text(PROFILE)
    return tmp_path / "mine.yaml"


class Looks:
    """The sensor, look by look, with what it asks for carried out."""

    def __init__(self, instance: dg.DagsterInstance, profile: Path) -> None:
        self.instance = instance
        self.build = Build(profile_name=str(profile))
        self.cursor: str | None = None

    def __call__(self) -> dg.SensorResult | None:
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"build": self.build}
        )
        result = program_folder(context)
        if isinstance(result, dg.SkipReason):
            return None
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        for request in result.dynamic_partitions_requests or ():
            for name in request.partition_keys:
                if isinstance(request, dg.AddDynamicPartitionsRequest):
                    self.instance.add_dynamic_partitions("programs", [name])
                else:
                    self.instance.delete_dynamic_partition("programs", name)
        for event in result.asset_events:
            assert isinstance(event, dg.AssetMaterialization)
            self.instance.report_runless_asset_event(event)
        return result


def ranges(result: dg.SensorResult | None) -> list[tuple[str, str]]:
    assert result is not None
    names = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
    return [(r.tags[names[0]], r.tags[names[1]]) for r in result.run_requests or ()]


def test_files_that_come_change_and_go(instance: dg.DagsterInstance, profile: Path) -> None:
    look, folder = Looks(instance, profile), profile.parent / "programs"
    assert ranges(look()) == []  # the library's programs wait until somebody asks for them
    assert instance.get_dynamic_partitions("programs") == ["softmax"]
    assert look() is None
    for name in "ab":
        (folder / f"{name}.py").write_text(FILE)
    assert ranges(look()) == [("user_a", "user_b")]
    assert instance.get_dynamic_partitions("programs") == ["softmax", "user_a", "user_b"]
    assert look() is None
    (folder / "b.py").write_text(FILE + "# changed\n")
    assert ranges(look()) == [("user_b", "user_b")]
    version = file_versions(load(str(profile)))["user_b"]
    assert recorded(instance, "user_b") == version
    (folder / "a.py").unlink()
    assert ranges(look()) == []
    assert instance.get_dynamic_partitions("programs") == ["softmax", "user_b"]


def test_what_a_build_has_told_is_not_built_again(
    instance: dg.DagsterInstance, profile: Path
) -> None:
    (profile.parent / "programs" / "a.py").write_text(FILE)
    assert synchronise(instance, load(str(profile))) == ("softmax", "user_a")
    assert ranges(Looks(instance, profile)()) == []


def test_a_file_that_cannot_be_read_has_a_version_too(
    instance: dg.DagsterInstance, profile: Path
) -> None:
    (profile.parent / "programs" / "a.py").write_bytes(b"\xff\xfe")
    look = Looks(instance, profile)
    assert ranges(look()) == [("user_a", "user_a")]
    assert recorded(instance, "user_a") == "unreadable"


def test_neighbours_share_a_run() -> None:
    assert stretches("abcdef", "") == []
    assert stretches("abcdef", "fedcba") == [list("abcdef")]
    assert stretches("abcdef", "ac") == [["a"], ["c"]]


def test_nightly_takes_all_programs() -> None:
    with dg.instance_for_test() as instance, dg.build_schedule_context(instance) as context:
        assert isinstance(nightly(context), dg.SkipReason)
        instance.add_dynamic_partitions("programs", ["x", "y", "z"])
        request = nightly(context)
    assert isinstance(request, dg.RunRequest)
    assert set(request.tags.values()) >= {"x", "z"}
