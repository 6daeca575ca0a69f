"""Which code made a row: digests of source files and of the packages that take part.

A stage computes again what other code made. The digest of a group of modules changes whenever
one of their files does, so nobody has to remember to raise a number; rows that come out the same
keep their ids, and nothing after them is computed again.
"""

import inspect
import platform
import re
import subprocess
from functools import cache
from hashlib import blake2b
from importlib import metadata
from pathlib import Path

from steptp_dagster.dataset.ids import digest
from steptp_dagster.strategies.registry import strategies

ROOT = Path(__file__).resolve().parent.parent

#: What ids and digests are, and what makes programs of rows.
IDS: tuple[str, ...] = ("dataset/ids.py",)
READ: tuple[str, ...] = (*IDS, "dataset/signed.py")
#: What makes rows of programs: their measures, token counts among them.
WRITTEN: tuple[str, ...] = (*IDS, "dataset/programs.py", "dataset/tokens.py")
#: What decides the inlined form of a source.
INLINING: tuple[str, ...] = (
    "dataset/inlined.py",
    "strategies/base.py",
    "strategies/definitions.py",
    "strategies/evidence.py",
    "strategies/facts.py",
    "strategies/graph/compute_inline.py",
    "strategies/inlining.py",
    "strategies/legality.py",
    "strategies/reading.py",
    "strategies/rewrite.py",
    "strategies/soundness.py",
    "strategies/step.py",
)
#: What translates, puts a source into its form, and gathers what speaks for the translation.
TRANSLATING: tuple[str, ...] = (
    *("leir", "lowering", "translate", "verify"),
    "dataset/evidence.py",
    "dataset/fidelity.py",
    "dataset/forms.py",
    "dataset/injectors.py",
    "dataset/perturbation.py",
    *INLINING,
)
#: What runs users' files: all of it is in the process that it runs in.
USERS: tuple[str, ...] = (
    *TRANSLATING,
    *("users", "dataset/user_bench.py", "dataset/user_tasks.py", "dataset/stages/user_sources.py"),
)
#: What decides verdicts.
VERDICTS: tuple[str, ...] = (
    *("leir", "lowering", "verify"),
    *READ,
    "dataset/acceptance.py",
    "dataset/siblings.py",
    "dataset/small_chains.py",
    "dataset/structure.py",
    "dataset/stages/judging.py",
)
#: Stage -> what of the library decides its rows (folders recursively, single files by name).
#: ``tests/dataset/test_versions.py`` compares them with what the stages import.
GROUPS: dict[str, tuple[str, ...]] = {
    "sources": ("sources", *IDS, "dataset/stages/sources.py"),
    "leir": (
        "sources",
        *TRANSLATING,
        *WRITTEN,
        "dataset/small_shapes.py",
        "dataset/structure.py",
        "dataset/stages/leir.py",
        "dataset/stages/sources.py",
        "dataset/stages/translated.py",
        "dataset/translations.py",
    ),
    "user_sources": (*USERS, *IDS),
    "user_leir": (
        *USERS,
        *WRITTEN,
        *("dataset/stages/translated.py", "dataset/stages/user_leir.py"),
    ),
    "steps": ("leir", "reasoning", *READ, *WRITTEN, "dataset/stages/steps.py"),
    "verdicts": (*VERDICTS, "dataset/stages/verdicts.py"),
    "trajectories": (*VERDICTS, "dataset/stages/trajectories.py"),
    "zoo": ("leir", "lowering", "verify", *IDS, "dataset/stages/zoo.py", "dataset/zoo_score.py"),
    "renderings": (
        *("leir", "lowering", *READ),
        *("dataset/renderings.py", "dataset/stages/renderings.py"),
    ),
    "negatives": (*VERDICTS, "dataset/stages/negatives.py"),
    "tokens": (
        *("leir", "lowering", *IDS, "dataset/tokens.py", "dataset/token_counts.py"),
        "dataset/stages/tokens.py",
    ),
    "records": ("dataset", "leir", "verify/__init__.py", "verify/reasons.py"),
}
_TOKENIZER: tuple[str, ...] = ("dashscope", "tiktoken")
_LEIR: tuple[str, ...] = ("islpy", "numpy")
_TVM: tuple[str, ...] = (*_LEIR, "apache-tvm", "apache-tvm-ffi", "ml_dtypes")
#: Stage -> installed packages whose release takes part in its rows.
PACKAGES: dict[str, tuple[str, ...]] = {
    "sources": ("torch",),
    "leir": ("torch", *_TVM, *_TOKENIZER),
    "user_sources": ("torch", *_TVM),
    "user_leir": ("torch", *_TVM, *_TOKENIZER),
    "steps": (*_LEIR, *_TOKENIZER),
    "verdicts": _TVM,
    "trajectories": _TVM,
    "zoo": _TVM,
    "renderings": _TVM,
    "negatives": _TVM,
    "tokens": (*_TVM, *_TOKENIZER),
    "records": (*_LEIR, *_TOKENIZER),
}


