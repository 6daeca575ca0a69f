"""The front door: programs and pairs written by hand, apart from the authors of the checks."""

import re
from pathlib import Path

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.validity import check
from steptp_dagster.verify.verdict import verify

FOLDER = Path(__file__).parents[1] / "fixtures" / "acceptance"


def cases(file: str) -> list[object]:
    """Name and sections ``(title, text)`` of every case in a fixture file."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    found = []
    for chunk in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        name, _, body = chunk.partition("\n")
        parts = re.split(r"^--- (.*)\n", body, flags=re.MULTILINE)[1:]
        sections = list(zip(parts[::2], parts[1::2], strict=True))
        found.append(pytest.param(sections, id=name.replace(" ", "-")))
    return found


@pytest.mark.parametrize("sections", cases("programs.txt"))
def test_static_rules(sections: list[tuple[str, str]]) -> None:
    ((rule, text),) = sections
    kinds = {violation.kind for violation in check(read(text).signed)}
    assert kinds == set() if rule == "valid" else rule in kinds


@pytest.mark.parametrize("sections", cases("pairs.txt"))
def test_verdicts(sections: list[tuple[str, str]]) -> None:
    (wanted, _), (_, original_text), (_, candidate_text) = sections
    original = read(original_text).signed
    assert check(original) == ()
    candidate = read(candidate_text, inherit=original.signature).signed
    verdict = verify(original, candidate, seed=0)
    accepted, _, label = wanted.partition(" ")
    assert verdict.accepted == (accepted == "accepted"), verdict.reason
    assert not label or verdict.equality == label
