"""A property that is worked out once, when it is first asked for.

As ``functools.cached_property``, without the lock that it takes before Python 3.12: a lock costs as
much as many of the answers here. Two threads may both work an answer out, which changes nothing.
"""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_Value = TypeVar("_Value")


class lazy(Generic[_Value]):  # noqa: N801  # a decorator, named like ``property``
    """Decorates a method without arguments; its value is kept in the instance's ``__dict__``."""

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """The name under which the value is kept, which then hides this descriptor."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> "Self | _Value":
        """Work the value out and keep it."""
        if instance is None:
            return self
        value = self._function(instance)
        object.__setattr__(instance, self._name, value)
        return value
