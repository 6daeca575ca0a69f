"""Imports point one way (docs/architecture.md); checked on the syntax trees of all modules."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = "steptp_dagster"
ROOMS = (
    "leir",
    "sources",
    "translate",
    "strategies",
    "reasoning",
    "lowering",
    "verify",
    "users",
    "dataset",
    "cli",
)
#: Room -> rooms that it may import (beside itself and the modules at the top).
ALLOWED = {
    "leir": set(),
    "sources": set(),
    "translate": {"leir"},
    "strategies": {"leir"},
    "reasoning": {"leir", "strategies"},
    "lowering": {"leir"},
    "verify": {"leir", "lowering"},
    "users": {"leir", "translate", "lowering", "verify"},
    "dataset": {
        "leir",
        "sources",
        "translate",
        "strategies",
        "reasoning",
        "lowering",
        "verify",
        "users",
    },
    "cli": set(ROOMS) | {"definitions"},
    "definitions": {"paths"},
    "paths": set(),
    "preload": set(),
    "progress": set(),
}
#: Modules at the top of the library that any room may use.
COMMON = {"progress", "paths"}
#: Heavy packages -> rooms that may name them at all.
HEAVY = {
    "torch": {"sources", "translate", "users"},
    "tvm": {"lowering", "verify"},
    "dagster": {"definitions", "cli"},
    "duckdb": {"dataset", "cli", "preload"},
    "polars": {"dataset", "preload"},
    "pandera": {"dataset", "preload"},
}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path, *, top_only: bool = False) -> Iterator[str]:
    """Dotted names that a file imports, also those under ``if TYPE_CHECKING`` and in functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)


def room(path: Path) -> str:
    """The room of a library file: its folder, or its own name at the top."""
    parts = path.relative_to(ROOT / LIBRARY).parts
    return parts[0] if len(parts) > 1 else path.stem


def faults(path: Path) -> list[str]:
    here = room(path)
    found = []
    for name in imported(path):
        parts = name.split(".")
        if parts[0] in ("assets", "resources") and here != "definitions":
            found.append(name)
        if parts[0] == LIBRARY and len(parts) > 1 and here != "__init__":
            there = parts[1]
            if there != here and there not in ALLOWED[here] | COMMON:
                found.append(name)
        if parts[0] in HEAVY and here not in HEAVY[parts[0]]:
            found.append(name)
    return found


@pytest.mark.parametrize("folder", [*ROOMS])
def test_rooms_import_one_way(folder: str) -> None:
    files = modules(f"{LIBRARY}/{folder}")
    assert files
    found = {str(f.relative_to(ROOT)): wrong for f in files if (wrong := faults(f))}
    assert found == {}


def test_modules_at_the_top_import_one_way() -> None:
    files = sorted((ROOT / LIBRARY).glob("*.py"))
    assert {f.stem for f in files} == {"__init__", *ALLOWED} - set(ROOMS)
    assert {f.name: wrong for f in files if (wrong := faults(f))} == {}


def test_resources_do_not_import_assets() -> None:
    for path in modules("resources"):
        assert not [n for n in imported(path) if n.split(".")[0] == "assets"], path
        assert not [n for n in imported(path) if n.startswith(f"{LIBRARY}.cli")], path


def test_assets_do_not_import_the_command_line() -> None:
    for path in modules("assets"):
        names = [n for n in imported(path) if n.startswith((f"{LIBRARY}.cli", f"{LIBRARY}.def"))]
        assert names == [], path


def test_the_command_line_loads_heavy_things_when_it_needs_them() -> None:
    slow = ("dagster", "polars", "duckdb", "torch", "tvm", "pandera", f"{LIBRARY}.definitions")
    for path in modules(f"{LIBRARY}/cli"):
        names = [n for n in imported(path, top_only=True) if n.startswith(slow)]
        assert names == [], path


def test_the_checks_find_what_they_look_for(tmp_path: Path) -> None:
    bad = tmp_path / "x.py"
    bad.write_text("import torch\ndef f():\n    from steptp_dagster.verify import verdict\n")
    assert list(imported(bad)) == ["torch", "steptp_dagster.verify.verdict"]
    assert list(imported(bad, top_only=True)) == ["torch"]
