"""The zoo: all known-wrong pairs are rejected, all known-right ones accepted."""

import pytest

from steptp_dagster.leir.validity import check
from steptp_dagster.verify import reasons
from steptp_dagster.verify.screen import screen
from steptp_dagster.verify.zoo import Report, run
from steptp_dagster.verify.zoo.pairs import edited
from steptp_dagster.verify.zoo.right import RIGHT
from steptp_dagster.verify.zoo.wrong import WRONG


@pytest.fixture(scope="module")
def report() -> Report:
    return run()


def test_every_wrong_pair_is_rejected(report: Report) -> None:
    assert [e.pair.name for e in report.wrong if e.verdict.accepted] == []


def test_every_right_pair_is_accepted(report: Report) -> None:
    rejected = [
        (e.pair.name, e.verdict.reason) for e in report.entries if e.right and not e.correct
    ]
    assert rejected == []
    assert report.passed


def test_the_zoo_is_large_enough(report: Report) -> None:
    counts = report.summary()
    assert counts["wrong"] >= 40
    assert counts["kinds"] >= 14
    assert counts["right"] >= 15
    assert counts["rejected"] == counts["wrong"]
    # The point of the report: a published rule lets a good part of the same mistakes through.
    assert counts["accepted_by_published_rule"] >= counts["executable"] // 4


def test_reasons_are_named(report: Report) -> None:
    assert {e.verdict.reason for e in report.wrong} <= set(reasons.REASONS)
    numeric = {e.verdict.reason for e in report.wrong if not e.verdict.static}
    assert {reasons.MATHEMATICS, reasons.UNSTABLE, reasons.NEW_NON_FINITE} <= numeric
    assert reasons.INTEGERS_DIFFER in numeric


def test_names_are_unique_and_originals_are_sound() -> None:
    pairs = [*WRONG, *RIGHT]
    names = [(p.kind, p.name) for p in pairs]
    assert len(set(names)) == len(names)
    originals = {p.original: p.programs()[0] for p in pairs}
    assert [text for text, signed in originals.items() if check(signed)] == []
    assert {text: found for text, signed in originals.items() if (found := screen(signed))} == {}


def test_another_seed_gives_the_same_answers(report: Report) -> None:
    again = run(seed=11)
    assert again.passed
    assert [e.pair for e in again.entries] == [e.pair for e in report.entries]


def test_the_table_has_a_line_per_pair(report: Report) -> None:
    lines = report.to_text().splitlines()
    assert len(lines) == len(report.entries) + 2
    assert lines[0].split()[:3] == ["expected", "verdict", "kind"]
    assert lines[-1].startswith(f"{len(WRONG)} of {len(WRONG)} wrong pairs rejected")
    assert [row["correct"] for row in report.rows()] == [True] * len(report.entries)


def test_an_edit_that_changes_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="does not occur"):
        edited("kind", "name", "text", ("missing", "x"))
