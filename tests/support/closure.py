"""What a module of the library imports, directly or not: read off the syntax trees."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent / "steptp_dagster"


@dataclass(frozen=True, slots=True)
class Imports:
    """Files of the library, and names of other top-level packages, that one file imports."""

    files: frozenset[Path]
    packages: frozenset[str]


@cache
def imports_of(file: Path) -> Imports:
    """Also inside functions, and modules named in a string (``python -m``); not for types only."""
    files, packages = set(), set()
    for name in _names(ast.parse(file.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] != ROOT.name:
            packages.add(parts[0])
        elif (found := _file(parts)) is not None:
            files.add(found)
    return Imports(frozenset(files), frozenset(packages))


def _names(tree: ast.AST) -> Iterator[str]:
    """Dotted names that may be modules."""
    match tree:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            yield module
            if module.split(".")[0] == ROOT.name:
                yield from (f"{module}.{alias.name}" for alias in names)
        case ast.Constant(value=str(text)) if text.startswith(f"{ROOT.name}."):
            yield text
    for child in ast.iter_child_nodes(tree):
        yield from _names(child)


def _file(parts: list[str]) -> Path | None:
    place = ROOT.parent.joinpath(*parts)
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def closure(starts: Iterable[str], without: Collection[str] = ()) -> Mapping[str, frozenset[str]]:
    """What is imported from the ``starts`` on: files relative to the library, their packages.

    Files ``without`` are not entered, nor counted.
    """
    found: dict[str, frozenset[str]] = {}
    open_files = [ROOT / name for name in starts]
    while open_files:
        file = open_files.pop()
        name = str(file.relative_to(ROOT))
        if name not in found and name not in without:
            imports = imports_of(file)
            found[name] = imports.packages
            open_files += imports.files
    return found
