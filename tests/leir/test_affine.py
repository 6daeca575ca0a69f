"""Forms, formulas and intervals against plain evaluation over all index values."""

import itertools
import random
from itertools import pairwise

import pytest

from steptp_dagster.leir.affine import (
    Bounds,
    FloorDiv,
    Form,
    Modulo,
    Opaque,
    form_text,
    index,
    substitute,
)
from steptp_dagster.leir.ast import Binary, Call, Compare, Expr, Index, Int, Unary
from steptp_dagster.leir.conversion import Converter
from steptp_dagster.leir.formulas import (
    FALSE,
    TRUE,
    And,
    Formula,
    NonNegative,
    Or,
    Zero,
    narrowed,
    negation,
)

BOX = {"a": (0, 3), "c": (0, 5), "d": (1, 2), "f": (0, 0)}


def no_tables(access: object, converter: Converter) -> Form:
    raise AssertionError("there are no tensors here")


def converter() -> Converter:
    return Converter(Bounds(dict(BOX)), no_tables)


def points() -> list[dict[str, int]]:
    ranges = [range(low, high + 1) for low, high in BOX.values()]
    return [dict(zip(BOX, p, strict=True)) for p in itertools.product(*ranges)]


def evaluate(form: Form, env: dict[str, int]) -> int:
    total = form.const
    for atom, k in form.terms:
        match atom:
            case str():
                total += k * env[atom]
            case FloorDiv(inner, divisor):
                total += k * (evaluate(inner, env) // divisor)
            case Modulo(inner, divisor):
                total += k * (evaluate(inner, env) % divisor)
            case Opaque():
                raise AssertionError("nothing is opaque here")
    return total


def holds(formula: Formula, env: dict[str, int]) -> bool:
    match formula:
        case NonNegative(form):
            return evaluate(form, env) >= 0
        case Zero(form):
            return evaluate(form, env) == 0
        case And(parts):
            return all(holds(p, env) for p in parts)
        case Or(parts):
            return any(holds(p, env) for p in parts)
    raise AssertionError("the formula is unknown")


def number(expr: Expr, env: dict[str, int]) -> int:
    match expr:
        case Int(v):
            return v
        case Index(name):
            return env[name]
        case Unary(_, e):
            return -number(e, env)
        case Call(function, (a, b)):
            return (max if function == "max" else min)(number(a, env), number(b, env))
        case Compare(operands, ops):
            numbers = [number(o, env) for o in operands]
            tests = {
                "<": int.__lt__,
                "<=": int.__le__,
                ">": int.__gt__,
                ">=": int.__ge__,
                "==": int.__eq__,
                "!=": int.__ne__,
            }
            return int(all(tests[o](*pair) for o, pair in zip(ops, pairwise(numbers), strict=True)))
        case Binary(op, a, b):
            x, y = number(a, env), number(b, env)
            if op in ("//", "%"):
                return x // y if op == "//" else x % y
            return {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y}[op]
    raise AssertionError(type(expr).__name__)


def random_integer(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        return Index(rng.choice("acdf")) if rng.random() < 0.8 else Int(rng.randint(0, 7))
    inner = random_integer(rng, depth - 1)
    roll = rng.random()
    if roll < 0.45:
        return Binary(rng.choice("++-"), inner, random_integer(rng, depth - 1))
    if roll < 0.65:
        return Binary("*", inner, Int(rng.randint(0, 6)))
    if roll < 0.95:
        divisor: Expr = Int(rng.randint(1, 8))
        if rng.random() < 0.1:
            divisor = Unary("-", divisor)
        return Binary(rng.choice(("//", "%")), inner, divisor)
    return Unary("-", inner)


def random_condition(rng: random.Random, depth: int) -> Expr:
    if depth and rng.random() < 0.4:
        left, right = random_condition(rng, depth - 1), random_condition(rng, depth - 1)
        return Binary(rng.choice("&|"), left, right)
    sides: list[Expr] = [random_integer(rng, 2) for _ in range(rng.choice((2, 2, 3)))]
    if rng.random() < 0.3:
        sides[0] = Call(rng.choice(("max", "min")), (sides[0], random_integer(rng, 1)))
    if rng.random() < 0.2:
        sides[-1] = Binary("+", Call("min", (sides[-1], Int(2))), Int(1))
    ops = tuple(rng.choice(("<", "<=", ">", ">=", "==", "!=")) for _ in sides[1:])
    return Compare(tuple(sides), ops)


@pytest.mark.parametrize("seed", range(300))
def test_forms_mean_their_expressions(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_integer(rng, 4)
    form = converter().form(expr)
    assert form is not None
    values = [number(expr, env) for env in points()]
    assert [evaluate(form, env) for env in points()] == values
    low, high = Bounds(dict(BOX)).interval(form)
    assert low <= min(values)
    assert max(values) <= high


@pytest.mark.parametrize("seed", range(300))
def test_formulas_mean_their_conditions(seed: int) -> None:
    rng = random.Random(seed)
    condition = random_condition(rng, 2)
    formula = converter().formula(condition)
    truth = [bool(number(condition, env)) for env in points()]
    assert [holds(formula, env) for env in points()] == truth
    assert [holds(negation(formula), env) for env in points()] == [not t for t in truth]


@pytest.mark.parametrize("seed", range(300))
def test_narrowed_bounds_hold_every_point_of_the_condition(seed: int) -> None:
    rng = random.Random(seed)
    condition = random_condition(rng, 2)
    formula = converter().formula(condition)
    bounds = narrowed(Bounds(dict(BOX)), formula)
    taken = [env for env in points() if number(condition, env)]
    assert not (bounds.empty and taken)
    for name, (low, high) in bounds.box.items():
        assert all(low <= env[name] <= high for env in taken)
    form = converter().form(random_integer(rng, 3))
    assert form is not None
    low, high = bounds.interval(form)
    assert all(low <= evaluate(form, env) <= high for env in taken)


@pytest.mark.parametrize("seed", range(100))
def test_substitution_commutes_with_evaluation(seed: int) -> None:
    rng = random.Random(seed)
    form = converter().form(random_integer(rng, 3))
    new = converter().form(random_integer(rng, 1))
    assert form is not None
    assert new is not None
    result = substitute(form, {"a": new}, Bounds({**BOX, "a": (-99, 99)}))
    for env in points():
        moved = {**env, "a": evaluate(new, env)}
        if not BOX["a"][0] <= moved["a"] <= BOX["a"][1]:
            continue  # the form was simplified for values of ``a`` within its range
        assert evaluate(result, env) == evaluate(form, moved)


def text(expr: str) -> str:
    from steptp_dagster.leir.fileform import read

    header = "# output D f32[99]\n"
    program = read(f"{header}L^{{4}}_{{a=0}}L^{{6}}_{{c=0}}[D^{{f32,g}}_{{{expr}}}=0;];").signed
    nest = program.program.nests[0]
    target = nest.body[0].target  # type: ignore[union-attr]
    form = Converter(Bounds({"a": (0, 3), "c": (0, 5)}), no_tables).form(target.subscripts[0])
    assert form is not None
    return form_text(form)


def test_normal_forms() -> None:
    assert text("a*6+c-a") == "a*5+c"
    assert text("(a*6+c)//6") == "a"
    assert text("(a*6+c)%6") == "c"
    assert text("(a*6+c)//12") == "(a)//2"
    assert text("(c*4+a)%8") == "(c)%2*4+a"
    assert text("c//2//2") == "(c)//4"
    assert text("c%4%2") == "(c)%2"
    assert text("c//6") == "0"
    assert text("(c+6)%6") == "c"
    assert text("c-(-1)") == "c+1"


def test_products_and_overflow_are_opaque() -> None:
    make = converter()
    product = make.form(Binary("*", Index("a"), Index("c")))
    assert product is not None
    assert Bounds(dict(BOX)).interval(product) == (0, 15)
    huge = make.form(Binary("*", Index("a"), Int(1 << 62)))
    assert huge is not None
    assert isinstance(huge.terms[0][0], Opaque)


def test_unbound_indices_have_no_form() -> None:
    assert converter().form(Index("z")) is None
    assert converter().form(Binary("+", Index("z"), Int(1))) is None


def test_conditions_on_reals_are_unknown_and_constants_are_decided() -> None:
    make = converter()
    assert make.formula(Compare((Index("a"), Int(4)), ("<",))) == TRUE
    assert make.formula(Compare((Index("a"), Int(4)), (">=",))) == FALSE
    assert make.formula(Compare((index_of("a"), Binary("/", Int(1), Int(2))), ("<",))) not in (
        TRUE,
        FALSE,
    )


def index_of(name: str) -> Expr:
    assert index(name).terms == ((name, 1),)
    return Index(name)
