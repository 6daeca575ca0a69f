"""Answers with and without the memory of nests, for programs that share nests."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from steptp_dagster.leir import nest_memory, sets
from steptp_dagster.leir.fileform import read, write
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.validity import check
from tests.support.mutations import mutate


def answers(signed: SignedProgram) -> tuple[object, ...]:
    """Everything that memory takes part in, positions and paths included."""
    fresh = SignedProgram(signed.program, signed.signature)
    return check(fresh), check_limits(fresh), infer_shapes(fresh), dict(classify(fresh))


@contextmanager
def without_memory() -> Iterator[None]:
    """Nothing is remembered from one program to the next."""

    def keep_nothing(_memory: object, _key: object, value: object, _most: int) -> object:
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nest_memory, "remember", keep_nothing)
        for name in ("_has_points", "_left_over", "_largest"):
            patch.setattr(sets, name, getattr(sets, name).__wrapped__)
        nest_memory.forget()
        yield


def family(signed: SignedProgram, rng: random.Random, most: int) -> list[SignedProgram]:
    """A program, programs that share nests with it, and the same with other objects."""
    found = [signed]
    for _ in range(most):
        parent = rng.choice(found)
        child = mutate(parent, rng)
        if rng.random() < 0.2:  # the same nests at other places
            nests = list(child.program.nests)
            rng.shuffle(nests)
            child = SignedProgram(type(child.program)(tuple(nests)), child.signature)
        if rng.random() < 0.3:  # equal nests that are other objects, with positions
            child = read(write(child)).signed
        found.append(child)
    return found


def assert_memory_changes_nothing(programs: list[SignedProgram], rng: random.Random) -> int:
    """Ask without memory, and with it in two orders; how many of the programs are invalid."""
    with without_memory():
        expected = [answers(program) for program in programs]
    nest_memory.forget()
    for _ in range(2):  # with an empty memory, and with a full one in another order
        order = list(range(len(programs)))
        rng.shuffle(order)
        for i in order:
            assert answers(programs[i]) == expected[i], write(programs[i])
    return sum(1 for found in expected if found[0])
