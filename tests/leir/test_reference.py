"""The language reference says nothing that is not so: its examples are read, checked and run."""

import doctest
import re
from pathlib import Path

import pytest

from steptp_dagster.leir.ast import FUNCTIONS, KINDS
from steptp_dagster.leir.dtypes import DTYPES, SCOPES
from steptp_dagster.leir.fileform import read, write
from steptp_dagster.leir.validity import check

DOCUMENT = Path(__file__).parents[2] / "docs" / "leir.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```leir\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6
    assert EXAMPLES[0].splitlines()[-1].startswith("B^{16}")


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_valid_programs(example: str) -> None:
    found = read(example)
    assert found.notes == ()
    assert check(found.signed) == ()
    assert read(write(found.signed)).signed == found.signed


def test_python_examples() -> None:
    # Fences end a doctest's expected output, as a blank line does.
    plain = re.sub(r"^```.*$", "", TEXT, flags=re.MULTILINE)
    found = doctest.DocTestParser().get_doctest(plain, {}, "leir.md", str(DOCUMENT), 0)
    assert len(found.examples) >= 8
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.REPORT_ONLY_FIRST_FAILURE
    )
    assert runner.run(found).failed == 0


@pytest.mark.parametrize("word", [*DTYPES, *SCOPES, *FUNCTIONS, *KINDS])
def test_every_word_of_the_language_is_explained(word: str) -> None:
    code = " ".join(re.findall(r"`([^`\n]+)`", TEXT))
    assert re.search(rf"(?<![a-zA-Z0-9]){word}(?![a-zA-Z0-9])", code)
