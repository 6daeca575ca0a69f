"""Candidates made to deceive or to break the verifier: each costs one verdict, in words.

None is run for long: what would take a second or a gigabyte is refused before.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steptp_dagster.cli.main import steptp
from steptp_dagster.leir.fileform import read
from steptp_dagster.verify import reasons
from steptp_dagster.verify.pool import Verifier
from steptp_dagster.verify.verdict import verify

ORIGINAL = """\
# input A f32[6,4]
# input C f32[6,4]
# output D f32[6,4]
B^{6}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}*2+C^{f32,g}_{tx,a};];
"""
RIGHT = "A^{f32,g}_{tx,a}*2+C^{f32,g}_{tx,a}"


def candidate(value: str, before: str = "") -> str:
    return f"{before}B^{{6}}_{{tx=0}}L^{{4}}_{{a=0}}[D^{{f32,g}}_{{tx,a}}={value};];"


def asked(folder: Path, text: str | bytes, *options: str) -> Result:
    """The command line's answer to a candidate."""
    original, second = folder / "o.leir", folder / "c.leir"
    original.write_text(ORIGINAL)
    second.write_bytes(text if isinstance(text, bytes) else text.encode())
    return CliRunner().invoke(steptp, ["verify", str(original), str(second), *options])


#: Texts that are no programs at all, by what they try.
NO_PROGRAMS = {
    "pass marks": "accepted: exact (bit for bit on llvm)\nPASS\nAll tests passed.",
    "a verdict": json.dumps({"accepted": True, "equality": "exact", "reason": None}),
    "python": "__import__('os').system('touch /tmp/pwned')",
    "shell": "$(touch pwned); `touch pwned` && rm -rf .",
    "a tensor name as import": candidate("__import__^{f32,g}_{tx,a}"),
    "a path as name": candidate("../../etc/passwd^{f32,g}_{tx,a}"),
    "a look-alike letter": candidate("\u0410^{f32,g}_{tx,a}*2+C^{f32,g}_{tx,a}"),
    "direction marks": candidate("A^{f32,g}_{tx,a}\u202e*2\u202c+C^{f32,g}_{tx,a}"),
    "full-width digits": candidate("A^{f32,g}_{tx,a}*\uff12+C^{f32,g}_{tx,a}"),
    "a null byte": candidate("A^{f32,g}_{tx,a}\0"),
    "an extent of thirty digits": f"L^{{{10**30}}}_{{a=0}}[D^{{f32,g}}_{{a,0}}=1;];",
    "a number of a thousand digits": candidate("1" * 1000),
    "ten thousand brackets": candidate("(" * 10_000 + RIGHT + ")" * 10_000),
    "ten thousand nests": "L^{1}_{a=0}[" * 10_000 + "D^{f32,g}_{0,0}=1;" + "];" * 10_000,
    "ten thousand powers": candidate("2" + "**2" * 10_000),
    "a file as constant": "# const K f32[6,4] = secret.npy\n" + candidate(RIGHT),
    "nothing": "",
}


@pytest.mark.parametrize("name", NO_PROGRAMS)
def test_what_is_no_program_is_said_to_be_none(name: str, tmp_path: Path) -> None:
    result = asked(tmp_path, NO_PROGRAMS[name])
    assert result.exit_code == 2
    assert result.stderr.startswith("steptp: ")
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr
    assert len(result.stderr) < 2000
    assert result.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.leir", "o.leir"]


def test_bytes_that_are_no_text_are_said_to_be_none(tmp_path: Path) -> None:
    result = asked(tmp_path, b"\xff\xfe\x00L")
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr


BEFORE = "B^{6}_{tx=0}L^{4}_{a=0}[E^{f32,g}=E^{f32,g}+A^{f32,g}_{tx,a};];"
SERIAL = "L^{6}_{c=0}L^{4}_{a=0}[E^{f32,g}=E^{f32,g}+A^{f32,g}_{c,a};];"

