"""The forms in which a file gives programs, executed: only ever in a process of its own.

1. ``def program()``, which returns ``(module, inputs)`` or ``(module, inputs, keyword_inputs)``.
2. The form of well-known kernel benchmarks: a class ``Model``, a function ``get_inputs()`` and,
   where the class takes arguments, ``get_init_inputs()``.
3. Classes with a static or class method ``example_inputs()``, and, where they take arguments,
   ``init_inputs()``.
4. ``PROGRAMS``, a dict from names to what ``program()`` returns, or to functions that return it;
   or a function ``programs()`` that returns such a dict.

A file may hold several programs. Where 1 and 2 are both there, 2 is not read.
"""

import inspect
import random
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from steptp_dagster.users.inputs import Example, example
from steptp_dagster.users.refusal import Refused

Shape = Mapping[str, int]

#: Name of the file's module while it is executed; no package is called so.
MODULE: Final = "_steptp_user_program"
#: What PyTorch says where it gets no memory.
_NO_MEMORY: Final = ("can't allocate memory", "not enough memory", "std::bad_alloc")


class OutOfMemory(Exception):
    """The memory limit was reached."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One program of a file: its name in the file (``""``: the main one) and its form.

    ``make`` gives the module and its inputs; names of the shape that the file's functions take
    are passed to them.
    """

    name: str
    form: str
    make: Callable[[Shape], Example]


