"""The commands over programs: results, words and exit codes."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from steptp_dagster.cli.main import steptp
from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.versions import nvrtc_available

MATMUL = """# input A f32[6,4]
# param W f32[4,5]
# output D f32[6,5]
B^{6}_{tx=0}L^{5}_{a=0}L^{4}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];
"""
REORDERED = (
    "B^{6}_{tx=0}L^{4}_{c=0}L^{5}_{a=0}"
    "[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];"
)
OUT_OF_BOUNDS = MATMUL.replace("A^{f32,g}_{tx,c}", "A^{f32,g}_{tx,c+1}")
CUT_SHORT = REORDERED.replace("L^{4}", "L^{3}")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {
        "matmul": MATMUL,
        "reordered": REORDERED,
        "invalid": OUT_OF_BOUNDS,
        "short": CUT_SHORT,
        "broken": "# output D f32[]\nB^{6}_{tx=0}[D^{f32,q}=1;];",
        "empty": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder").mkdir()
    names = [*texts, "binary", "folder", "missing"]
    return {name: str(tmp_path / name) for name in names}


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(steptp, arguments, input=stdin)


def data(result: Result) -> Any:
    return json.loads(result.stdout)


def test_parse_prints_the_canonical_file(files: dict[str, str]) -> None:
    spaced = MATMUL.replace("=D^", " = (D^", 1).replace("_{c,a};", "_{c,a}) ;")
    result = run("parse", "-", stdin=spaced)
    assert (result.exit_code, result.stdout, result.stderr) == (0, MATMUL, "")


def test_both_spellings_are_read_and_printed(files: dict[str, str], tmp_path: Path) -> None:
    short = run("parse", "--spelling", "compact", files["matmul"])
    text = "f32;Btx6La5Lc4D[tx,a]+=A[tx,c]*W[c,a]"
    header = "".join(MATMUL.splitlines(keepends=True)[:3])
    assert (short.exit_code, short.stdout, short.stderr) == (0, f"{header}{text}\n", "")
    assert run("parse", "-", stdin=short.stdout).stdout == MATMUL
    assert data(run("parse", "-", "--json", "--spelling", "compact", stdin=text))["text"] == text
    (tmp_path / "candidate").write_text(text.replace("La5Lc4", "Lc4La5"))
    judged = run("verify", "--json", files["matmul"], str(tmp_path / "candidate"))
    assert data(judged)["accepted"]
    bad = run("parse", "-", stdin=f"{header}f32;Btx6D[tx=1")
    assert bad.exit_code == 2
    assert "expected an operator or ',' or ']', found '=' (line 4, column 13)" in bad.stderr


def test_parse_tells_all_about_a_valid_program(files: dict[str, str]) -> None:
    result = run("parse", files["matmul"], "--json")
    found = data(result)
    assert result.exit_code == 0
    assert found["valid"] and found["violations"] == []
    assert found["cost"]["flops"] == 2 * 6 * 5 * 4
    assert found["shapes"] == {"A": [6, 4], "W": [4, 5], "D": [6, 5]}
    assert [v["role"] for v in found["signature"]] == ["input", "param", "output"]


def test_parse_of_an_invalid_program_prints_it_and_points_at_the_fault(
    files: dict[str, str],
) -> None:
    result = run("parse", files["invalid"])
    assert result.exit_code == 1
    assert result.stdout == OUT_OF_BOUNDS
    assert "out-of-bounds" in result.stderr
    assert "(line 4, column 70)" in result.stderr
    (violation,) = data(run("parse", files["invalid"], "--json"))["violations"]
    assert (violation["kind"], violation["line"], violation["column"]) == ("out-of-bounds", 4, 70)


def test_parse_without_a_header_reads_only(files: dict[str, str]) -> None:
    result = run("parse", files["reordered"])
    assert (result.exit_code, result.stdout) == (0, REORDERED + "\n")
    assert "no header" in result.stderr
    assert data(run("parse", files["reordered"], "--json"))["signature"] is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("broken", "expected a scope, one of g s l, found 'q' (line 2, column 21)"),
        ("empty", "(line 1, column 1)"),
        ("binary", "not UTF-8"),
        ("folder", "directory"),
        ("missing", "No such file"),
    ],
)
def test_what_cannot_be_read_is_exit_code_2(files: dict[str, str], name: str, words: str) -> None:
    for command in (("parse",), ("apply", "loop_split"), ("verify", files["matmul"])):
        result = run(*command, files[name])
        assert result.exit_code == 2, command
        assert words in result.stderr
        assert result.stdout == ""
        assert "Traceback" not in result.stderr


def test_apply_lists_sites_and_takes_one(files: dict[str, str]) -> None:
    listed = data(run("apply", "loop_split", files["matmul"], "--json"))
    sites = listed["sites"]
    assert [site["site"] for site in sites] == list(range(len(sites)))
    wanted = next(s for s in sites if s["parameters"]["loop"] == "c")
    assert (
        f"[{wanted['site']}] {wanted['description']}"
        in run("apply", "loop_split", files["matmul"]).stdout
    )
    taken = run("apply", "loop_split", files["matmul"], "--site", str(wanted["site"]))
    assert taken.exit_code == 0
    assert "c" not in {loop.index for loop in read(MATMUL).signed.program.nests[0].loops[:1]}
    judged = run("verify", files["matmul"], "-", stdin=taken.stdout)
    assert (judged.exit_code, judged.stdout.split()[1]) == (0, "exact")
    step = data(run("apply", "loop_split", files["matmul"], "--site", "0", "--json"))
    assert step["before"] == MATMUL
    assert step["reasoning"] and step["explanation"]["preconditions"]


def test_apply_lists_refusals(files: dict[str, str]) -> None:
    result = run("apply", "online_softmax", files["matmul"])
    assert result.exit_code == 0
    assert result.stdout.startswith("no site")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("apply", "loop_splt", "matmul"), "did you mean loop_split"),
        (("apply", "loop_split", "matmul", "--site", "999"), "not 999"),
        (("apply", "loop_split", "matmul", "--site", "-1"), "not -1"),
        (("apply", "loop_split", "invalid"), "out-of-bounds"),
        (("apply", "loop_split", "reordered"), "header line"),
        (("verify", "invalid", "matmul"), "out-of-bounds"),
        (("verify", "reordered", "matmul"), "header line"),
        (("verify", "matmul", "matmul", "--target", "abacus"), "abacus"),
        (("verify", "matmul", "matmul", "--seed", "-1"), "negative"),
        (("verify", "matmul", "matmul", "--timeout", "0"), "positive number of seconds"),
        (("verify", "matmul", "matmul", "--timeout", "nan"), "positive number of seconds"),
    ],
)
def test_wrong_use_is_exit_code_2(
    files: dict[str, str], arguments: tuple[str, ...], words: str
) -> None:
    result = run(*(files.get(a, a) for a in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


@pytest.mark.skipif(not nvrtc_available(), reason="no NVRTC to build cubins with")
def test_verify_builds_for_a_gpu(files: dict[str, str]) -> None:
    pair = ("verify", files["matmul"], files["reordered"], "--target", "cuda:sm_90")
    if shutil.which("nvidia-smi"):
        pytest.skip("with a GPU the pair is run")
    result = run(*pair, "--json")
    verdict = data(result)
    assert result.exit_code == 1
    assert (verdict["accepted"], verdict["equality"]) == (False, "built")
    assert verdict["kernels"][0]["registers"] > 0
    told = run(*pair).stdout
    assert told.startswith("built for cuda:sm_90, not executed: no GPU")
    assert "registers" in told


def test_verify_accepts(files: dict[str, str]) -> None:
    result = run("verify", files["matmul"], files["reordered"], "--json")
    verdict = data(result)
    assert result.exit_code == 0
    assert (verdict["accepted"], verdict["equality"], verdict["bitwise"]) == (True, "exact", True)
    assert (verdict["reason"], verdict["seed"], verdict["target"]) == (None, 0, "llvm")
    assert len(verdict["families"]) >= 10
    assert verdict["margins"] and verdict["versions"] and verdict["static"] == []


@pytest.mark.parametrize("candidate", ["short", "invalid"])
def test_verify_rejects(files: dict[str, str], candidate: str) -> None:
    result = run("verify", files["matmul"], files[candidate], "--json")
    verdict = data(result)
    assert result.exit_code == 1
    assert (verdict["accepted"], verdict["equality"]) == (False, "rejected")
    assert verdict["reason"] == {"short": "different-mathematics", "invalid": "invalid"}[candidate]
    assert bool(verdict["static"]) == (candidate == "invalid")


def test_strategies_and_sources() -> None:
    rows = data(run("strategies", "--json"))
    origins = Counter(row["origin"] for row in rows)
    assert origins["published"] == 43
    assert set(origins) == {"published", "steptp"}
    assert {row["strategy_level"] for row in rows} == {"graph", "operator", "memory", "math"}
    names = [row["program"] for row in data(run("sources", "--json"))]
    assert len(names) == len(set(names))
    assert {"Matmul3D", "softmax", "MinGPTCausalAttention"} <= set(names)


def test_translate_a_library_program_and_a_file(tmp_path: Path) -> None:
    text = run("translate", "softmax", "--dtype", "f16")
    assert text.exit_code == 0
    assert read(text.stdout).signed.signature.outputs[0].dtype == "f16"
    program = tmp_path / "mine.py"
    program.write_text(
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.linalg.inv(x)\n"
        "def get_inputs():\n"
        "    return [torch.randn(4, 4)]\n"
    )
    refused = run("translate", str(program))
    assert refused.exit_code == 1
    assert "inv" in refused.stderr
    assert "mine.py:4" in refused.stderr
    program.write_text(program.read_text().replace("torch.linalg.inv(x)", "torch.relu(x)"))
    assert "# input A f32[4,4]" in run("translate", str(program)).stdout
    program.write_text("def program(:\n")
    broken = run("translate", str(program))
    assert (broken.exit_code, "mine.py:1" in broken.stderr) == (2, True)
    assert run("translate", "sotfmax").exit_code == 2


def test_zoo() -> None:
    result = run("zoo", "--sample", "31", "--json")
    report = data(result)
    assert (result.exit_code, report["passed"]) == (0, True)
    assert report["wrong"] == report["rejected"] >= 30
    assert report["kinds"] >= 12
    mutation = report["mutation"]
    assert mutation["mutants"] == 31
    assert mutation["missed"] == []
    assert mutation["rejected"] == mutation["different"] >= 15
    assert mutation["published_rule_accepts"] <= mutation["executable"]
    assert len(mutation["kinds"]) >= 20
    assert run("zoo", "--sample", "-1").exit_code == 2
    assert run("zoo", "--workers", "0").exit_code == 2


def test_translate_with_a_nest_for_every_view() -> None:
    composed = run("translate", "Matmul_with_transposed_B")
    naive = run("translate", "Matmul_with_transposed_B", "--naive")
    assert (composed.exit_code, naive.exit_code) == (0, 0)
    nests = [len(read(result.stdout).signed.program.nests) for result in (composed, naive)]
    assert nests == [1, 2]
