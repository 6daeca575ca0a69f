"""Intermediate tensors without the dimensions that nothing uses.

A dimension of extent 1 has the subscript 0 wherever the tensor is written or read. Known variables
keep their shapes, whatever they are; an intermediate says the same without such dimensions, and its
accesses are shorter in every program that follows.
"""

from collections.abc import Collection
from dataclasses import replace

from steptp_dagster.leir.ast import Access, Expr, Int, Program
from steptp_dagster.leir.walk import accesses_in, equations, expressions, map_expr, map_program


def squeezed(program: Program, known: Collection[str]) -> Program:
    """The program with no dimension of an intermediate (not ``known``) that is 0 everywhere."""
    used: dict[str, set[int]] = {}
    for located in equations(program):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                used.setdefault(access.name, set()).update(
                    i for i, subscript in enumerate(access.subscripts) if subscript != Int(0)
                )

    def shorter(expr: Expr) -> Expr:
        if not isinstance(expr, Access) or expr.name in known:
            return expr
        kept = tuple(s for i, s in enumerate(expr.subscripts) if i in used[expr.name])
        return expr if len(kept) == len(expr.subscripts) else replace(expr, subscripts=kept)

    return map_program(program, lambda expr: map_expr(expr, shorter))
