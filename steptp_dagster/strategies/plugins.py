"""Users' own strategies: from installed packages and from a folder.

* A package names its strategies as entry points of the group ``steptp.strategies``; each is a
  class derived from ``Strategy``, or a module, whose own ``Strategy`` classes are meant.
* The environment variable ``STEPTP_STRATEGIES`` names folders (separated like ``PATH``); each of
  their ``*.py`` files whose name does not start with ``_`` is loaded as a module.

Plug-ins run in this process: install what you trust. One that is broken is one ``PluginFault``
with file and line; it hides no other strategy.
"""

import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final, get_args

from steptp_dagster.strategies import soundness
from steptp_dagster.strategies.base import Level, Strategy

ENTRY_POINTS: Final = "steptp.strategies"
VARIABLE: Final = "STEPTP_STRATEGIES"

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PRECONDITION: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
#: Origins of the strategies that come with the library.
_TAKEN: Final = frozenset({"published", "steptp"})


@dataclass(frozen=True, slots=True)
class PluginFault:
    """Why a plug-in gives no strategy: which one, where (``file:line``), and what is wrong."""

    plugin: str
    location: str
    message: str

    def __str__(self) -> str:
        """One line for people."""
        return f"plug-in {self.plugin} ({self.location}): {self.message}"


@dataclass(frozen=True, slots=True)
class Plugins:
    """The classes of all plug-ins, in a fixed order, and the faults of the broken ones."""

    classes: tuple[type[Strategy], ...]
    faults: tuple[PluginFault, ...]


class _Broken(Exception):
    def __init__(self, location: str, message: str) -> None:
        super().__init__(message)
        self.location = location


def load(known: frozenset[str]) -> Plugins:
    """All plug-ins, each loaded once in a process; ``known`` are the names that are taken.

    Packages come first, by distribution and entry point, then folders in the order given and
    their files by name. Of two plug-ins with one name the later is a fault.
    """
    return _load(known, os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=8)
def _load(known: frozenset[str], folders: str) -> Plugins:
    taken = set(known)
    classes: list[type[Strategy]] = []
    faults: list[PluginFault] = []
    for plugin, location, module in (*_packages(), *_files(folders)):
        try:
            found = _classes(module())
            if not found:
                raise _Broken(location, "defines no class that derives from Strategy")
            for own in found:
                _check(own, plugin, taken)
            for own in found:
                if "origin" not in own.__dict__:
                    own.origin = plugin
            soundness.add(*(rule for own in found for rule in own.own_rules))
        except _Broken as broken:
            faults.append(PluginFault(plugin, broken.location, str(broken)))
        except soundness.RuleTaken as error:
            faults.append(PluginFault(plugin, location, str(error)))
        else:
            classes += found
            taken.update(own.name for own in found)
    return Plugins(tuple(classes), tuple(faults))


_Source = tuple[str, str, "_Loader"]


@dataclass(frozen=True, slots=True)
class _Loader:
    """Imports a plug-in when called. Raises _Broken with the line of the plug-in's own file."""

    entry: metadata.EntryPoint | None
    file: Path | None

    def __call__(self) -> object:
        try:
            return self.entry.load() if self.entry is not None else _module(self.file or Path())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - users' code raises anything
            where = str(self.file or (self.entry.value if self.entry else ""))
            raise _Broken(_line(error, where), f"{type(error).__name__}: {error}") from None


def _packages() -> Iterator[_Source]:
    found = [e for e in metadata.entry_points(group=ENTRY_POINTS) if e.dist is not None]
    for entry in sorted(found, key=lambda e: (e.dist.name if e.dist else "", e.name)):
        name = entry.dist.name if entry.dist else entry.name
        yield name, entry.value, _Loader(entry, None)


def _files(folders: str) -> Iterator[_Source]:
    for folder in filter(None, folders.split(os.pathsep)):
        path = Path(folder)
        if not path.is_dir():
            yield folder, VARIABLE, _Loader(None, path)
            continue
        for file in sorted(path.glob("*.py")):
            if not file.name.startswith("_"):
                yield file.stem, str(file), _Loader(None, file)


def _module(file: Path) -> ModuleType:
    """The file as a module of a name of its own, so that it shadows nothing."""
    if not file.is_file():
        raise NotADirectoryError(f"{VARIABLE} names no folder: {file}")
    name = f"_steptp_plugin_{blake2b(str(file.resolve()).encode(), digest_size=8).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python file: {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _line(error: BaseException, file: str) -> str:
    """``file:line`` of the innermost frame in the plug-in's file, or of its syntax error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{file}:{lines[-1]}" if lines else file


def _classes(loaded: object) -> tuple[type[Strategy], ...]:
    """The class itself, or the strategy classes that a module defines, by name."""
    if not isinstance(loaded, ModuleType):
        if not (inspect.isclass(loaded) and issubclass(loaded, Strategy)):
            raise _Broken(repr(loaded), "is no class that derives from Strategy, and no module")
        return (loaded,)
    own = [
        value
        for _, value in sorted(vars(loaded).items())
        if inspect.isclass(value)
        and issubclass(value, Strategy)
        and value.__module__ == loaded.__name__
        and not value.__name__.startswith("_")
    ]
    return tuple(own)


def _check(own: type[Strategy], plugin: str, taken: set[str]) -> None:
    """Refuse a class that the registry, the ids or the tables could not hold."""
    where = f"{inspect.getsourcefile(own)}:{inspect.getsourcelines(own)[1]}"

    def require(holds: bool, message: str) -> None:
        if not holds:
            raise _Broken(where, f"{own.__name__}: {message}")

    abstract = sorted(own.__abstractmethods__)
    require(not abstract, f"lacks {', '.join(abstract)}")
    for field in ("name", "level", "version", "summary"):
        text = getattr(own, field, None)
        require(isinstance(text, str) and bool(text), f"{field} must be a text")
    require(_NAME.fullmatch(own.name) is not None, f"name {own.name!r} is not snake_case")
    require(own.name not in taken, f"the name {own.name} is taken by another strategy")
    levels = get_args(Level)
    require(own.level in levels, f"level must be one of {', '.join(levels)}, not {own.level!r}")
    require(own.summary.endswith("."), "summary must be a sentence that ends with a full stop")
    odd = [p for p in own.preconditions if _PRECONDITION.fullmatch(p) is None]
    require(not odd, f"preconditions are kebab-case names, not {', '.join(map(repr, odd))}")
    doubled = len(set(own.preconditions)) < len(own.preconditions)
    require(not doubled, "a precondition is named twice")
    require(bool(own.preconditions), "names no precondition; no step is legal everywhere")
    declared = own.__dict__.get("origin", plugin)
    require(declared not in _TAKEN, f"origin {declared!r} is the library's own")