#: Import lines of modules of the library.
_IMPORTS = re.compile(
    r"^\s*(?:from (steptp_dagster[\w.]*) import (\([^)]*\)|.*)|import (steptp_dagster[\w.]*))",
    re.MULTILINE,
)
_NAMES = re.compile(r"\w+")


@cache
def files_digest(paths: tuple[str, ...]) -> str:
    """Digest of all Python files below ``paths``, relative to the library, names included."""
    total = blake2b(digest_size=16)
    for file in sorted({f for path in paths for f in _files(ROOT / path)}):
        total.update(str(file.relative_to(ROOT)).encode() + b"\0" + _content(file) + b"\0")
    return total.hexdigest()


@cache
def _content(file: Path) -> bytes:
    """Each file is read once a process: digests of all strategies share most of theirs."""
    return file.read_bytes()


@cache
def _homes(names: tuple[str, ...]) -> dict[str, Path]:
    """The file that defines each strategy; plug-ins may change which there are."""
    known = strategies()
    return {name: Path(inspect.getfile(type(known[name]))).resolve() for name in names}


@cache
def _strategy_files() -> tuple[tuple[Path, str], ...]:
    """All Python files of the strategies' folder: resolved, and relative to the library."""
    files = _files(ROOT / "strategies")
    return tuple((f.resolve(), f.relative_to(ROOT).as_posix()) for f in files)


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [f for f in path.rglob("*") if f.suffix == ".py"]


def package_version(name: str) -> str:
    """The installed release of a package, or ``absent``; the package is not imported."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def releases() -> dict[str, str]:
    """Releases of Python and of everything installed that can change a row."""
    names = sorted({name for group in PACKAGES.values() for name in group})
    known = (*names, "dagster", "duckdb", "nvidia-cuda-nvrtc", "polars")
    return {"python": platform.python_version(), **{name: package_version(name) for name in known}}


def revision() -> str:
    """The git commit of the project's files, ``+`` where they differ from it; or empty."""
    told = []
    for question in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]):
        command = ["git", "-C", str(ROOT), *question]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return ""
        told.append(done.stdout.strip())
    return told[0] + ("+" if told[1] else "")


@cache
def code_version(stage: str) -> str:
    """The version of everything that decides a stage's rows, 32 hexadecimal digits."""
    packages = [[name, package_version(name)] for name in PACKAGES[stage]]
    return digest("code", stage, files_digest(GROUPS[stage]), packages)


@cache
def strategy_version(name: str) -> str:
    """The version of everything that decides one strategy's steps."""
    known, home = strategies(), _homes(tuple(strategies()))[name]
    parts = [files_digest(strategy_files(name)), code_version("steps")]
    if not home.is_relative_to(ROOT):
        parts.append(_plugin_digest(home))
    return digest("strategy", name, known[name].version, *parts)


def strategy_files(name: str) -> tuple[str, ...]:
    """The files of the strategies' folder that take part in one strategy's steps, sorted.

    All but those that define *other* strategies, so a change of one strategy concerns its own
    steps (and those of strategies that import it) only, a change of a shared helper all of them.
    """
    homes = _homes(tuple(strategies()))
    others = set(homes.values()) - _used(homes[name], set(homes.values()))
    return tuple(sorted(path for file, path in _strategy_files() if file not in others))


def _used(home: Path, homes: set[Path]) -> set[Path]:
    """The files of strategies whose code a file imports, directly or not, and the file itself."""
    used, open_files = {home}, [home]
    if not home.is_relative_to(ROOT):
        open_files += _plugin_files(home)
    while open_files:
        more = _imported(open_files.pop()) - used
        used |= more
        open_files += more
    return used & homes


@cache
def _imported(file: Path) -> frozenset[Path]:
    """The files of the strategies' folder that a file imports, wherever in it."""
    known = _strategy_modules()
    found = set()
    for first, names, second in _IMPORTS.findall(_content(file).decode()):
        module = first or second
        places = (module, *(f"{module}.{name}" for name in _NAMES.findall(names)))
        found |= {known[place] for place in places if place in known}
    return frozenset(found)


@cache
def _strategy_modules() -> dict[str, Path]:
    """The files of the strategies' folder by dotted name."""
    return {
        f"{ROOT.name}.{path.removesuffix('.py').replace('/', '.')}": file
        for file, path in _strategy_files()
    }


def _plugin_digest(home: Path) -> str:
    """Digest of a plug-in: its file, or all Python files of the package that the file is in."""
    total = blake2b(digest_size=16)
    for file in _plugin_files(home):
        total.update(str(file.relative_to(_top(home).parent)).encode() + b"\0")
        total.update(file.read_bytes() + b"\0")
    return total.hexdigest()


def _plugin_files(home: Path) -> list[Path]:
    return sorted(_files(_top(home)))


def _top(home: Path) -> Path:
    """The file of a plug-in, or the folder of the outermost package that it is in."""
    while (home.parent / "__init__.py").exists():
        home = home.parent
    return home


@cache
def steps_version() -> str:
    """The version of the code of all strategies together."""
    return digest("strategies", *(strategy_version(name) for name in strategies()))