@dataclass(frozen=True, slots=True)
class Executed:
    """A file that was executed: its place, name (as errors have it) and content.

    ``around_inputs`` is the context in which example inputs are made.
    """

    path: str
    label: str
    content: ModuleType
    around_inputs: Callable[[], AbstractContextManager[object]] = nullcontext

    def make_inputs(self, what: str, function: Callable[..., Any], shape: Shape) -> Any:  # noqa: ANN401
        """Call the function that gives nothing but example inputs, in the context for those."""
        with self.around_inputs():
            return _call(self, what, function, shape)

    def call(self, what: str, function: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Call the user's code; whatever it raises is refused with the line of the file."""
        return called(self.path, self.label, what, function)


def called(path: str, label: str, what: str, function: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Call users' code. Raises Refused for what it raises, OutOfMemory where memory ended."""
    try:
        return function()
    except (OutOfMemory, Refused):
        raise
    except BaseException as error:  # noqa: BLE001 - users' code raises anything, exits too
        if out_of_memory(error):
            raise OutOfMemory from None
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == path]
        where = f"{label}:{lines[-1]}" if lines else label
        message = f"{what} raised {type(error).__name__}: {' '.join(str(error).split())[:400]}"
        raise Refused("raised", message.rstrip(": "), where) from None


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory limit was reached."""
    return isinstance(error, MemoryError) or any(m in str(error) for m in _NO_MEMORY)


def execute(path: str, label: str, text: str, seed: int) -> Executed:
    """Execute a file's text as a module of its own, with random generators seeded."""
    try:
        code = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f"{label}:{line}" if line else label
        told = getattr(error, "msg", None) or str(error)
        raise Refused("syntax-error", f"no valid Python: {told}", where) from None
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    content = ModuleType(MODULE)
    content.__file__ = path
    sys.modules[MODULE] = content
    executed = Executed(path, label, content)
    executed.call("the file", lambda: exec(code, content.__dict__))
    return executed


def discover(file: Executed) -> dict[str, Declared]:
    """The programs of a file by name. Raises Refused where there is none."""
    content = file.content
    found: dict[str, Declared] = {}
    if callable(getattr(content, "program", None)):
        found[""] = Declared("", "program", lambda shape: _returned(file, "program()", shape))
    elif all(callable(getattr(content, n, None)) for n in ("Model", "get_inputs")):
        found[""] = Declared("", "benchmark", lambda shape: _benchmark(file, shape))
    for cls in _classes(content):
        if callable(getattr(cls, "example_inputs", None)):
            found[cls.__name__] = Declared(cls.__name__, "class", _of_class(file, cls))
    found |= _table(file)
    if not found:
        raise Refused("no-program", _missing(content), file.label)
    return found


def _missing(content: ModuleType) -> str:
    names = [cls.__name__ for cls in _classes(content)]
    if "Model" in names:
        return "has a class Model and no get_inputs()"
    if callable(getattr(content, "get_inputs", None)):
        return "has get_inputs() and no class Model"
    if names:
        return f"has no example inputs for {', '.join(names)}: no method example_inputs()"
    return "defines no program: neither program(), nor Model and get_inputs(), nor PROGRAMS"


def _classes(content: ModuleType) -> list[type[nn.Module]]:
    """Module classes that the file itself defines, in its order."""
    return [
        value
        for name, value in vars(content).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and value.__module__ == MODULE
        and value.__name__ == name
    ]


def _table(file: Executed) -> dict[str, Declared]:
    held = getattr(file.content, "PROGRAMS", None)
    if held is None and callable(getattr(file.content, "programs", None)):
        held = file.call("programs()", file.content.programs)
    if held is None:
        return {}
    if not isinstance(held, Mapping) or not all(isinstance(n, str) and n for n in held):
        message = "PROGRAMS (or what programs() returns) must be a dict with names as keys"
        raise Refused("no-program", message, file.label)
    return {name: Declared(name, "table", _of_table(file, name, held[name])) for name in held}


def _of_table(file: Executed, name: str, entry: object) -> Callable[[Shape], Example]:
    def make(shape: Shape) -> Example:
        what = f"PROGRAMS[{name!r}]"
        if callable(entry) and not isinstance(entry, nn.Module):
            return _unpacked(file, what, _call(file, what, entry, shape))
        return _unpacked(file, what, entry)

    return make


def _returned(file: Executed, what: str, shape: Shape) -> Example:
    return _unpacked(file, what, _call(file, what, file.content.program, shape))


def _unpacked(file: Executed, what: str, result: object) -> Example:
    if not isinstance(result, tuple | list) or len(result) not in (2, 3):
        message = f"{what} must give (module, inputs) or (module, inputs, keyword_inputs)"
        raise Refused("no-program", message, file.label)
    module, args, kwargs = (*result, {})[:3]
    return example(module, args, kwargs, file.label)


def _benchmark(file: Executed, shape: Shape) -> Example:
    content = file.content
    arguments: object = ()
    if callable(getattr(content, "get_init_inputs", None)):
        arguments = _call(file, "get_init_inputs()", content.get_init_inputs, shape)
    module = _instance(file, content.Model, arguments)
    inputs = file.make_inputs("get_inputs()", content.get_inputs, shape)
    return example(module, inputs, {}, file.label)


def _of_class(file: Executed, cls: type[nn.Module]) -> Callable[[Shape], Example]:
    def make(shape: Shape) -> Example:
        arguments: object = ()
        init_inputs = getattr(cls, "init_inputs", None)
        if callable(init_inputs):
            arguments = _call(file, f"{cls.__name__}.init_inputs()", init_inputs, shape)
        module = _instance(file, cls, arguments)
        what = f"{cls.__name__}.example_inputs()"
        inputs = file.make_inputs(what, cls.example_inputs, shape)  # type: ignore[attr-defined]
        return example(module, inputs, {}, file.label)

    return make


def _instance(file: Executed, cls: Callable[..., object], arguments: object) -> object:
    """``cls`` called with a dict of arguments by name, a list of arguments, one, or a pair.

    The pair is of positional arguments and arguments by name, where the class takes them so.
    """
    what = f"{getattr(cls, '__name__', 'Model')}(...)"
    if isinstance(arguments, Mapping):
        return file.call(what, lambda: cls(**arguments))
    given = tuple(arguments) if isinstance(arguments, list | tuple) else (arguments,)
    named: Mapping[str, object] = {}
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], Mapping):
        try:
            inspect.signature(cls).bind(*given[0], **given[1])
            given, named = tuple(given[0]), given[1]
        except (TypeError, ValueError):
            pass
    return file.call(what, lambda: cls(*given, **named))


def _call(file: Executed, what: str, function: Callable[..., Any], shape: Shape) -> Any:  # noqa: ANN401
    passed = {name: value for name, value in shape.items() if name in parameters(function)}
    return file.call(what, lambda: function(**passed))


def parameters(function: object) -> set[str]:
    """Names of the parameters of a function; empty where Python cannot tell."""
    try:
        return set(inspect.signature(function).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return set()


def accepted(file: Executed) -> set[str]:
    """Names that some function of the file which makes modules or inputs takes."""
    content = file.content
    functions = [
        getattr(content, name, None) for name in ("program", "get_inputs", "get_init_inputs")
    ]
    for cls in _classes(content):
        functions += [getattr(cls, name, None) for name in ("example_inputs", "init_inputs")]
    held = getattr(content, "PROGRAMS", None)
    functions += list(held.values()) if isinstance(held, Mapping) else []
    found: set[str] = set()
    for function in functions:
        if callable(function) and not isinstance(function, nn.Module):
            found |= parameters(function)
    return found
