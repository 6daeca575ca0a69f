"""Cubins kept on disk, so that another build of the same kernels needs no compiler.

A file ``KEY.kernel`` tells what a kernel takes and which ``DIGEST.cubin`` it is in, several kernels
in one. The key is made of the kernel's text, the prologue, the architecture, whether
multiply-add may be fused, and NVRTC's release; file names are hashes alone. Files are written aside
and moved into place, so that processes may share a folder and die at any time; one that does not
hold what it held when it was written counts as absent. Errors of the compiler are not kept.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as release
from json import dumps, loads
from pathlib import Path
from typing import Final

from steptp_dagster.lowering.cuda.nvrtc import Usage, version
from steptp_dagster.lowering.cuda.prologue import PROLOGUE

#: Bytes of a folder; what is older goes when a process begins to use it.
MOST_BYTES: Final = 512 * 2**20
_folder: list[Path] = []


def use(folder: Path | None) -> None:
    """Keep cubins in a folder from now on, made with the first of them, or nowhere."""
    _folder[:] = [] if folder is None else [folder]
    if folder is not None and folder.is_dir():
        with suppress(OSError):
            _trim(folder)


def found(entry: str, architecture: str, *, contract: bool) -> tuple[bytes, Usage] | None:
    """The cubin with a kernel and what the kernel takes. ``entry`` is named after its text."""
    if not _folder:
        return None
    try:
        text, _, seal = _path(entry, architecture, contract=contract).read_text().partition("\n")
        if _digest(text.encode()) != seal:
            return None
        told = loads(text)
        code = (_folder[0] / f"{told['code']}.cubin").read_bytes()
        if _digest(code) != told["code"]:
            return None
        return code, Usage(**told["usage"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(code: bytes, usages: Mapping[str, Usage], architecture: str, *, contract: bool) -> None:
    """Keep a cubin with its kernels by entry. A full or read-only disk costs time only."""
    if not _folder:
        return
    name = _digest(code)
    try:
        _folder[0].mkdir(parents=True, exist_ok=True)
        _write(_folder[0] / f"{name}.cubin", code)
        for entry, usage in usages.items():
            told = dumps({"code": name, "usage": asdict(usage)})
            sealed = f"{told}\n{_digest(told.encode())}"
            _write(_path(entry, architecture, contract=contract), sealed.encode())
    except OSError:
        return


def _path(entry: str, architecture: str, *, contract: bool) -> Path:
    try:
        compiler = release("nvidia-cuda-nvrtc")
    except PackageNotFoundError:  # a toolkit of the system's
        compiler = version()
    parts = (entry, PROLOGUE, architecture, str(contract), compiler)
    name = _digest("\0".join(parts).encode())
    return _folder[0] / f"{name}.kernel"


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _write(path: Path, content: bytes) -> None:
    aside = path.with_suffix(f".{os.getpid()}")
    try:
        aside.write_bytes(content)
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def _trim(folder: Path) -> None:
    """Remove the oldest files above the bound, and what a killed process left behind."""
    sizes = []
    for path in folder.iterdir():
        try:
            told = path.stat()
        except OSError:  # another process removed it
            continue
        if not path.is_file():
            continue
        sizes.append((told.st_mtime, path.name, told.st_size))
    total = sum(size for _, _, size in sizes)
    for _, name, size in sorted(sizes):
        if total <= MOST_BYTES:
            return
        (folder / name).unlink(missing_ok=True)
        total -= size
