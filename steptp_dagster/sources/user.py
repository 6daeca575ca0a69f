"""Programs that users bring: one Python file, one module with example inputs.

Two forms are read:

* a function ``program()`` that returns ``(module, inputs)``;
* the form of a well-known kernel benchmark: a class ``Model``, a function ``get_inputs()``, and
  optionally ``get_init_inputs()`` with the arguments of the class.

The file is executed in this process, so load only files you trust. Modules are put in evaluation
mode, since a program with random or state-changing operators has no translation.
"""

import contextlib
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class UserProgram:
    """A module with example inputs; ``code`` is the text of its file, ``name`` the file's stem."""

    name: str
    module: "nn.Module"
    inputs: "tuple[Tensor, ...]"
    code: str


@dataclass(frozen=True, slots=True)
class UserRefusal:
    """Why a file gives no program.

    ``reason`` is one of ``unreadable``, ``syntax-error``, ``raised``, ``no-program``,
    ``not-a-module``, ``bad-inputs``; ``location`` is ``file:line`` where one is known.
    """

    reason: str
    message: str
    location: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.location}: {self.message}" if self.location else self.message


class _Refused(Exception):
    def __init__(self, reason: str, message: str, location: str) -> None:
        super().__init__(message)
        self.refusal = UserRefusal(reason, message, location)


def load(path: Path) -> UserProgram | UserRefusal:
    """The program of a file, or why there is none. What the file prints goes to stderr."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return _load(path)
    except _Refused as refused:
        return refused.refusal


def _load(path: Path) -> UserProgram:
    try:
        code = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _Refused("unreadable", f"cannot be read: {error}", str(path)) from None
    try:
        compile(code, str(path), "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}:{line}" if line else str(path)
        raise _Refused("syntax-error", f"no valid Python: {error}", where) from None
    content = _executed(path)
    if callable(getattr(content, "program", None)):
        result = _called(path, "program()", content.program)
        if not isinstance(result, tuple) or len(result) != 2:
            message = "program() must return (module, inputs)"
            raise _Refused("no-program", message, str(path))
        module, inputs = result
    else:
        module, inputs = _benchmark_form(path, content)
    return UserProgram(path.stem, *_checked(path, module, inputs), code)


def _executed(path: Path) -> ModuleType:
    """The file as a Python module of a name of its own, so that it shadows no other."""
    digest = hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()
    name = f"_steptp_user_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _Refused("unreadable", "no Python file; its name ends in .py", str(path))
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader
    sys.modules[name] = module
    try:
        _called(path, "the file", lambda: loader.exec_module(module))
    except _Refused:
        del sys.modules[name]
        raise
    return module


def _benchmark_form(path: Path, content: ModuleType) -> tuple[Any, Any]:
    missing = [n for n in ("Model", "get_inputs") if not callable(getattr(content, n, None))]
    if missing:
        message = (
            f"defines no {' and no '.join(missing)}; a program is `def program()` returning "
            "(module, inputs), or a class `Model` with `get_inputs()`"
        )
        raise _Refused("no-program", message, str(path))
    arguments: Any = ()
    if callable(getattr(content, "get_init_inputs", None)):
        arguments = _called(path, "get_init_inputs()", content.get_init_inputs)
    if isinstance(arguments, Mapping):
        module = _called(path, "Model(...)", lambda: content.Model(**arguments))
    else:
        given = tuple(arguments) if isinstance(arguments, Sequence) else (arguments,)
        module = _called(path, "Model(...)", lambda: content.Model(*given))
    return module, _called(path, "get_inputs()", content.get_inputs)


def _called(path: Path, what: str, function: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Call the user's code; whatever it raises becomes a refusal with the line of the file."""
    try:
        return function()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - users' code raises anything
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if f.filename == str(path)]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        message = f"{what} raised {type(error).__name__}: {error}"
        raise _Refused("raised", message, where) from None


def _checked(path: Path, module: object, inputs: object) -> "tuple[nn.Module, tuple[Tensor, ...]]":
    import torch

    if not isinstance(module, torch.nn.Module):
        message = f"expected an instance of torch.nn.Module, found {type(module).__name__}"
        raise _Refused("not-a-module", message, str(path))
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if not isinstance(inputs, list | tuple):
        message = f"inputs must be a list or tuple of tensors, found {type(inputs).__name__}"
        raise _Refused("bad-inputs", message, str(path))
    for position, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor):
            message = f"input {position} is a {type(value).__name__}; only tensors are translated"
            raise _Refused("bad-inputs", message, str(path))
    return module.eval(), tuple(inputs)