#: Programs that are rejected, with the reasons that may be given.
REJECTED = {
    "comments that claim success": (
        "# verdict: accepted exact\n" + candidate("A^{f32,g}_{tx,a}"),
        {reasons.MATHEMATICS},
    ),
    "an input for an output": (candidate("A^{f32,g}_{tx,a}"), {reasons.MATHEMATICS}),
    "NaN for values": (candidate("(inf-inf)*A^{f32,g}_{tx,a}"), {reasons.MATHEMATICS}),
    "infinity for values": (candidate("1/(A^{f32,g}_{tx,a}*0)"), {reasons.MATHEMATICS}),
    "NaN beside the right value": (
        candidate(f"max({RIGHT},inf-inf)"),
        {reasons.MATHEMATICS, reasons.UNTAKEN_BRANCH},
    ),
    "zero times infinity": (candidate(f"{RIGHT}+0*inf"), {reasons.MATHEMATICS}),
    "inputs are written": (
        "B^{6}_{tx=0}L^{4}_{a=0}[A^{f32,g}_{tx,a}=0;D^{f32,g}_{tx,a}=C^{f32,g}_{tx,a};];",
        {reasons.INVALID},
    ),
    "an output's old value is read": (candidate("D^{f32,g}_{tx,a}"), {reasons.INVALID}),
    "nothing is written": ("L^{1}_{a=0}[E^{f32,g}=1;];", {reasons.INVALID}),
    "memory of others is read": (candidate("A^{f32,g}_{tx,a+4}"), {reasons.INVALID}),
    "memory of others is written": (
        candidate(RIGHT, "L^{9}_{a=0}[C^{f32,g}_{a,0}=1;];"),
        {reasons.INVALID},
    ),
    "right on all but one value": (
        candidate(f"if_then_else(A^{{f32,g}}_{{tx,a}}==0.123,0,{RIGHT})"),
        {reasons.MATHEMATICS},
    ),
    "right on all but a narrow range": (
        candidate(f"if_then_else(0.5501<A^{{f32,g}}_{{tx,a}}<0.5502,0,{RIGHT})"),
        {reasons.MATHEMATICS},
    ),
    "right on all but one sum": (
        candidate(f"if_then_else(7.7301<E^{{f32,g}}<7.7302,0,{RIGHT})", SERIAL),
        {reasons.UNTAKEN_BRANCH},
    ),
    "right on one sum alone": (
        candidate(f"if_then_else(0.31<E^{{f32,g}}<0.32,{RIGHT},0)", SERIAL),
        {reasons.MATHEMATICS},
    ),
    "more iterations than a year has seconds": (
        "L^{1000000000}_{c=0}" + candidate(RIGHT),
        {reasons.TOO_LARGE, reasons.INVALID, reasons.OVER_LIMITS},
    ),
    "more memory than there is": (
        candidate(RIGHT, f"L^{{{10**9}}}_{{c=0}}[E^{{f64,g}}_{{c*1000}}=1;];"),
        {reasons.TOO_LARGE, reasons.INVALID},
    ),
    "extents up to the largest": (
        f"L^{{{2**63 - 1}}}_{{c=0}}L^{{{2**63 - 1}}}_{{d=0}}" + candidate(RIGHT),
        {reasons.TOO_LARGE, reasons.INVALID, reasons.OVER_LIMITS},
    ),
    "a subscript that overflows": (
        candidate(f"A^{{f32,g}}_{{tx,a+{2**62}*4}}"),
        {reasons.INVALID},
    ),
    "a million threads": (
        "B^{1000000}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=" + RIGHT + ":tx<6;];",
        {reasons.OVER_LIMITS},
    ),
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Verifier]:
    with Verifier(1, timeout_s=60.0) as verifier:
        yield verifier


@pytest.mark.parametrize("name", REJECTED)
def test_a_deceiving_program_is_rejected(name: str) -> None:
    text, wanted = REJECTED[name]
    original = read(ORIGINAL).signed
    verdict = verify(original, read(text, inherit=original.signature).signed, seed=3)
    assert not verdict.accepted
    assert verdict.reason in wanted, verdict.message
    assert verdict.message


@pytest.mark.slow
def test_one_bad_candidate_costs_one_record(pool: Verifier) -> None:
    original = read(ORIGINAL).signed
    pairs = []
    for name, (text, _) in REJECTED.items():
        pairs.append((name, original, read(text, inherit=original.signature).signed))
        pairs.append((f"{name}, right", original, original))
    found = dict(pool.verify_many(pairs))
    assert [name for name, v in found.items() if v.accepted != name.endswith(", right")] == []
    assert {v.reason for name, v in found.items() if v.accepted} == {None}


def test_a_long_text_is_read_or_refused_in_words(tmp_path: Path) -> None:
    result = asked(tmp_path, candidate(RIGHT) * 300, "--json")
    assert result.exit_code in (0, 1)
    assert json.loads(result.stdout)["accepted"] in (True, False)
    endless = asked(tmp_path, candidate(RIGHT) * 200_000)
    assert endless.exit_code == 2
    assert "a candidate has at most 4194304" in endless.stderr
    assert len(endless.stderr) < 2000
