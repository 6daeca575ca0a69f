"""Frozen dataclasses that are quickly made.

Trees are made of thousands of small nodes in each step. The ``__init__`` that ``dataclass`` writes
for a frozen class asks ``object.__setattr__`` to find each field by its name; one that stores
through the descriptors of the slots takes half the time.
"""

from dataclasses import MISSING, fields
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


def quickly_made(cls: _Class) -> _Class:
    """Decorates a frozen dataclass with slots: the same ``__init__``, quicker.

    Signature, defaults and ``__post_init__`` are those of the dataclass, which stays frozen.
    Raises TypeError for fields that are made by a factory, are not passed to ``__init__``, are
    inherited, or have no slot.
    """
    names: dict[str, object] = {}
    places: list[str] = ["self"]
    keywords: list[str] = []
    lines: list[str] = []
    for field in fields(cls):
        if field.default_factory is not MISSING or not field.init:
            raise TypeError(f"{cls.__name__}.{field.name} is not simply passed")
        if field.name not in cls.__dict__:
            raise TypeError(f"{cls.__name__}.{field.name} is inherited, or has no slot")
        parameter = field.name
        if field.default is not MISSING:
            names[f"_default_{field.name}"] = field.default
            parameter = f"{field.name}=_default_{field.name}"
        (keywords if field.kw_only else places).append(parameter)
        names[f"_store_{field.name}"] = cls.__dict__[field.name].__set__
        lines.append(f"    _store_{field.name}(self, {field.name})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    parameters = ", ".join([*places, *(["*", *keywords] if keywords else [])])
    made: dict[str, object] = {}
    text = "\n".join([f"def __init__({parameters}):", *lines])
    exec(text, names, made)  # names of fields alone, as ``dataclass`` itself does it
    own = made["__init__"]
    old = cls.__init__  # type: ignore[misc]
    for attribute in ("__module__", "__qualname__", "__annotations__", "__doc__"):
        setattr(own, attribute, getattr(old, attribute))
    cls.__init__ = own  # type: ignore[misc]
    return cls
