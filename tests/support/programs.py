"""Random LEIR programs: valid by construction, and mutations that may be invalid.

``random_program(seed)`` and ``random_mutant(seed)`` are plain functions of a seed;
``valid_programs()`` and ``arbitrary_programs()`` are the same as Hypothesis strategies.
"""

import random

import numpy as np
from hypothesis import strategies as st

from steptp_dagster.leir.ast import Nest, Program
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import tensor_names
from tests.support.mutations import mutate
from tests.support.random_nests import Nests

#: Ranges that inputs without a stated range are drawn from.
FLOAT_RANGE = (-2.0, 2.0)
INTEGER_RANGE = (0, 5)


def build(rng: random.Random) -> SignedProgram:
    """A valid program made of one to four nests or pairs of nests."""
    nests = Nests(rng)
    made: list[Nest] = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        made += nests.any()
    program = Program(tuple(made))
    used = tensor_names(program)
    variables = [
        Variable(
            rng.choice(("input", "param")),
            t.name,
            t.dtype,
            t.shape,
            *((t.low, t.high) if t.table or t.low > 0 else (None, None)),
        )
        for t in nests.sources
        if t.name in used
    ]
    last = nests.written[-1]
    for t in nests.written:
        if t is last or rng.random() < 0.3:
            variables.append(Variable("output", t.name, t.dtype, t.shape))
    return SignedProgram(program, Signature(tuple(variables)))


def random_program(seed: int) -> SignedProgram:
    """The valid program with this seed."""
    return build(random.Random(f"program {seed}"))


def random_mutant(seed: int) -> SignedProgram:
    """The program with this seed after one to three mutations; valid or not."""
    rng = random.Random(f"mutant {seed}")
    return _mutated(build(rng), rng)


def _mutated(signed: SignedProgram, rng: random.Random) -> SignedProgram:
    for _ in range(rng.choice((1, 1, 2, 3))):
        signed = mutate(signed, rng)
    return signed


def valid_programs() -> st.SearchStrategy[SignedProgram]:
    """Valid programs of at most a few hundred iterations."""
    return st.randoms(use_true_random=False).map(build)


def arbitrary_programs() -> st.SearchStrategy[SignedProgram]:
    """Mutated programs: many are invalid, in many ways."""
    return st.randoms(use_true_random=False).map(lambda rng: _mutated(build(rng), rng))


def random_inputs(signed: SignedProgram, seed: int) -> dict[str, np.ndarray]:
    """Values for all inputs and parameters, within their ranges (bf16 as float32)."""
    inputs: dict[str, np.ndarray] = {}
    for variable in signed.signature.sources:
        if variable.role == "const":
            continue
        digits = [seed, *variable.name.encode()]
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(digits)))
        dtype = DTYPES[variable.dtype]
        array: np.ndarray
        if dtype.kind == "bool":
            array = rng.random(variable.shape) < 0.5
        elif dtype.is_float:
            low, high = FLOAT_RANGE
            if variable.low is not None and variable.high is not None:
                low, high = float(variable.low), float(variable.high)
            array = rng.uniform(low, high, variable.shape)
        else:
            first, last = INTEGER_RANGE
            if variable.low is not None and variable.high is not None:
                first, last = int(variable.low), int(variable.high)
            array = rng.integers(first, last, variable.shape, endpoint=True)
        name = "float32" if dtype.name == "bf16" else dtype.numpy
        inputs[variable.name] = np.asarray(array).astype(name)
    return inputs
