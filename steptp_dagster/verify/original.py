"""What an original program computes on every input family: the side that candidates share.

The families respect the domain of the original alone. Where it has no value (NaN, or a pole,
``domain``) on some data of a family, the family is used again with positive parameters, then with
positive data; a variant on which it has no value at all is dropped.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.ast import Compare, Expr, Int, Real, Unary
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, equations, expressions, iter_expr
from steptp_dagster.lowering.identity import Identity, identity_of
from steptp_dagster.verify import shared
from steptp_dagster.verify.compare import Array, is_float
from steptp_dagster.verify.domain import Reference, takes_masks
from steptp_dagster.verify.engine import LLVM, Engine
from steptp_dagster.verify.families import (
    FAMILIES,
    Domain,
    Family,
    inputs,
    masks_alone,
    thresholds_family,
)
from steptp_dagster.verify.margins import margins
from steptp_dagster.verify.measured import USELESS, Measured, measure

__all__ = ["USELESS", "Case", "Original", "evaluate", "thresholds"]

#: Originals that are kept, and bytes of their arrays; the last one is kept in any case.
_KEPT: Final = 6
_KEPT_BYTES: Final = 96 * 2**20
_Key = tuple[Identity, int, tuple[float, ...], str]
_kept: OrderedDict[_Key, "Original"] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Case:
    """One variant of a family: inputs, and the original's outputs in both precisions by name.

    ``noise``: the outputs are what is left of rounding errors after everything cancelled, such as
    ``x - mean(x)`` of constant data or the divergence of two equal distributions; two programs
    that compute the same function differ there.
    ``errors``: by float output, the original's largest error in epsilons over a few draws, since
    the error of one draw may be small by luck (a single rounding that happened to be exact).
    ``data_scale`` is the largest magnitude of the float inputs and parameters.
    """

    family: Family
    domain: Domain
    inputs: dict[str, Array]
    reference: dict[str, Array]
    working: dict[str, Array]
    errors: dict[str, float]
    noise: bool
    data_scale: float

    @property
    def judges_values(self) -> bool:
        """Whether float values can be compared here, not just finiteness."""
        return not (self.family.only_finiteness or self.noise)

    @property
    def name(self) -> str:
        """The family's name, with the domain where it was restricted."""
        return f"{self.family.name}/{self.domain}" if self.domain else self.family.name


@dataclass(frozen=True)
class Original:
    """An original with its results.

    ``dropped`` names the families it has no value on; ``margins`` says how far trivial answers
    are from its outputs (``margins.margins``). ``inputs``, ``reference`` and ``working`` are those
    of all cases together, with an axis of cases in front.
    """

    signed: SignedProgram
    cases: tuple[Case, ...]
    dropped: tuple[str, ...]
    margins: tuple[tuple[str, float], ...]
    inputs: dict[str, Array]
    reference: dict[str, Array]
    working: dict[str, Array]

    @property
    def plain_families(self) -> int:
        """How many well-scaled families it can be judged on."""
        return len(
            {c.family.name for c in self.cases if c.judges_values and not c.family.adversarial}
        )

    @cached_property
    def size(self) -> int:
        """Bytes of all arrays."""
        every = (self.inputs, self.reference, self.working)
        return sum(values.nbytes for arrays in every for values in arrays.values())

    @cached_property
    def plain(self) -> Array:
        """Which cases are of well-scaled families."""
        return np.array([not case.family.adversarial for case in self.cases], bool)

    @cached_property
    def scales(self) -> Array:
        """The data scales of all cases."""
        return np.array([case.data_scale for case in self.cases], np.float64)

    @cached_property
    def plain_inputs(self) -> dict[str, Array]:
        """The inputs of the well-scaled families as a program in binary64 takes them."""
        dtypes = {v.name: v.dtype for v in self.signed.signature.variables}
        chosen = {name: values[self.plain] for name, values in self.inputs.items()}
        return {n: v.astype(np.float64) if is_float(dtypes[n]) else v for n, v in chosen.items()}


def masked_without_value(original: Original, seed: int) -> list[dict[str, Array]]:
    """Data with masks in one input alone, of the families on which the original has no value.

    What a candidate does about such a mask is nothing that the original could be compared in.
    """
    families = masks_alone(original.signed.signature) if original.dropped else ()
    return [
        inputs(original.signed.signature, family, seed)
        for family in families
        if family.name in original.dropped
    ]


