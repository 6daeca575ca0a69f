"""Quickly made dataclasses are the dataclasses that they decorate."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from steptp_dagster.leir import ast
from steptp_dagster.leir.records import quickly_made


@dataclass(frozen=True, slots=True)
class _Plain:
    one: int
    two: tuple[int, ...] = (2,)
    pos: int = field(default=-1, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.one < 0:
            raise ValueError("negative")


@quickly_made
@dataclass(frozen=True, slots=True)
class _Quick:
    one: int
    two: tuple[int, ...] = (2,)
    pos: int = field(default=-1, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.one < 0:
            raise ValueError("negative")


def test_fields_defaults_and_signature_are_those_of_the_dataclass() -> None:
    assert str(inspect.signature(_Quick)) == str(inspect.signature(_Plain))
    for made in (_Quick(1), _Quick(one=1), _Quick(1, (2,), pos=7)):
        assert made == _Quick(1, (2,))
        assert hash(made) == hash(_Quick(1, (2,)))
        assert (made.one, made.two) == (1, (2,))
    assert _Quick(1, pos=7).pos == 7
    assert replace(_Quick(1, pos=7), one=3) == _Quick(3)
    assert repr(_Quick(1, (4,))) == repr(_Plain(1, (4,))).replace("_Plain", "_Quick")


def test_what_a_dataclass_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        _Quick(-1)
    with pytest.raises(TypeError):
        _Quick()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        _Quick(1, (2,), 7)  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        _Quick(1).one = 2  # type: ignore[misc]
    with pytest.raises(ast.InvalidNode):
        ast.Index("X")


def test_copies_and_pickles_are_equal() -> None:
    made = _Quick(1, (3,), pos=4)
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert again.pos == 4


def test_a_factory_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Made:
        one: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match="one is not simply passed"):
        quickly_made(Made)


def test_fields_of_a_base_and_without_slots_are_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Inherits(_Quick):
        three: int = 3

    @dataclass(frozen=True)
    class Slotless:
        one: int

    for cls in (Inherits, Slotless):
        with pytest.raises(TypeError, match="one is inherited, or has no slot"):
            quickly_made(cls)
