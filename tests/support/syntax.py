"""Random syntactic LEIR: trees that a text can denote, whether or not they mean anything."""

from hypothesis import HealthCheck
from hypothesis import strategies as st

from steptp_dagster.leir.ast import (
    ARITHMETIC,
    AXES,
    COMPARISONS,
    FUNCTIONS,
    LOGICAL,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Kind,
    Loop,
    Nest,
    Program,
    Real,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES, SCOPES
from steptp_dagster.leir.literals import spell

#: Drawing whole programs is slow on a busy machine; that is no failure.
SLOW = (HealthCheck.too_slow,)

INDICES = ("a", "c", "d", "tx", "bya", "io")
TENSORS = ("A", "C", "D", "Xa", "Qaa")
#: One annotation per tensor: conflicting ones would be normalised on reading.
ANNOTATIONS = {
    name: (list(DTYPES)[n], list(SCOPES)[n % len(SCOPES)]) for n, name in enumerate(TENSORS)
}


def literals() -> st.SearchStrategy[Expr]:
    reals = st.floats(min_value=1e-30, max_value=1e30) | st.sampled_from([0.0, 0.1, 1.0, 1e-5])
    return st.one_of(
        st.integers(min_value=0, max_value=10**12).map(Int),
        reals.map(lambda value: Real(spell(value))),
        st.just(Inf()),
    )


def access(name: str, subscripts: tuple[Expr, ...]) -> Access:
    dtype, scope = ANNOTATIONS[name]
    return Access(name, dtype, scope, subscripts)


def accesses(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Access]:
    return st.builds(access, st.sampled_from(TENSORS), st.lists(inner, max_size=3).map(tuple))


def compare(first: Expr, rest: list[tuple[str, Expr]]) -> Compare:
    return Compare((first, *(e for _, e in rest)), tuple(op for op, _ in rest))


def _compound(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def call(function: str) -> st.SearchStrategy[Expr]:
        arity = FUNCTIONS[function]
        arguments = st.lists(inner, min_size=arity, max_size=arity).map(tuple)
        return st.builds(Call, st.just(function), arguments)

    links = st.lists(st.tuples(st.sampled_from(COMPARISONS), inner), min_size=1, max_size=3)
    return st.one_of(
        st.builds(Unary, st.just("-"), inner),
        st.builds(Binary, st.sampled_from((*ARITHMETIC, *LOGICAL)), inner, inner),
        st.builds(compare, inner, links),
        st.sampled_from(list(FUNCTIONS)).flatmap(call),
        accesses(inner),
    )


def expressions() -> st.SearchStrategy[Expr]:
    scalars = st.sampled_from(TENSORS).map(lambda name: access(name, ()))
    leaves = literals() | st.sampled_from(INDICES).map(Index) | scalars
    return st.recursive(leaves, _compound, max_leaves=12)


def loops() -> st.SearchStrategy[Loop]:
    def loop(index: str) -> st.SearchStrategy[Loop]:
        bound = index[:2] in AXES
        kinds: tuple[Kind, ...] = ("B",) if bound else ("L", "P", "V", "U")
        return st.builds(
            Loop, st.sampled_from(kinds), st.just(index), st.integers(1, 2048), st.integers(0, 3)
        )

    return st.sampled_from(INDICES).flatmap(loop)


def equations() -> st.SearchStrategy[Equation]:
    return st.builds(
        Equation,
        accesses(st.sampled_from(INDICES).map(Index)),
        expressions(),
        st.none() | expressions(),
    )


def nests() -> st.SearchStrategy[Nest]:
    def around(inner: st.SearchStrategy[Equation | Nest]) -> st.SearchStrategy[Nest]:
        return st.builds(
            Nest,
            st.lists(loops(), min_size=1, max_size=3).map(tuple),
            st.lists(inner, min_size=1, max_size=2).map(tuple),
        )

    return around(equations() | around(equations()))


def programs() -> st.SearchStrategy[Program]:
    return st.lists(nests(), min_size=1, max_size=2).map(lambda found: Program(tuple(found)))
