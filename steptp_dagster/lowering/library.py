"""Machine code by nest, within bounds: what was not used for long is dropped, module by module.

Code made together lives in one module, and memory is freed with the module, so the age that
counts is the module's: the time any of its functions was last asked for.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from steptp_dagster.lowering.abi import Entry, FlatFunction, compile_functions
from steptp_dagster.lowering.nests import NestKey


@dataclass(slots=True)
class Library:
    """Compiled functions by key; ``most`` bounds those in modules that something still holds."""

    most: int
    _modules: OrderedDict[int, dict[NestKey, Entry]] = field(default_factory=OrderedDict)
    _homes: dict[NestKey, int] = field(default_factory=dict)
    _made: int = 0

    def __len__(self) -> int:
        """How many functions there are."""
        return len(self._homes)

    def __contains__(self, key: NestKey) -> bool:
        """Whether a function is there."""
        return key in self._homes

    def __getitem__(self, key: NestKey) -> Entry:
        """A function; its module counts as used. Raises KeyError where it is not there."""
        home = self._homes[key]
        self._modules.move_to_end(home)
        return self._modules[home][key]

    def add(self, functions: Mapping[NestKey, FlatFunction]) -> None:
        """Compile functions that are not there: one module for each level of optimisation."""
        for level in (0, 1):
            chosen = [key for key in functions if key.level == level]
            named = {f"nest{i}": functions[key] for i, key in enumerate(chosen)}
            compiled = compile_functions(named, level)
            if not compiled:
                continue
            self._made += 1
            self._modules[self._made] = dict(zip(chosen, compiled.values(), strict=True))
            self._homes.update(dict.fromkeys(chosen, self._made))

    def shrink(self) -> None:
        """Drop the modules used longest ago until the bound holds; the last one used stays."""
        while len(self._homes) > self.most and len(self._modules) > 1:
            _, dropped = self._modules.popitem(last=False)
            for key in dropped:
                del self._homes[key]
