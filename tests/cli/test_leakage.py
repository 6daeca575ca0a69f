import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steptp_dagster.cli.main import steptp
from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.warehouse import load
from tests.support.prepared import prepare
from tests.support.rows import HEADER, SOURCE_TEXTS, all_rows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    assert load(
        prepare(folder / "stages", all_rows()), load_profile("tiny"), folder / "steptp.duckdb"
    ).sound
    return folder


def leakage(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(steptp, ["leakage", "--data", str(data), *arguments])


def test_nothing_of_evaluation_is_in_training(data: Path) -> None:
    result = leakage(data, "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert {row["split"] for row in rows} == {"validation", "test"}
    assert all(row["shared"] == 0 and not row["near"] for row in rows)
    assert "none of 2 is in the training split" in result.stderr


def test_problems_from_outside(data: Path, tmp_path: Path) -> None:
    told = json.loads(leakage(data, "--json").stdout)
    (trained,) = set(SOURCE_TEXTS) - {row["program"] for row in told}
    (tmp_path / "known.leir").write_text(HEADER + SOURCE_TEXTS[trained].replace("1.0", "2.0"))
    (tmp_path / "new.leir").write_text(HEADER + SOURCE_TEXTS[trained].replace("1.0", "1.0/D"))
    result = leakage(data, "--against", str(tmp_path), "--json")
    assert result.exit_code == 1
    rows = {row["problem"]: row for row in json.loads(result.stdout)}
    assert (rows["known.leir"]["near"], rows["known.leir"]["nearest"]) == (True, trained)
    assert "1 of 1 problems are in the training split" in result.stderr
    assert "new.leir: " in result.stderr
    (tmp_path / "known.leir").unlink()
    (tmp_path / "new.leir").write_text(HEADER + SOURCE_TEXTS[trained].replace("1.0", "1.0/2.0"))
    assert leakage(data, "--against", str(tmp_path)).exit_code == 0


def test_a_folder_without_problems_is_named(data: Path, tmp_path: Path) -> None:
    result = leakage(data, "--against", str(tmp_path))
    assert result.exit_code == 2
    assert "has no .py and no .leir file" in result.stderr


@pytest.mark.slow
def test_a_pytorch_problem_from_outside(data: Path, tmp_path: Path) -> None:
    (tmp_path / "add_one.py").write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return torch.sin(x) + 1.0\n\n\n"
        "def get_inputs():\n    return [torch.rand(4, 3)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    result = leakage(data, "--against", str(tmp_path), "--json")
    assert result.exit_code == 0, result.stderr
    (row,) = json.loads(result.stdout)
    assert row["problem"] == "add_one.py"
