"""The pool: order, isolation, and verdicts that do not depend on how work is divided."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify.pool import Verifier
from steptp_dagster.verify.record import Verdict
from steptp_dagster.verify.verdict import verify
from steptp_dagster.verify.zoo import originals
from tests.support import judges

ORIGINAL = read(originals.SCALE_ADD).signed


def candidate(text: str) -> SignedProgram:
    return read(text, inherit=ORIGINAL.signature).signed


def marked(extent: int) -> SignedProgram:
    return candidate(f"L^{{{extent}}}_{{a=0}}[D^{{f32,g}}_{{a}}=1:a<20;];")


RIGHT = candidate("L^{20}_{a=0}[D^{f32,g}_{a}=2.5*A^{f32,g}_{a}-C^{f32,g}_{a};];")
GIANT = "".join(f"L^{{{2**40}}}_{{{i}=0}}" for i in "acdfg") + "[D^{f32,g}_{a%20}=1;];"
WRONG = candidate("L^{20}_{a=0}[D^{f32,g}_{a}=2.5*A^{f32,g}_{a}+C^{f32,g}_{a};];")


def outcomes(verdicts: Sequence[tuple[object, Verdict]]) -> list[tuple[object, str]]:
    return [(key, verdict.reason or "accepted") for key, verdict in verdicts]


def test_failures_cost_one_pair_each(capfd: pytest.CaptureFixture[str]) -> None:
    pairs = [
        ("right", ORIGINAL, RIGHT),
        ("crash", ORIGINAL, marked(judges.CRASH)),
        ("wrong", ORIGINAL, WRONG),
        ("hang", ORIGINAL, marked(judges.HANG)),
        ("memory", ORIGINAL, marked(judges.EXHAUST)),
        ("raises", ORIGINAL, marked(judges.RAISE)),
        ("segfault", ORIGINAL, marked(judges.SEGFAULT)),
        ("spins", ORIGINAL, marked(judges.SPIN)),
        ("prints", ORIGINAL, marked(judges.PRINT)),
        ("giant", ORIGINAL, candidate(GIANT)),
        ("right again", ORIGINAL, RIGHT),
    ]
    with Verifier(2, timeout_s=8, judge=judges.failing) as verifier:
        found = list(verifier.verify_many(pairs))
        after = list(verifier.verify_many([("later", ORIGINAL, RIGHT)]))
    assert outcomes(found) == [
        ("right", "accepted"),
        ("crash", "crashed"),
        ("wrong", "different-mathematics"),
        ("hang", "timed-out"),
        ("memory", "out-of-memory"),
        ("raises", "crashed"),
        ("segfault", "crashed"),
        ("spins", "timed-out"),
        ("prints", "different-mathematics"),
        ("giant", "too-large"),
        ("right again", "accepted"),
    ]
    unsettled = [key for key, verdict in found if not verdict.settled]
    assert unsettled == ["crash", "hang", "memory", "raises", "segfault", "spins"]
    assert found[1][1].message == "the worker died with exit code -9"
    assert found[5][1].message == "RuntimeError: marked"
    assert outcomes(after) == [("later", "accepted")]
    assert "PASSED" not in "".join(capfd.readouterr())


def test_a_pair_is_not_blamed_for_a_worker_that_was_killed(tmp_path: Path) -> None:
    with Verifier(1, judge=judges.dying_once, cache_dir=tmp_path) as verifier:
        found = list(verifier.verify_many([("right", ORIGINAL, RIGHT)]))
        assert len(list(tmp_path.glob("*/died.once"))) == 1
    assert outcomes(found) == [("right", "accepted")]


def test_workers_have_no_torch_and_stay_small() -> None:
    pairs = [(i, ORIGINAL, (RIGHT, WRONG)[i % 2]) for i in range(4)]
    with Verifier(1, judge=judges.measuring) as verifier:
        [(_, told), *_] = verifier.verify_many(pairs)
    facts = dict(told.versions)
    assert facts["torch"] == "absent"
    assert int(facts["resident MiB"]) <= 400


def test_verdicts_do_not_depend_on_workers_or_batches() -> None:
    pairs = [(i, ORIGINAL, (RIGHT, WRONG, ORIGINAL)[i % 3]) for i in range(45)]
    alone = [verify(ORIGINAL, p) for p in (RIGHT, WRONG, ORIGINAL)]
    for workers in (1, 2):
        with Verifier(workers) as verifier:
            found = list(verifier.verify_many(iter(pairs)))
        assert [key for key, _ in found] == list(range(45))
        assert [verdict for _, verdict in found] == [alone[i % 3] for i in range(45)]


def test_an_invalid_original_is_a_verdict() -> None:
    broken = candidate("L^{20}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a+1};];")
    with Verifier(1) as verifier:
        [(_, verdict)] = verifier.verify_many([(0, broken, RIGHT)])
    assert verdict.reason == "invalid-original"
    assert verdict.static[0].kind == "out-of-bounds"


def test_another_seed_than_the_pools_is_refused_at_once() -> None:
    with Verifier(1, seed=3) as verifier:
        with pytest.raises(ValueError, match="draw data from seed 3, not 5"):
            verifier.verify_many([("right", ORIGINAL, RIGHT)], seed=5)
        [(_, verdict)] = verifier.verify_many([("right", ORIGINAL, RIGHT)], seed=3)
    assert verdict.seeds == (3,)
