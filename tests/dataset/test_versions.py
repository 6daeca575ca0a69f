"""Which code makes a stage's rows: what is declared against what is imported."""

import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from steptp_dagster.dataset import versions
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.registry import strategies
from tests.support.closure import ROOT, closure

#: What every stage imports and no row depends on, with the reason.
MACHINERY = {
    "dataset/config.py": "settings that count are in the keys, as values",
    "dataset/file_digests.py": "what files hold, for seals and versions",
    "dataset/incremental.py": "keeps, drops and writes rows, and makes none",
    "dataset/parallel.py": "where the work is done",
    "dataset/schemas.py": "a file with other columns counts as missing",
    "dataset/store.py": "where rows lie",
    "dataset/versions.py": "what it says is in the keys",
    "paths.py": "where things lie",
    "progress.py": "what is shown meanwhile",
}
_REGISTRY = "gives a strategy by name; the unit's key has the version of that strategy"
_REPEATED = "steps repeated on siblings: such keys have the version of every step's strategy"
_TAKING = (
    "alternatives.py",
    "base.py",
    "evidence.py",
    "facts.py",
    "legality.py",
    "reading.py",
    "soundness.py",
    "step.py",
)
_SIBLINGS = {
    "strategies/registry.py": _REPEATED,
    **{f"strategies/{name}": _REPEATED for name in _TAKING},
}
#: What one stage imports and its rows do not depend on, with the reason.
APART = {
    "verdicts": _SIBLINGS,
    "trajectories": _SIBLINGS,
    "negatives": _SIBLINGS,
    "zoo": {"dataset/zoo_programs.py": "for `steptp zoo`; the table has the programs by hand"},
    "renderings": {"dataset/candidates.py": "how rows that are made already are shown"},
    "records": {"dataset/renderings.py": "the table of renderings is one of the inputs"},
}
_JUDGES = tuple(f"verify/{name}.py" for name in ("pool", "worker", "rpc", "rpc_server"))
#: What runs in other processes than the stage, or comes into it as a value.
ELSEWHERE = {"verdicts": _JUDGES, "trajectories": _JUDGES, "negatives": _JUDGES}
#: Packages that no row depends on: they hold rows, read settings, or show progress. Keys of pairs
#: on CUDA targets have NVRTC's release.
PLAIN_PACKAGES = {"cuda", "pandera", "pebble", "polars", "tqdm", "yaml", *sys.stdlib_module_names}
DISTRIBUTIONS = {"tvm": "apache-tvm", "tvm_ffi": "apache-tvm-ffi"}


def made_by(stage: str, without: Collection[str]) -> set[str]:
    """Files that take part in a stage's rows, by what they import."""
    return set(closure((f"dataset/stages/{stage}.py", *ELSEWHERE.get(stage, ())), without))


def declared(paths: Collection[str]) -> set[str]:
    """The Python files that a group covers."""
    return {str(f.relative_to(ROOT)) for path in paths for f in python_files(ROOT / path)}


def python_files(path: Path) -> Iterator[Path]:
    yield from [path] if path.is_file() else path.rglob("*.py")


def test_every_stage_has_a_group() -> None:
    modules = {path.stem for path in (ROOT / "dataset" / "stages").glob("*.py")}
    shared = {"__init__", "judgements", "judging", "translated"}
    assert set(versions.GROUPS) == set(versions.PACKAGES) == modules - shared
    for paths in versions.GROUPS.values():
        assert all((ROOT / path).exists() for path in paths)


@pytest.mark.parametrize("stage", [*versions.GROUPS])
def test_a_group_has_all_that_is_imported(stage: str) -> None:
    apart = APART.get(stage, {})
    found = made_by(stage, {*MACHINERY, *apart})
    if stage == "steps":
        found = {name for name in found if not name.startswith("strategies/")}
    assert found - declared(versions.GROUPS[stage]) == set()
    assert set(apart) <= made_by(stage, MACHINERY), "an exception that is none"


@pytest.mark.parametrize("stage", [*versions.GROUPS])
def test_a_group_has_nothing_else(stage: str) -> None:
    found = made_by(stage, MACHINERY)
    for path in versions.GROUPS[stage]:
        assert found & declared([path]), path


@pytest.mark.parametrize("stage", [*versions.GROUPS])
def test_packages_are_those_that_are_imported(stage: str) -> None:
    apart = {*MACHINERY, *APART.get(stage, {})}
    starts = (f"dataset/stages/{stage}.py", *ELSEWHERE.get(stage, ()))
    names = {name for packages in closure(starts, apart).values() for name in packages}
    imported = {DISTRIBUTIONS.get(name, name) for name in names - PLAIN_PACKAGES - {ROOT.name}}
    if "tiktoken" in imported:
        # Its vocabulary is read from there.
        imported.add("dashscope")
    assert imported <= set(versions.PACKAGES[stage])
    assert all(versions.package_version(p) != "absent" for p in versions.PACKAGES[stage])


@pytest.mark.parametrize("name", [*strategies()])
def test_a_strategy_s_version_covers_what_it_imports_and_no_other_strategy(name: str) -> None:
    homes = versions._homes(tuple(strategies()))
    home = str(homes[name].relative_to(ROOT))
    without = {*MACHINERY, "strategies/registry.py"}
    imported = set(closure((home, "dataset/stages/steps.py"), without))
    covered = {*versions.strategy_files(name), *declared(versions.GROUPS["steps"])}
    assert imported <= covered
    others = {str(path.relative_to(ROOT)) for path in homes.values()} - imported
    assert others & covered == set()


def test_laws_of_algebra_are_the_same_whichever_strategy_is_asked() -> None:
    """Reasoning looks laws up by name over all strategies, so versions need not have them all."""
    laws: dict[str, set[tuple[object, ...]]] = {}
    for one in strategies().values():
        if isinstance(one, AlgebraicStrategy):
            for rule in one.rules:
                laws.setdefault(rule.name, set()).add((rule.law, *rule.forms))
            if one.loop_law:
                forms = (one.loop_law.product, one.loop_law.quotient)
                laws.setdefault(one.loop_law.name, set()).add(forms)
    assert len(laws) > 20
    assert {name: texts for name, texts in laws.items() if len(texts) > 1} == {}


def test_what_is_imported_is_read_off_the_text() -> None:
    lazy = closure(["dataset/stages/leir.py"])
    assert {"dataset/translations.py", "verify/screen.py"} <= set(lazy)
    for_types = closure(["dataset/stages/judging.py"])
    assert "verify/record.py" in for_types
    assert "verify/pool.py" not in for_types
    by_name = closure(["dataset/user_bench.py"])
    assert {"dataset/user_tasks.py", "users/zygote.py"} <= set(by_name)
    assert "tiktoken" in closure(["dataset/programs.py"])["dataset/tokens.py"]


def test_a_strategy_depends_on_those_that_it_imports() -> None:
    homes = versions._homes(tuple(strategies()))
    split, factor = (
        homes[name] for name in ("tensor_split_to_decouple_operators", "reduction_factorization")
    )
    every = set(homes.values())
    assert versions._used(split, every) == {split, factor}
    assert versions._used(factor, every) == {factor}
