"""Running a program."""

import random
from collections.abc import Mapping
from typing import Literal

import numpy as np

from steptp_dagster.leir.interpreter.faults import Log, Run
from steptp_dagster.leir.interpreter.machine import Iterations, Machine
from steptp_dagster.leir.interpreter.nests import NestCompiler
from steptp_dagster.leir.interpreter.structure import (
    kinds_and_threads,
    names_and_types,
)
from steptp_dagster.leir.signature import SignedProgram

Precision = Literal["working", "float64"]
Order = Literal["text", "reversed", "shuffled"]


def interpret(
    signed: SignedProgram,
    inputs: Mapping[str, np.ndarray],
    *,
    precision: Precision = "working",
    dynamic: bool = True,
    max_faults: int = 20,
    order: Order = "text",
    seed: int = 0,
) -> Run:
    """Run a program on NumPy inputs and watch what it does.

    ``inputs`` holds every input and parameter by name, in its declared shape, with values of its
    dtype; bf16 arrives and leaves as float32. ``precision="float64"`` makes every float tensor,
    temporary and literal a double. ``dynamic=False`` leaves out the checks of conflicts, blocks,
    partial values and coverage, which is faster. ``order`` runs the iterations of P, V and B
    loops as written, backwards or shuffled (by ``seed``): a valid program gives the same values,
    reassociated block reductions aside.

    A program without meaning (unknown names, wrong ranks or types) is not run: its outputs are
    NaN, or 0 for integers and bools, as are elements that the program does not write. Raises
    InputError if the inputs do not fit the signature.
    """
    log = Log(max_faults)
    names_and_types(signed, log)
    meaningless = bool(log.found)
    kinds_and_threads(signed, log)
    machine = Machine(signed, inputs, log, precision == "float64", dynamic, _orders(order, seed))
    if not meaningless:
        for i, nest in enumerate(signed.program.nests):
            NestCompiler(machine, nest, i).run()
        machine.memory.settle_pending()
        if dynamic:
            machine.check_coverage()
    return Run(machine.outputs(), tuple(log.found))


def _orders(order: Order, seed: int) -> Iterations:
    if order == "text":
        return lambda iterations: iterations
    if order == "reversed":
        return lambda iterations: iterations[::-1]
    generator = random.Random(seed)

    def shuffled(iterations: range) -> list[int]:
        return generator.sample(iterations, len(iterations))

    return shuffled
