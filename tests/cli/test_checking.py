"""``steptp check-strategy`` and plug-ins on the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steptp_dagster.cli.main import steptp
from steptp_dagster.strategies.plugins import VARIABLE

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "strategies"
EXAMPLE = (EXAMPLES / "loop_reversal.py").read_text(encoding="utf-8")
PAGE = (Path(__file__).parents[2] / "docs" / "plug-ins.md").read_text(encoding="utf-8")
MATMUL = """# input A f32[6,4]
# param W f32[4,5]
# output D f32[6,5]
B^{6}_{tx=0}L^{5}_{a=0}L^{4}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(steptp, arguments)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def test_the_worked_example_passes_with_the_cases_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(EXAMPLES))
    cases = tmp_path / "cases.txt"
    cases.write_text("===" + PAGE.split("```\n===")[1].split("```")[0], encoding="utf-8")
    program = tmp_path / "matmul.leir"
    program.write_text(MATMUL, encoding="utf-8")
    result = run("check-strategy", "loop_reversal", str(program), "--cases", str(cases), "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["problems"] == []
    by_program = {row["program"]: row for row in found["programs"]}
    assert by_program[str(program)]["accepted"] == by_program[str(program)]["taken"] == 1
    assert by_program["case a sum carries its total"]["refusals"] == 1


def test_a_wrong_one_is_found_out(folder: Path) -> None:
    wrong = EXAMPLE.replace(
        ".extent - 1\n        reversed_", ".extent - 2\n        reversed_"
    ).replace("or fault(self.apply(program, site))", "")
    assert wrong != EXAMPLE
    (folder / "wrong.py").write_text(wrong.replace("loop_reversal", "wrong"), encoding="utf-8")
    result = run("check-strategy", "wrong")
    assert result.exit_code == 1
    assert "listed, but result-invalid" in result.stdout


def test_wrong_values_are_found_out(folder: Path) -> None:
    wrong = EXAMPLE.replace('Binary("-", Int(last), Index(index))', "Int(last)")
    wrong = wrong.replace("return site.strategy == self.name", "return False")
    wrong = wrong.replace("or fault(self.apply(program, site))", "")
    program = folder / "sum.leir"
    program.write_text(
        "# input A f32[4,2]\n# output D f32[4]\n"
        "B^{4}_{tx=0}L^{2}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a};];\n"
    )
    wrong = wrong.replace('!= "none"', '== "dependence"')
    (folder / "wrong.py").write_text(wrong.replace("loop_reversal", "wrong"), encoding="utf-8")
    result = run("check-strategy", "wrong", str(program))
    assert result.exit_code == 1
    assert "rejected: " in result.stdout


def test_one_that_raises_is_a_finding(folder: Path) -> None:
    broken = EXAMPLE.replace("        sites: list[Site] = []", "        sites = [1 // 0]")
    (folder / "broken.py").write_text(broken.replace("loop_reversal", "broken"), encoding="utf-8")
    result = run("check-strategy", "broken")
    assert result.exit_code == 1
    assert "raised ZeroDivisionError" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("loop_reversed",), "no strategy 'loop_reversed'"),
        (("loop_split", "--cases", "missing.txt"), "missing.txt: No such file"),
        (("loop_split", "--sites", "0"), "positive number"),
    ],
)
def test_wrong_usage_is_told_in_words(arguments: tuple[str, ...], words: str) -> None:
    result = run("check-strategy", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_broken_plugin_is_named_and_the_others_listed(folder: Path) -> None:
    (folder / "bad.py").write_text("import no_such_module\n", encoding="utf-8")
    result = run("strategies")
    assert result.exit_code == 2
    assert "loop_split" in result.stdout
    assert f"plug-in bad ({folder / 'bad.py'}:1): ModuleNotFoundError" in result.stderr
    assert run("build", "--profile", "tiny", "--data", str(folder / "data")).exit_code == 2
    assert not (folder / "data").exists()
