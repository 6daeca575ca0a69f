"""The prompt texts: templates from ``prompts.yaml``, read once, checked, as a typed value."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Final

import yaml

from steptp_dagster.dataset.acceptance import TOLD
from steptp_dagster.dataset.mapping import build

FILE: Final = Path(__file__).with_name("prompts.yaml")


class BadTemplate(ValueError):
    """A template lacks a word that is filled in, or has another one."""


def _only(template: str, where: str, *names: str) -> None:
    found = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    if found != set(names):
        wanted = ", ".join(f"{{{n}}}" for n in names) or "none"
        has = ", ".join(f"{{{n}}}" for n in sorted(found)) or "none"
        raise BadTemplate(f"{where} must fill in {wanted}, and has {has}")


@dataclass(frozen=True, slots=True)
class LanguageText:
    """The name of a language of programs, and what a model must know of it."""

    name: str
    description: str

    def __post_init__(self) -> None:
        """Refuse words to fill in."""
        _only(self.name, "name")
        _only(self.description, "description")


@dataclass(frozen=True, slots=True)
class TaskText:
    """How answers of a task look, and how it is asked for."""

    answer: str
    request: str


@dataclass(frozen=True, slots=True)
class Contracts:
    """What results must keep: values, or values up to rounding."""

    exact: str
    rounding: str


@dataclass(frozen=True, slots=True)
class TaskTexts:
    """The texts of the tasks."""

    single: TaskText
    multi: TaskText
    trajectory: TaskText
    negative: TaskText

    def __post_init__(self) -> None:
        """Refuse templates with other words than are filled in."""
        _only(self.negative.answer, "negative.answer", "reasons")
        for name, words in (
            ("single", ("contract", "program")),
            ("multi", ("contract", "program", "count")),
            ("trajectory", ("contract", "program", "count")),
            ("negative", ("contract", "program", "strategy", "candidate")),
        ):
            _only(getattr(self, name).request, f"{name}.request", *words)
        for name in ("single", "multi", "trajectory"):
            _only(getattr(self, name).answer, f"{name}.answer", "field")


@dataclass(frozen=True, slots=True)
class Thoughts:
    """How thoughts of several steps are put together, and those on a rejected candidate."""

    step: str
    negative: str
    right: str
    static: str
    numeric: str
    message: str

    def __post_init__(self) -> None:
        """Refuse templates with other words than are filled in."""
        _only(self.step, "step", "number", "count", "strategy", "thought")
        _only(
            self.negative,
            "negative",
            *("strategy", "change", "right", "evidence", "reason", "meaning"),
        )
        _only(self.right, "right", "right")
        _only(self.static, "static", "message")
        _only(self.numeric, "numeric", "family", "finding")
        _only(self.message, "message", "message")


@dataclass(frozen=True, slots=True)
class Prompts:
    """All texts."""

    role: str
    languages: dict[str, LanguageText]
    step: str
    contracts: Contracts
    reasoning: str
    no_reasoning: str
    tasks: TaskTexts
    thoughts: Thoughts

    def __post_init__(self) -> None:
        """Refuse templates with other words than are filled in."""
        _only(self.role, "role", "language")
        _only(self.step, "step", "language")

    def system(self, task: str, language: str, reasoning: bool) -> str:
        """The system message of a task."""
        told = self.languages[language]
        answer = getattr(self.tasks, task).answer.format(reasons=", ".join(TOLD), field=language)
        return "\n\n".join(
            (
                self.role.format(language=told.name),
                told.description.format(),
                self.step.format(language=told.name),
                f"{self.reasoning if reasoning else self.no_reasoning} {answer}",
            )
        )

    def contract(self, exact: bool) -> str:
        """The contract in words."""
        return self.contracts.exact if exact else self.contracts.rounding


@cache
def prompts() -> Prompts:
    """The texts of ``prompts.yaml``. Raises BadMapping where one is missing or wrong."""
    return build(Prompts, yaml.safe_load(FILE.read_text(encoding="utf-8")), FILE.name)
