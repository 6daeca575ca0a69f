"""``steptp shrink`` on files, and what ``steptp replay`` compares of a verdict."""

from pathlib import Path

from click.testing import CliRunner

from steptp_dagster.cli.main import steptp
from steptp_dagster.cli.replay import evidence
from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.zoo import originals


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(steptp, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_shrink_writes_the_smaller_pair(tmp_path: Path) -> None:
    original, candidate = tmp_path / "o.leir", tmp_path / "c.leir"
    original.write_text(originals.LINEAR)
    candidate.write_text(originals.LINEAR.replace("max(E", "min(E"))
    out = tmp_path / "small" / "pair"
    code, stdout, _ = run("shrink", str(original), str(candidate), "--out", str(out))
    assert code == 0
    assert stdout.splitlines()[-1].startswith("rejected: different-mathematics")
    small = [read((out / f"{name}.leir").read_text()).signed for name in ("original", "candidate")]
    assert len(small[0].program.nests) == len(small[1].program.nests) == 1
    same = run("shrink", str(original), str(original))
    assert same[0] == 1
    assert "accepted" in same[2]
    assert run("shrink", str(original), str(candidate), "--budget", "0")[0] == 2
    assert run("shrink", str(original), str(tmp_path / "none.leir"))[0] == 2


def test_replay_compares_every_figure_of_a_verdict() -> None:
    row = {"bitwise": True, "reason": None, "static": "[]", "numeric": "[0.1]", "margins": "{}"}
    changed = [{**row, "bitwise": False}, {**row, "numeric": "[0.10000000000000002]"}]
    digests = [evidence(each) for each in (row, *changed, {**row, "margins": '{"D=zeros":1.0}'})]
    assert len(set(digests)) == 4
    assert evidence({**row, "step_id": "another"}) == digests[0]
