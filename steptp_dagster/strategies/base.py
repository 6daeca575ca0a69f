"""What a strategy is: sites, refusals, application, explanation.

A strategy is one file with one class. ``survey`` lists every legal site with its parameters, in a
deterministic order, and every near miss as a refusal with a named reason; ``apply`` rewrites at
one site; ``explain`` states what it saw and did as facts that ``reasoning`` can derive again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from steptp_dagster.leir.nest_memory import remember
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.facts import Explanation

if TYPE_CHECKING:
    from steptp_dagster.strategies.soundness import Rule

Level = Literal["graph", "operator", "memory", "math"]
#: What happens to the values of the result: equal bit for bit, or equal up to rounding.
Numerics = Literal["exact", "reassociated"]
Parameter = int | str | bool | tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A place where a strategy applies, with the parameters of this application.

    ``path`` is the statement that the site is about (the first of them in text order);
    ``parameters`` are sorted by name and, with ``path``, identify the site within a program.
    """

    strategy: str
    path: Path
    parameters: tuple[tuple[str, Parameter], ...]

    @classmethod
    def of(cls, strategy: str, path: Path, **parameters: Parameter) -> "Site":
        """Make a site from keyword parameters."""
        return cls(strategy, path, tuple(sorted(parameters.items())))

    @property
    def named(self) -> Mapping[str, Parameter]:
        """The parameters by name."""
        return dict(self.parameters)

    def integer(self, name: str) -> int:
        """The integer parameter ``name``. Raises TypeError where it is something else."""
        value = self.named[name]
        if not isinstance(value, int):
            raise TypeError(f"{self.strategy}: {name} is not an integer: {value!r}")
        return value

    def text(self, name: str) -> str:
        """The text parameter ``name``. Raises TypeError where it is something else."""
        value = self.named[name]
        if not isinstance(value, str):
            raise TypeError(f"{self.strategy}: {name} is not a text: {value!r}")
        return value

    def describe(self) -> str:
        """One line for people: where, and with what."""
        where = "statement " + ".".join(str(i + 1) for i in self.path)
        what = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{where}: {what}" if what else where


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a strategy does not apply at a place: a named reason and words for people.

    ``reason`` is a short kebab-case code, one per precondition (``producer-is-output``).
    """

    strategy: str
    path: Path
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Survey:
    """All sites and all refusals of one strategy on one program, each in text order."""

    sites: tuple[Site, ...]
    refusals: tuple[Refusal, ...]


_Apply = Callable[["Strategy", SignedProgram, Site], SignedProgram]

#: Results of ``apply`` that are remembered, with what they were made of.
_REMEMBERED: Final = 1024
_applied: Final[
    dict[tuple[_Apply, int, int, Site], tuple["Strategy", SignedProgram, SignedProgram]]
] = {}


def _remembering(apply: _Apply) -> _Apply:
    """``apply``, remembered: a survey makes every candidate, and a step is taken at some of them.

    Strategies are stateless and programs never change, so that the result may be shared.
    """

    @wraps(apply)
    def remembered(self: "Strategy", program: SignedProgram, site: Site) -> SignedProgram:
        key = apply, id(self), id(program), site
        found = _applied.get(key)
        if found is None or found[0] is not self or found[1] is not program:
            made = self, program, apply(self, program, site)
            found = remember(_applied, key, made, _REMEMBERED)
        return found[2]

    return remembered


class Strategy(ABC):
    """Base of all strategies. Subclasses are stateless; one instance each is registered."""

    name: ClassVar[str]
    level: ClassVar[Level]
    #: Raised whenever the strategy would make another result; enters every step's id.
    version: ClassVar[str]
    #: ``published`` for the 43 names of the paper, else ``steptp`` or a plug-in's name.
    origin: ClassVar[str] = "published"
    #: One sentence: what the step does.
    summary: ClassVar[str]
    #: Preconditions by kebab-case name, in the order in which ``explain`` shows them. Each is
    #: worded as the failure that it rules out and is the reason of a refusal where it fails.
    preconditions: ClassVar[tuple[str, ...]] = ()
    #: Arguments for soundness that a plug-in brings; the library's own stand in ``soundness``.
    own_rules: "ClassVar[tuple[Rule, ...]]" = ()

    def __init_subclass__(cls, **options: object) -> None:
        """Remember what ``apply`` makes."""
        super().__init_subclass__(**options)
        own = cls.__dict__.get("apply")
        if own is not None and not getattr(own, "__isabstractmethod__", False):
            cls.apply = _remembering(own)  # type: ignore[assignment, method-assign]

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """The preconditions that the explanation of a step at ``site`` shows, in order.

        All of them, unless a strategy whose parameters make some of them moot says so.
        """
        if site.strategy != self.name:
            raise ValueError(f"a site of {site.strategy}, not of {self.name}")
        return self.preconditions

    @abstractmethod
    def survey(self, program: SignedProgram) -> Survey:
        """List the legal sites and the refusals of a *valid* program, deterministically."""

    @abstractmethod
    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Rewrite at a site that ``survey`` listed for this very program."""

    @abstractmethod
    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """State what was seen, why the step is legal, what was done and what it brings."""

    def keeps_instances(self, site: Site) -> bool:
        """Whether the step runs the same equation instances as before, at the same elements.

        True for steps that only move instances (split, fuse, reorder, bind); ``step.take`` then
        checks it. Scopes of tensors do not count.
        """
        if site.strategy != self.name:
            raise ValueError(f"a site of {site.strategy}, not of {self.name}")
        return False
