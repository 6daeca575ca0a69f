"""Single settings of a profile given from outside: ``balance.enabled=false``."""

from collections.abc import Sequence
from typing import Any

import yaml

from steptp_dagster.dataset.mapping import BadMapping


def overridden(data: object, settings: Sequence[str]) -> object:
    """The plain data of a profile with some settings replaced; values are read as YAML.

    Raises BadMapping where one is no ``KEY=VALUE``; whether a key exists is checked later.

    >>> overridden({"balance": {"minimum": 2}}, ["balance.enabled=false"])
    {'balance': {'minimum': 2, 'enabled': False}}
    """
    for setting in settings:
        key, equals, text = setting.partition("=")
        names = key.strip().split(".")
        if not equals or "" in names:
            raise BadMapping(f"{setting!r}: expected KEY=VALUE, such as balance.enabled=false")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise BadMapping(f"{key}: not a YAML value: {text!r}") from error
        data = _replaced(data, names, value, key)
    return data


def _replaced(data: object, names: Sequence[str], value: object, key: str) -> object:
    if not names:
        return value
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise BadMapping(f"{key}: the profile has {data!r} there, which has no settings in it")
    known: dict[str, Any] = data
    return {**known, names[0]: _replaced(known.get(names[0]), names[1:], value, key)}
