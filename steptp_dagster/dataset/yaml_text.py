"""YAML as people write it by hand, read strictly: plain data, and nothing is said twice."""

from collections.abc import Hashable
from typing import Final

import yaml

from steptp_dagster.dataset.mapping import BadMapping

#: What YAML calls the key ``<<``, which may stand beside the keys that it brings.
_MERGED: Final = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Refuses keys that stand twice in one mapping; YAML itself takes the last of them."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        """A mapping, unless a key of it is there already."""
        lines: dict[Hashable, int] = {}
        for name, _ in node.value:
            if name.tag == _MERGED:
                continue
            key, line = self.construct_object(name, deep=True), name.start_mark.line + 1
            # Other keys (lists, mappings) are refused below, in words.
            if isinstance(key, Hashable):
                if key in lines:
                    raise BadMapping(f"{key!r} is said in line {lines[key]} and again in {line}")
                lines[key] = line
        found: dict[Hashable, object] = super().construct_mapping(node, deep)
        return found


def plain_data(text: str) -> object:
    """What a text in YAML says.

    Raises BadMapping where it is not YAML, says something twice, or has a value that none can be
    (a month 13, a number of thousands of digits, lists in lists without end).

    >>> plain_data("seed: 7")
    {'seed': 7}
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise BadMapping(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise BadMapping("not YAML that anybody wrote: nested too deeply") from None
    except BadMapping:
        raise
    except ValueError as error:
        raise BadMapping(f"a value that cannot be: {error}") from error
