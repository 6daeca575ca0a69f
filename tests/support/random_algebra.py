"""Random equations for algebra: sums, products and quotients of few operands, so that laws apply.

``algebraic_program(seed)`` has one or two equations over ``E[3,5]``. Operands are inputs without a
range, positive ones, half precision and parameters, and bounded functions of them.
"""

import random

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Program,
    Real,
    Unary,
)
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable

_ROWS, _COLUMNS = 3, 5
_BOTH = (Index("tx"), Index("a"))
_VARIABLES = (
    Variable("input", "A", "f32", (_ROWS, _COLUMNS)),
    Variable("input", "C", "f32", (_COLUMNS,), 0.5, 4.0),
    Variable("param", "D", "f32", (_COLUMNS,)),
    Variable("input", "F", "f16", (_ROWS, _COLUMNS)),
    Variable("input", "G", "f32", (_ROWS, _COLUMNS), 0.0, 8.0),
)
_READS: tuple[Expr, ...] = (
    Access("A", "f32", "g", _BOTH),
    Access("C", "f32", "g", _BOTH[1:]),
    Access("D", "f32", "g", _BOTH[1:]),
    Access("F", "f16", "g", _BOTH),
    Access("G", "f32", "g", _BOTH),
)
_LITERALS: tuple[Expr, ...] = (Int(1), Int(2), Int(3), Real("0.5"), Real("0.1"), Real("1.5"))


def algebraic_program(seed: int) -> SignedProgram:
    """The program with this seed. Valid; its values may be anything, NaN included."""
    rng = random.Random(f"algebra {seed}")
    pool = _pool(rng)
    target = Access("E", rng.choice(("f32", "f32", "f16")), "g", _BOTH)
    body: list[Equation] = [Equation(target, _value(rng, pool, 3))]
    if rng.random() < 0.2:
        body.append(Equation(target, Binary("+", target, _value(rng, pool, 2))))
    nest = Nest((Loop("B", "tx", _ROWS), Loop("L", "a", _COLUMNS)), tuple(body))
    output = Variable("output", "E", target.dtype, (_ROWS, _COLUMNS))
    return SignedProgram(Program((nest,)), Signature((*_VARIABLES, output)))


def _pool(rng: random.Random) -> list[Expr]:
    """A few operands, so that they come again."""
    reads = rng.sample(_READS, 2)
    made = [_bounded(rng, rng.choice(reads)) for _ in range(rng.choice((0, 1, 1)))]
    return [*reads, *made]


def _bounded(rng: random.Random, x: Expr) -> Expr:
    choices: tuple[Expr, ...] = (
        Binary("+", Int(1), Call("exp", (Unary("-", Call("abs", (x,))),))),
        Call("tanh", (x,)),
        Call("abs", (x,)),
        Call("sqrt", (Binary("+", Call("abs", (x,)), Real("0.1")),)),
        Call("exp", (x,)),
        Call("max", (x, Int(0))),
        Call("min", (Call("max", (x, Int(0))), Int(6))),
    )
    return rng.choice(choices)


def _leaf(rng: random.Random, pool: list[Expr]) -> Expr:
    if rng.random() < 0.2:
        return rng.choice(_LITERALS)
    x = rng.choice(pool)
    if rng.random() < 0.15:
        return Binary("**", x, Int(rng.choice((2, 2, 3))))
    return x


def _value(rng: random.Random, pool: list[Expr], depth: int) -> Expr:
    if depth == 0:
        return _leaf(rng, pool)
    kind = rng.random()
    if kind < 0.4:
        total = _product(rng, pool, depth)
        for _ in range(rng.choice((1, 1, 2))):
            total = Binary(rng.choice("++-"), total, _product(rng, pool, depth))
        return total
    if kind < 0.8:
        return _product(rng, pool, depth)
    if kind < 0.9:
        return Call(
            rng.choice(("max", "min")), (_value(rng, pool, depth - 1), _value(rng, pool, depth - 1))
        )
    condition = Compare((rng.choice(pool), rng.choice((Int(0), Int(1)))), (">",))
    return Call(
        "if_then_else", (condition, _value(rng, pool, depth - 1), _value(rng, pool, depth - 1))
    )


def _product(rng: random.Random, pool: list[Expr], depth: int) -> Expr:
    product = _leaf(rng, pool) if rng.random() < 0.6 else _value(rng, pool, depth - 1)
    for _ in range(rng.choice((0, 1, 1, 2))):
        below = _leaf(rng, pool) if rng.random() < 0.6 else _value(rng, pool, depth - 1)
        product = Binary(rng.choice("***/"), product, below)
    return Unary("-", product) if rng.random() < 0.1 else product
