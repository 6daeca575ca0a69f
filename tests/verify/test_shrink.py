"""Shrinking: the same mistake with less around it, always the same way."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.verify.reductions import REDUCTIONS, size
from steptp_dagster.verify.shrink import NothingToShrink, shrink
from steptp_dagster.verify.verdict import verify
from steptp_dagster.verify.zoo import originals
from steptp_dagster.verify.zoo.forms import FORMS
from steptp_dagster.verify.zoo.wrong import WRONG


def pair(original: str, *edits: tuple[str, str]) -> tuple[SignedProgram, SignedProgram]:
    candidate = original
    for old, new in edits:
        assert old in candidate
        candidate = candidate.replace(old, new)
    first = read(original).signed
    return first, read(candidate, inherit=first.signature).signed


@pytest.mark.slow
def test_only_the_mistake_is_left() -> None:
    wrong = pair(
        originals.SOFTMAX,
        ("max(C^{f32,g}_{tx},A^{f32,g}_{tx,a})", "max(C^{f32,g}_{tx},A^{f32,g}_{tx,0})"),
    )
    before = verify(*wrong)
    found = shrink(*wrong, verify)
    assert found.finished
    assert found.verdict.reason == before.reason
    assert verify(found.original, found.candidate) == found.verdict
    assert size((found.original, found.candidate)) < size(wrong) / 2


def test_a_wrong_term_of_a_long_program_stands_alone() -> None:
    wrong = pair(originals.LAYERNORM, ("+1e-5)*W", "+1e-5)/W"))
    found = shrink(*wrong, verify)
    assert found.finished
    assert found.verdict.reason == "different-mathematics"
    assert len(found.original.program.nests) == len(found.candidate.program.nests) == 1
    assert {v.name for v in found.original.signature.sources} >= {"W"}
    assert all(extent <= 2 for v in found.original.signature.variables for extent in v.shape)
    assert check(found.original) == ()
    assert "/W" in to_text(found.candidate.program)


def test_a_broken_rule_stays_the_one_that_is_broken() -> None:
    racy = next(p for p in WRONG if p.kind == "vectorised-reduction").programs()
    before = verify(*racy)
    found = shrink(*racy, verify)
    assert found.verdict.reason == before.reason == "invalid"
    assert {v.kind for v in found.verdict.static} <= {v.kind for v in before.static}
    assert size((found.original, found.candidate)) < size(racy)


def test_shrinking_is_deterministic_and_bounded() -> None:
    wrong = pair(
        originals.GATHER, ("A^{f32,g}_{C^{i64,g}_{tx},a}", "-A^{f32,g}_{C^{i64,g}_{tx},a}")
    )
    first, again = (shrink(*wrong, verify, budget=3) for _ in range(2))
    assert first == again
    assert first.judged <= 3
    assert not first.finished
    assert first.verdict.reason == "different-mathematics"


def test_an_accepted_pair_is_refused() -> None:
    same = pair(originals.SCALE_ADD)
    with pytest.raises(NothingToShrink, match="accepted"):
        shrink(*same, verify)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reductions_keep_right_pairs_right_where_they_are_valid(reduction: object) -> None:
    """What is done to both sides makes no mistake of its own, so that none is mistaken for it."""
    for form in FORMS[:6]:
        right = form.programs()
        for k, smaller in enumerate(reduction(right)):  # type: ignore[operator]
            if k >= 6:
                break
            if check(smaller[0]) or check(smaller[1]) or size(smaller) >= size(right):
                continue
            verdict = verify(*smaller)
            assert verdict.accepted or verdict.reason == "too-few-families", to_text(
                smaller[1].program
            )
