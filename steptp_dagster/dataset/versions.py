"""Which code made a row: digests of source files and of the packages that take part.

A stage computes again what other code made. The digest of a group of modules changes whenever
one of their files does, so nobody has to remember to raise a number; rows that come out the same
keep their ids, and nothing after them is computed again.
"""

import inspect
import platform
import subprocess
from functools import cache
from hashlib import blake2b
from importlib import metadata
from pathlib import Path

from steptp_dagster.dataset.ids import digest
from steptp_dagster.strategies.registry import strategies

ROOT = Path(__file__).resolve().parent.parent

#: What decides the inlined form of a source.
INLINING: tuple[str, ...] = (
    "strategies/definitions.py",
    "strategies/graph/compute_inline.py",
    "strategies/inlining.py",
    "strategies/rewrite.py",
)
#: What decides verdicts.
VERDICTS: tuple[str, ...] = (
    "leir",
    "lowering",
    "verify",
    "dataset/siblings.py",
    "dataset/small_chains.py",
    "dataset/stages/verdicts.py",
)
#: Stage -> what of the library decides its rows (folders recursively, single files by name).
GROUPS: dict[str, tuple[str, ...]] = {
    "sources": ("sources", "dataset/stages/sources.py"),
    "leir": (
        "leir",
        "lowering",
        "sources",
        "translate",
        "verify",
        "dataset/evidence.py",
        "dataset/fidelity.py",
        "dataset/forms.py",
        "dataset/injectors.py",
        "dataset/inlined.py",
        "dataset/perturbation.py",
        "dataset/programs.py",
        "dataset/siblings.py",
        "dataset/stages/leir.py",
        "dataset/translations.py",
        *INLINING,
    ),
    "user_sources": ("leir", "translate", "users", "dataset/stages/user_sources.py"),
    "user_leir": (
        "leir",
        "lowering",
        "translate",
        "users",
        "verify",
        "dataset/evidence.py",
        "dataset/fidelity.py",
        "dataset/forms.py",
        "dataset/injectors.py",
        "dataset/inlined.py",
        "dataset/perturbation.py",
        "dataset/programs.py",
        "dataset/stages/user_leir.py",
        "dataset/user_tasks.py",
        *INLINING,
    ),
    "steps": ("leir", "reasoning", "dataset/programs.py", "dataset/stages/steps.py"),
    "verdicts": VERDICTS,
    "trajectories": (*VERDICTS, "dataset/acceptance.py", "dataset/stages/trajectories.py"),
    "zoo": (
        *("leir", "lowering", "verify", "dataset/stages/zoo.py"),
        *("dataset/zoo_programs.py", "dataset/zoo_score.py"),
    ),
    "renderings": ("leir", "lowering", "dataset/programs.py", "dataset/renderings.py"),
    "negatives": (
        *VERDICTS,
        *("dataset/acceptance.py", "dataset/prompts.py", "dataset/stages/negatives.py"),
    ),
    "tokens": ("leir", "lowering", "dataset/tokens.py", "dataset/token_counts.py"),
    "records": ("dataset", "leir"),
}
#: Stage -> installed packages whose release takes part in its rows.
PACKAGES: dict[str, tuple[str, ...]] = {
    "sources": (),
    "leir": ("torch", "numpy", "apache-tvm"),
    "user_sources": ("torch", "numpy"),
    "user_leir": ("torch", "numpy", "apache-tvm"),
    "steps": (),
    "verdicts": ("apache-tvm", "numpy"),
    "trajectories": ("apache-tvm", "numpy"),
    "zoo": ("apache-tvm", "numpy"),
    "renderings": ("apache-tvm",),
    "negatives": ("apache-tvm", "numpy"),
    "tokens": ("apache-tvm", "dashscope", "tiktoken"),
    "records": ("tiktoken",),
}


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
    return tuple((f.resolve(), str(f.relative_to(ROOT))) for f in files)


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
    known = (*names, "dagster", "duckdb", "polars")
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
    """The version of everything that decides one strategy's steps.

    Of the strategies' folder it covers all but the files that define *other* strategies, so a
    change of one strategy concerns its own steps (and those of strategies that import it) only, a
    change of a shared helper all of them.
    """
    known = strategies()
    homes = _homes(tuple(known))
    home = homes[name]
    others = set(homes.values()) - _used(home, set(homes.values()))
    paths = tuple(sorted(path for file, path in _strategy_files() if file not in others))
    parts = [files_digest(paths), code_version("steps")]
    if not home.is_relative_to(ROOT):
        parts.append(_plugin_digest(home))
    return digest("strategy", name, known[name].version, *parts)


def _used(home: Path, homes: set[Path]) -> set[Path]:
    """The files of strategies whose code a file imports, directly or not, and the file itself."""
    used, open_files = {home}, [home]
    while open_files:
        text = open_files.pop().read_text(encoding="utf-8")
        for other in homes - used:
            if other.is_relative_to(ROOT):
                module = ".".join((ROOT.name, *other.relative_to(ROOT).with_suffix("").parts))
                if f"from {module} import" in text:
                    used.add(other)
                    open_files.append(other)
    return used


def _plugin_digest(home: Path) -> str:
    """Digest of a plug-in: its file, or all Python files of the package that the file is in."""
    top = home
    while (top.parent / "__init__.py").exists():
        top = top.parent
    total = blake2b(digest_size=16)
    for file in sorted(_files(top)):
        total.update(str(file.relative_to(top.parent)).encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


@cache
def steps_version() -> str:
    """The version of the code of all strategies together."""
    return digest("strategies", *(strategy_version(name) for name in strategies()))
