"""Plain data (from YAML) into frozen dataclasses, with errors that say where and what."""

import dataclasses
import types
from collections.abc import Mapping
from reprlib import Repr
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

#: How values are shown: a few lines of YAML can stand for gigabytes.
_SHORT: Final = Repr()
_SHORT.maxlevel = 2
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


class BadMapping(ValueError):
    """Data that does not fit: the message names the place, what is there and what is wanted."""


def build(cls: type[T], data: object, where: str = "") -> T:
    """Make ``cls`` (a dataclass) from nested mappings and lists; unknown keys are errors.

    Supports nested dataclasses, ``tuple[X, ...]``, ``dict[str, X]``, ``X | None``, literals and
    scalars. Raises BadMapping, also for a ValueError of the dataclass's own checks.
    """
    if not isinstance(data, Mapping):
        raise BadMapping(f"{where or 'top level'}: expected a mapping, found {_found(data)}")
    hints = get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(str(k) for k in data if k not in fields)
    if unknown:
        raise BadMapping(
            f"{_at(where, unknown[0])}: unknown setting; known here: {', '.join(fields)}"
        )
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _value(hints[name], data[name], _at(where, name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise BadMapping(f"{_at(where, name)}: missing")
    try:
        return cls(**values)
    except ValueError as error:
        raise BadMapping(f"{where or 'top level'}: {error}") from error


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _found(value: object) -> str:
    return "nothing" if value is None else f"{_SHORT.repr(value)} ({type(value).__name__})"


def _value(hint: Any, data: object, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if data is None and type(None) in arguments:
            return None
        (inner,) = (a for a in arguments if a is not type(None))
        return _value(inner, data, where)
    if origin is Literal:
        if data not in arguments:
            names = ", ".join(map(repr, arguments))
            raise BadMapping(f"{where}: expected one of {names}, found {_found(data)}")
        return data
    if origin is tuple:
        if not isinstance(data, list | tuple):
            raise BadMapping(f"{where}: expected a list, found {_found(data)}")
        return tuple(_value(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    if origin is dict:
        if not isinstance(data, Mapping):
            raise BadMapping(f"{where}: expected a mapping, found {_found(data)}")
        return {str(k): _value(arguments[1], v, _at(where, str(k))) for k, v in data.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return build(hint, data, where)
    return _scalar(hint, data, where)


def _scalar(hint: Any, data: object, where: str) -> Any:
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, hint) or (isinstance(data, bool) and hint is not bool):
        words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise BadMapping(f"{where}: expected {words[hint]}, found {_found(data)}")
    return data
