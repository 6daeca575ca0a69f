"""The GPU check, prepared and run against the stub driver: what it finds and what it forgives."""

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.zoo import originals
from tests.support.cuda_emulator import COMPILER
from tests.support.stub_driver import StubCompiler, build_driver

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu_check.py"


@pytest.fixture(scope="module")
def check() -> Iterator[ModuleType]:
    spec = spec_from_file_location("gpu_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["gpu_check"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["gpu_check"]


@pytest.fixture(scope="module")
def prepared(check: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder as for a GPU, with kernels for the stub, and the stub."""
    if COMPILER is None:
        pytest.skip("no g++ to make a stub driver with")
    folder, built = tmp_path_factory.mktemp("check"), tmp_path_factory.mktemp("stub")
    plain, tiled = (read(text).signed for text in check.large_matmul(8, 4))
    wanted = [
        check.Program("softmax", read(originals.SOFTMAX).signed),
        check.Program("quantise", read(originals.QUANTISE).signed),
        check.Program("large", plain, large=True, like="large"),
        check.Program("large/tiled", tiled, large=True, like="large"),
    ]
    check.prepare(folder, wanted, StubCompiler(built), ["sm_90"])
    return folder, build_driver(built)


def test_everything_passes(check: ModuleType, prepared: tuple[Path, Path]) -> None:
    folder, library = prepared
    result = check.run(folder, str(library))
    assert result["passed"], check.table(result)
    assert (result["gpu"], result["capability"], result["architecture"]) == (
        "stub",
        [9, 0],
        "sm_90",
    )
    assert [o["name"] for o in result["outcomes"][::2]] == [
        "softmax",
        "quantise",
        "large",
        "large/tiled",
    ]
    assert all(o["least_ms"] <= o["median_ms"] <= o["most_ms"] for o in result["outcomes"])
    assert "8 of 8 passed" in check.table(result)
    json.dumps(result)


def test_the_folder_needs_nothing_of_the_library(prepared: tuple[Path, Path]) -> None:
    folder, _ = prepared
    assert "steptp_dagster" not in (folder / "driver.py").read_text(encoding="utf-8")
    assert (folder / "gpu_check.py").read_text(encoding="utf-8") == SCRIPT.read_text("utf-8")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("swap the order of launches", "off, allowed"),
        ("shift an output", "was written"),
        ("write an input", "was changed"),
    ],
)
def test_what_is_wrong_is_found(
    check: ModuleType,
    prepared: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    harm: str,
    words: str,
) -> None:
    folder, library = prepared
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    (case,) = (c for c in plan["cases"] if (c["name"], c["precision"]) == ("softmax", "working"))
    _harm(case, harm)
    monkeypatch.setattr(json, "loads", lambda _: {**plan, "cases": [case]})
    result = check.run(folder, str(library))
    assert not result["passed"]
    assert words in result["outcomes"][0]["reason"]


def _harm(case: dict[str, Any], harm: str) -> None:
    (output,), (given, *_) = case["outputs"], case["sources"]
    if harm.startswith("swap"):
        case["schedule"].reverse()
        return
    new = given["offset"] if harm.startswith("write") else output["offset"] + output["bytes"]
    for kernel in case["kernels"]["sm_90"]:
        kernel["offsets"] = [new if o == output["offset"] else o for o in kernel["offsets"]]
