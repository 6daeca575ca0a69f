"""Single settings of a profile given from outside: ``balance.enabled=false``."""

from collections.abc import Sequence
from typing import Any

from steptp_dagster.dataset.mapping import BadMapping
from steptp_dagster.dataset.yaml_text import plain_data
from steptp_dagster.paths import OVERRIDES_VARIABLE


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
            said = f"{setting!r} (--set, or ${OVERRIDES_VARIABLE})"
            raise BadMapping(f"{said}: expected KEY=VALUE, such as balance.enabled=false")
        try:
            value = plain_data(text)
        except BadMapping as error:
            raise BadMapping(f"{key}: not a YAML value: {text!r} ({error})") from error
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