def thresholds(*programs: SignedProgram) -> tuple[float, ...]:
    """The literals that data is compared with, in ascending order."""
    return tuple(sorted(frozenset().union(*map(_thresholds, programs))))


@per_program
def _thresholds(signed: SignedProgram) -> frozenset[float]:
    return frozenset(
        value
        for located in equations(signed.program)
        for expr in expressions(located.equation)
        for node in iter_expr(expr)
        if isinstance(node, Compare) and any(True for _ in accesses_in(node))
        for operand in node.operands
        for value in _literal(operand)
    )


def evaluate(
    signed: SignedProgram,
    seed: int,
    compared: tuple[float, ...] = (),
    engine: Engine = LLVM,
) -> Original:
    """Run a valid original on all families; ``compared`` are the thresholds to test at.

    The last few results are kept, since candidates of one original come one after the other, and
    ``shared`` keeps them for other processes. Raises what compiling and running raise
    (``lowering``).
    """
    identity = identity_of(signed)
    base = _once((identity, seed, (), engine.target), lambda: _on_families(signed, seed, engine))
    if not compared:
        return base
    return _once(
        (identity, seed, compared, engine.target),
        lambda: _joined(base, _at_thresholds(signed, compared, seed, engine)),
    )


def _once(key: _Key, make: Callable[[], Original]) -> Original:
    found = _kept.get(key)
    if found is None:
        found = _kept[key] = make()
    _kept.move_to_end(key)
    total = sum(kept.size for kept in _kept.values())
    while len(_kept) > 1 and (len(_kept) > _KEPT or total > _KEPT_BYTES):
        total -= _kept.popitem(last=False)[1].size
    return found


def _on_families(signed: SignedProgram, seed: int, engine: Engine) -> Original:
    families = [f for f in FAMILIES if not f.infinite]
    if takes_masks(signed):
        families = [*FAMILIES, *masks_alone(signed.signature)]
    measured = shared.once(
        (signed, identity_of(signed).zeros, seed, engine.target),
        lambda: _measure(signed, families, seed, engine),
    )
    return _original(signed, measured, {family.name: family for family in families})


def _at_thresholds(
    signed: SignedProgram, compared: tuple[float, ...], seed: int, engine: Engine
) -> Original:
    family = thresholds_family(compared)
    measured = _measure(signed, [family], seed, engine)
    return _original(signed, measured, {family.name: family})


def _measure(signed: SignedProgram, families: list[Family], seed: int, engine: Engine) -> Measured:
    working = engine.compile([signed], "working")[0]
    double = Reference(signed, engine.compile([signed], "float64")[0], engine)
    return measure(signed, families, seed, working, double)


def _original(signed: SignedProgram, measured: Measured, by_name: Mapping[str, Family]) -> Original:
    def row(arrays: dict[str, Array], number: int) -> dict[str, Array]:
        return {name: np.asarray(values[number]) for name, values in arrays.items()}

    cases = tuple(
        Case(
            by_name[variant.family],
            variant.domain,
            row(measured.inputs, number),
            row(measured.reference, number),
            row(measured.working, number),
            variant.errors,
            variant.noise,
            variant.data_scale,
        )
        for number, variant in enumerate(measured.variants)
    )
    return Original(
        signed,
        cases,
        measured.dropped,
        margins(signed.signature, cases),
        measured.inputs,
        measured.reference,
        measured.working,
    )


def _joined(base: Original, more: Original) -> Original:
    """Both sets of cases; a trivial answer's margin is the larger one."""
    if not more.cases or not base.cases:
        some = base if base.cases else more
        return Original(
            base.signed,
            some.cases,
            base.dropped + more.dropped,
            some.margins,
            some.inputs,
            some.reference,
            some.working,
        )
    largest = dict(base.margins)
    for name, value in more.margins:
        largest[name] = max(value, largest.get(name, 0.0))

    def both(one: dict[str, Array], other: dict[str, Array]) -> dict[str, Array]:
        return {name: np.concatenate([one[name], other[name]]) for name in one}

    return Original(
        base.signed,
        base.cases + more.cases,
        base.dropped + more.dropped,
        tuple(sorted(largest.items())),
        both(base.inputs, more.inputs),
        both(base.reference, more.reference),
        both(base.working, more.working),
    )


def _literal(expr: Expr) -> list[float]:
    match expr:
        case Int() | Real():
            return [float(expr.value)]
        case Unary(operand=Int() | Real() as operand):
            return [-float(operand.value)]
        case _:
            return []
