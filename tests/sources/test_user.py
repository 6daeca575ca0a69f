"""Users' files: both forms, and one clear refusal for everything that can be wrong."""

from pathlib import Path

import pytest
import torch

from steptp_dagster.sources.user import UserProgram, UserRefusal, load
from tests.support.translation import faithful

BENCHMARK = """
import torch
from torch import nn
print("hello")

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = nn.Linear(n, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.relu(self.layer(x)))

def get_inputs():
    return [torch.randn(2, 5)]

def get_init_inputs():
    return [5]
"""
FUNCTION = """
import torch

class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2

def program():
    return Double(), (torch.ones(3),)
"""


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_benchmark_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load(written(tmp_path, BENCHMARK))
    assert isinstance(loaded, UserProgram)
    assert loaded.name == "mine"
    assert loaded.code == BENCHMARK
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err
    translation = faithful(loaded.module, loaded.inputs)
    assert set(translation.names.values()) == {"x", "layer.weight", "layer.bias", "output 0"}


def test_function_form(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, FUNCTION))
    assert isinstance(loaded, UserProgram)
    assert torch.equal(loaded.module(*loaded.inputs), torch.full((3,), 2.0))


def test_two_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first = load(written(tmp_path, FUNCTION))
    second = load(written(other, FUNCTION.replace("* 2", "* 3")))
    assert isinstance(first, UserProgram)
    assert isinstance(second, UserProgram)
    assert first.module(torch.ones(1)).item() == 2
    assert second.module(torch.ones(1)).item() == 3


HEAD = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x\n"
BROKEN = {
    "syntax-error": ("def program(:\n    pass\n", ":1", "no valid Python"),
    "raised": ("x = 1\ny = x / 0\n", ":2", "ZeroDivisionError"),
    "no-program": ("x = 1\n", "mine.py", "no Model and no get_inputs"),
    "not-a-module": ("def program():\n    return 3, ()\n", "mine.py", "found int"),
    "bad-inputs": (HEAD + "def get_inputs(): return [1.5]\n", "mine.py", "input 0 is a float"),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_broken_file(tmp_path: Path, reason: str) -> None:
    text, place, message = BROKEN[reason]
    refused = load(written(tmp_path, text))
    assert isinstance(refused, UserRefusal)
    assert refused.reason == reason
    assert place in refused.location
    assert message in str(refused)


def test_exit_in_a_file_is_a_refusal(tmp_path: Path) -> None:
    refused = load(written(tmp_path, "import sys\nsys.exit(3)\n"))
    assert isinstance(refused, UserRefusal)
    assert refused.reason == "raised"
    assert refused.location.endswith(":2")


def test_wrong_constructor_arguments(tmp_path: Path) -> None:
    text = BENCHMARK.replace("return [5]", "return [5, 6]")
    refused = load(written(tmp_path, text))
    assert isinstance(refused, UserRefusal)
    assert "Model(...) raised TypeError" in refused.message


@pytest.mark.parametrize("name", ["missing.py", "."])
def test_no_file(tmp_path: Path, name: str) -> None:
    refused = load(tmp_path / name)
    assert isinstance(refused, UserRefusal)
    assert refused.reason == "unreadable"


def test_not_called_python(tmp_path: Path) -> None:
    refused = load(written(tmp_path, FUNCTION, "mine.txt"))
    assert isinstance(refused, UserRefusal)
    assert refused.reason == "unreadable"
