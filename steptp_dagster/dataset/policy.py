"""The balance policy as data: classes of strategies, caps, weights, minima; all checked."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Final

#: Above any count or size that makes sense; far below what overflows somewhere.
ENDLESS: Final = 2**31


def positive(**values: float) -> None:
    """Raise ValueError for a value that is not above 0 and below ``ENDLESS`` (NaN neither)."""
    for name, value in values.items():
        if not 0 < value < ENDLESS:
            raise ValueError(f"{name} must be positive and below {ENDLESS}, not {value}")


def _caps(**values: int | None) -> None:
    positive(**{name: value for name, value in values.items() if value is not None})


def _weight(weight: float) -> None:
    if not (isfinite(weight) and 0 < weight <= 1000):
        raise ValueError(f"weight must be above 0 and at most 1000, not {weight}")


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A class of records: those of at most ``tokens`` prompt and answer tokens (None: the rest)."""

    name: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """For one strategy, family or program: most records a task (None: no cap), and a weight.

    Where a cap cuts, a record of weight 2 is as likely to stay as one of two records of weight 1.
    """

    cap: int | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse caps that let nothing through, and weights that are none."""
        _caps(cap=self.cap)
        _weight(self.weight)


@dataclass(frozen=True, slots=True)
class DifficultyClass:
    """A difficulty class of strategies.

    ``strategies`` names them; the one class without takes all that no other class names. No cap
    holds records of a class with ``keep_all``. Caps count records of one task: ``cap`` those of
    the whole class, ``strategy_cap`` those of each of its strategies.
    """

    name: str
    strategies: tuple[str, ...] | None = None
    keep_all: bool = False
    cap: int | None = None
    strategy_cap: int | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse caps that let nothing through, or that ``keep_all`` would make idle."""
        _caps(cap=self.cap, strategy_cap=self.strategy_cap)
        _weight(self.weight)
        if self.keep_all and (self.cap is not None or self.strategy_cap is not None):
            raise ValueError(f"the class {self.name} has keep_all and a cap: leave one of them out")


@dataclass(frozen=True, slots=True)
class BalancePlan:
    """Which records stay; a hash decides, so that more data never reshuffles what is there.

    Everything counts records of one task. ``enabled: false`` lets all caps rest (the ablation);
    duplicates, and records above ``tokens``, go in any case. ``classes`` are those of strategies,
    the hardest first. ``program_strategy_cap`` bounds one strategy within one workload,
    ``program_cap`` and ``family_cap`` every workload and family; ``strategies``, ``families`` and
    ``programs`` set caps and weights of single ones. The first ``minimum`` records of every
    strategy stay below any cap. ``sizes`` are classes by tokens, for the column of that name.
    """

    enabled: bool = True
    tokens: int = 16000
    minimum: int = 0
    program_strategy_cap: int | None = None
    program_cap: int | None = None
    family_cap: int | None = None
    classes: tuple[DifficultyClass, ...] = (DifficultyClass("any"),)
    strategies: dict[str, Rule] = field(default_factory=dict)
    families: dict[str, Rule] = field(default_factory=dict)
    programs: dict[str, Rule] = field(default_factory=dict)
    sizes: tuple[SizeClass, ...] = (SizeClass("any"),)

    def __post_init__(self) -> None:
        """Refuse caps that let nothing through, and classes that overlap or leave gaps."""
        positive(tokens=self.tokens)
        if not 0 <= self.minimum < ENDLESS:
            raise ValueError(f"minimum must be at least 0 and below {ENDLESS}, not {self.minimum}")
        _caps(
            program_strategy_cap=self.program_strategy_cap,
            program_cap=self.program_cap,
            family_cap=self.family_cap,
        )
        self._check_classes()
        bounds = [size.tokens for size in self.sizes]
        finite = [b for b in bounds if b is not None]
        if bounds[-1:] != [None] or len(finite) != len(bounds) - 1 or finite != sorted(set(finite)):
            raise ValueError("sizes must rise in tokens, and only the last has no bound")
        for bound in finite:
            positive(tokens=bound)

    def _check_classes(self) -> None:
        names = [c.name for c in self.classes]
        if len(set(names)) != len(names):
            raise ValueError(f"classes must have different names, not {', '.join(names)}")
        if sum(c.strategies is None for c in self.classes) != 1:
            raise ValueError(
                "classes must have exactly one without strategies: it takes all that no other names"
            )
        listed = [s for c in self.classes for s in c.strategies or ()]
        if doubled := sorted({s for s in listed if listed.count(s) > 1}):
            raise ValueError(f"classes name a strategy twice: {', '.join(doubled)}")

    @property
    def named_strategies(self) -> tuple[str, ...]:
        """All strategies that the policy names."""
        return (*(s for c in self.classes for s in c.strategies or ()), *self.strategies)

    def class_of(self, strategy: str) -> DifficultyClass:
        """The difficulty class of a strategy."""
        rest = next(c for c in self.classes if c.strategies is None)
        return next((c for c in self.classes if strategy in (c.strategies or ())), rest)

    def hardest(self, strategies: tuple[str, ...]) -> str:
        """The strategy of the hardest class; of equals the last."""
        place = {c.name: -n for n, c in enumerate(self.classes)}
        ranked = [(place[self.class_of(s).name], n) for n, s in enumerate(strategies)]
        return strategies[max(ranked)[1]]

    def size_of(self, tokens: int) -> str:
        """The first size class whose bound is not below ``tokens``."""
        return next(s.name for s in self.sizes if s.tokens is None or tokens <= s.tokens)
