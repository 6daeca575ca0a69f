"""Laws that hold between runs: names do not matter, nor does the hash seed of the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import fresh_indices, index_names
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.rewrite import rename_loops
from tests.support.corpus import VALID
from tests.support.strategy_cases import all_cases

PROGRAMS = [case.signed for case in VALID[::3]] + [case.before for case in all_cases()[::4]]
ROOT = Path(__file__).parents[2]

_DIGEST = """
import hashlib
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import steps
from tests.support.corpus import VALID
text = []
for case in VALID[::4]:
    for chosen in strategies().values():
        text.append(repr(chosen.survey(case.signed)))
        text += [repr(step) for step in steps(chosen, case.signed)]
print(hashlib.blake2b("\\n".join(text).encode()).hexdigest(), len(text))
"""


def _renamed(program: SignedProgram) -> SignedProgram:
    """The program with all serial indices renamed, nest by nest, keeping their order."""
    nests = []
    for nest in program.program.nests:
        used = sorted(index_names(nest))
        serial = [name for name in used if name[:2] not in ("bx", "by", "bz", "tx", "ty", "tz")]
        names = dict(zip(serial, fresh_indices(used), strict=False))
        renamed = rename_loops(nest, names)
        assert isinstance(renamed, Nest)
        nests.append(renamed)
    return SignedProgram(type(program.program)(tuple(nests)), program.signature)


def test_renaming_keeps_the_hash() -> None:
    for program in PROGRAMS:
        assert structural_hash(_renamed(program)) == structural_hash(program)


@pytest.mark.parametrize("name", strategies())
def test_names_of_indices_do_not_matter(name: str) -> None:
    chosen = strategy(name)
    for program in PROGRAMS:
        other = _renamed(program)
        first, second = chosen.survey(program), chosen.survey(other)
        assert [s.path for s in first.sites] == [s.path for s in second.sites]
        assert [r.reason for r in first.refusals] == [r.reason for r in second.refusals]
        for one, two in list(zip(first.sites, second.sites, strict=True))[:3]:
            results = chosen.apply(program, one), chosen.apply(other, two)
            assert structural_hash(results[0]) == structural_hash(results[1]), one.describe()


def test_the_hash_seed_does_not_matter() -> None:
    digests = set()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", _DIGEST],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1
    assert int(next(iter(digests)).split()[1]) > 100
