"""One phrase per kind of fact: what a fact says, in English.

A phrase is a clause without capital and stop. It states the fact and nothing else: every number
and name in it is one of the fact's own.
"""

from collections.abc import Callable, Mapping
from typing import Final

from steptp_dagster.leir.ast import KINDS as LOOP_KINDS
from steptp_dagster.leir.dtypes import SCOPES
from steptp_dagster.reasoning.algebra_phrases import PHRASES as ALGEBRA_PHRASES
from steptp_dagster.reasoning.kinds import path_of
from steptp_dagster.reasoning.wording import code, codes, listed, plain, statement, statements
from steptp_dagster.strategies.facts import Fact, Value

Phrase = Callable[[Fact], str]

_ROLES: Final = {
    "input": "an input",
    "param": "a parameter",
    "const": "a constant",
    "output": "an output",
    "intermediate": "an intermediate",
}
_DEPENDS: Final = {
    "none": "carries no dependence",
    "reduction": "carries nothing but an accumulation",
    "dependence": "carries a dependence",
    "unknown": "may carry a dependence",
}
_CONFLICTS: Final = {
    "none": "do not conflict",
    "dependence": "conflict",
    "unknown": "may conflict",
}
_UPDATES: Final = {
    "assignment": "a plain assignment",
    "update": "a pure update",
    "recurrence": "a recurrence",
}
_INITS: Final = {
    "identity": "starts from the identity of its operation",
    "continue": "continues from values written earlier",
    "ambiguous": "has no unique start",
    "": "is no pure update",
}
FIGURES: Final = {
    "flops": "flops",
    "iterations": "iterations",
    "bytes_read_g": "global bytes read",
    "bytes_written_g": "global bytes written",
    "bytes_read_s": "shared bytes read",
    "bytes_written_s": "shared bytes written",
    "bytes_read_l": "local bytes read",
    "bytes_written_l": "local bytes written",
    "launches": "kernel launches",
    "at_once": "instances at once",
    "barriers": "barriers",
    "nests": "nests",
    "loops": "loops",
    "equations": "equations",
    "loop_depth": "loop depth",
}


def phrase(fact: Fact) -> str:
    """The clause that states a fact. Raises KeyError for a kind without a phrase."""
    return PHRASES[fact.kind](fact)


def _where(fact: Fact) -> str:
    return statement(path_of(fact.arguments[0]))


def _loop(fact: Fact) -> str:
    return f"loop {code(str(fact.arguments[1]))} at {_where(fact)}"


def _name(fact: Fact) -> str:
    return code(str(fact.arguments[0]))


def _paths(value: Value) -> str:
    if not isinstance(value, tuple):
        return statements(())
    return statements(path_of(path) for path in value)


def _text(fact: Fact) -> str:
    return f"{_where(fact)} is {codes(fact.value)}"


def _renamed(fact: Fact) -> str:
    renaming = fact.arguments[1]
    pairs = renaming if isinstance(renaming, tuple) else ()
    changes = [
        f"{code(str(entry[1]))} for {code(str(entry[0]))}"
        for entry in pairs
        if isinstance(entry, tuple) and entry[0] != entry[1]
    ]
    written = f", with {listed(changes)}," if changes else ""
    return f"the right side of {_where(fact)}{written} is {codes(fact.value)}"


def _statements(fact: Fact) -> str:
    unit = "statement" if fact.arguments[0] else "nest"
    return f"{_where(fact)} holds {fact.value} {unit}{'' if fact.value == 1 else 's'}"


def _guard(fact: Fact) -> str:
    if fact.value == "":
        return f"{_where(fact)} has no guard"
    return f"{_where(fact)} holds only where {codes(fact.value)}"


def _accesses(verb: str) -> Phrase:
    def build(fact: Fact) -> str:
        tensor = code(str(fact.arguments[1]))
        if not fact.value:
            return f"{_where(fact)} does not {verb} {tensor}"
        return f"{_where(fact)} {verb}s {tensor} as {codes(fact.value)}"

    return build


def _elements(verb: str) -> Phrase:
    def build(fact: Fact) -> str:
        times = "once" if fact.value == 1 else f"up to {fact.value} times"
        return f"{_where(fact)} {verb} {code(str(fact.arguments[1]))} {times}"

    return build


def _shape(fact: Fact) -> str:
    extents = fact.value if isinstance(fact.value, tuple) else ()
    if not extents:
        return f"{_name(fact)} is a scalar"
    return f"{_name(fact)} has shape {' x '.join(str(n) for n in extents)}"


def _role(fact: Fact) -> str:
    return f"{_name(fact)} is {_ROLES[str(fact.value)]}"


def _output(fact: Fact) -> str:
    return f"{_name(fact)} is {'an output' if fact.value else 'no output'}"


def _scope(fact: Fact) -> str:
    return f"{_name(fact)} stands in {SCOPES[str(fact.value)].split(',')[0]}"


def _uses(fact: Fact) -> str:
    _, tensor, index = fact.arguments
    verb = "depend" if fact.value else "do not depend"
    return f"the subscripts of {code(str(tensor))} at {_where(fact)} {verb} on {code(str(index))}"


def _loops_around(fact: Fact) -> str:
    return f"the loops of {_where(fact)} are {codes(fact.value)}"


def _reductions(fact: Fact) -> str:
    if not fact.value:
        return f"{_where(fact)} reduces over no loop"
    return f"{_where(fact)} reduces over {codes(fact.value)}"


def _update_op(fact: Fact) -> str:
    if fact.value == "":
        return f"{_where(fact)} accumulates nothing"
    return f"{_where(fact)} accumulates with {codes(fact.value)}"


def _conflict(fact: Fact) -> str:
    pair = statements(path_of(path) for path in fact.arguments)
    return f"{pair} {_CONFLICTS[str(fact.value)]}"


def _dead(fact: Fact) -> str:
    if not fact.value:
        return "every equation has an effect on an output"
    return f"no output depends on {_paths(fact.value)}"


def _cost(fact: Fact) -> str:
    return f"{FIGURES[str(fact.arguments[0])]}: {fact.value}"


def _cost_change(fact: Fact) -> str:
    figure = FIGURES[str(fact.arguments[0])]
    return f"the count of {figure} changes by {fact.value}"


def _sites(fact: Fact) -> str:
    return f"this is {'the only site' if fact.value == 1 else f'one of {fact.value} sites'}"


def _alternative(fact: Fact) -> str:
    """The other site by the parameters in which it differs, and what it would lead to."""
    different, figure = fact.arguments[-2:]
    pairs = different if isinstance(different, tuple) else ()
    other = listed(f"{p[0]} = {plain(p[1])}" for p in pairs if isinstance(p, tuple))
    if figure == "":
        return f"{other} instead would leave all counts as they become here"
    return f"with {other} instead, {FIGURES[str(figure)]} would be {fact.value}"


def _divides(fact: Fact) -> str:
    n, factor = fact.arguments
    return f"{factor} {'divides' if fact.value else 'does not divide'} {n}"


def _product(fact: Fact) -> str:
    return f"{' * '.join(str(n) for n in fact.arguments)} = {fact.value}"


def _at_most(fact: Fact) -> str:
    n, limit = fact.arguments
    return f"{n} {'does not exceed' if fact.value else 'exceeds'} {limit}"


def _changed(fact: Fact) -> str:
    gone, come = fact.value if isinstance(fact.value, tuple) else ((), ())
    if gone == come:
        return f"{_paths(gone)} changed in place"
    return f"{_paths(gone)} became {_paths(come)}"


def _same(fact: Fact) -> str:
    old, new = (statement(path_of(path)) for path in fact.arguments)
    verb = "is" if fact.value else "is not"
    return f"{old} before {verb} the same as {new} after"


def _signature(fact: Fact) -> str:
    return f"inputs, parameters and outputs are {'unchanged' if fact.value else 'changed'}"


_EXCHANGES: Final = {
    "exact": "may change places, bit for bit",
    "reassociated": "may change places, up to rounding",
    "illegal": "may not change places",
    "unknown": "may not change places as far as is known",
}


def _interchange(fact: Fact) -> str:
    first, second = (code(str(name)) for name in fact.arguments[1:])
    return f"loops {first} and {second} at {_where(fact)} {_EXCHANGES[str(fact.value)]}"


def _of_statement(some: str, none: str) -> Phrase:
    """``{}`` in ``some`` is the list of names; the statement comes first."""

    def build(fact: Fact) -> str:
        said = some.format(codes(fact.value)) if fact.value else none
        return f"{_where(fact)} {said}"

    return build


def _of_loop(some: str, none: str) -> Phrase:
    def build(fact: Fact) -> str:
        return f"{_loop(fact)} {some.format(codes(fact.value)) if fact.value else none}"

    return build


def _thread_axes(fact: Fact) -> str:
    kernel = f"the equations of the kernel of {_where(fact)}"
    if fact.value == ("none",):
        return f"{kernel} stand under no thread axis"
    return f"{kernel} stand under the thread axes {codes(fact.value)}"


def _strides(fact: Fact) -> str:
    steps = fact.value if isinstance(fact.value, tuple) else ()
    return f"accesses along {_loop(fact)} step by {listed(str(s) for s in steps)}"


def _names(one: str, none: str) -> Phrase:
    def build(fact: Fact) -> str:
        return f"{one} {codes(fact.value)}" if fact.value else none

    return build


PHRASES: Final[Mapping[str, Phrase]] = {
    "statement_text": _text,
    "sites": _sites,
    "alternative": _alternative,
    "loops_text": lambda f: f"the loops of {_where(f)} are {codes(f.value)}",
    "header_text": lambda f: f"{_where(f)} runs under {codes(f.value)}",
    "target_text": lambda f: f"{_where(f)} writes {codes(f.value)}",
    "value_text": lambda f: f"the right side of {_where(f)} is {codes(f.value)}",
    "guard_text": _guard,
    "renamed_value": _renamed,
    "statements": _statements,
    "loops_around": _loops_around,
    "loop_extent": lambda f: f"{_loop(f)} has extent {f.value}",
    "loop_start": lambda f: f"{_loop(f)} starts at {f.value}",
    "loop_kind": lambda f: f"{_loop(f)} is {LOOP_KINDS[str(f.value)]}",
    "trip_count": lambda f: f"{_where(f)} has {f.value} iteration{'' if f.value == 1 else 's'}",
    "reads": lambda f: f"{_where(f)} reads {codes(f.value)}",
    "writes": lambda f: f"{_where(f)} writes {codes(f.value)}",
    "read_texts": _accesses("read"),
    "write_texts": _accesses("write"),
    "element_reads": _elements("reads elements of"),
    "element_writes": _elements("writes elements of"),
    "uses_index": _uses,
    "readers_of": lambda f: f"{_name(f)} is read by {_paths(f.value)}",
    "writers_of": lambda f: f"{_name(f)} is written by {_paths(f.value)}",
    "role_of": _role,
    "is_output": _output,
    "dtype_of": lambda f: f"{_name(f)} is stored as {codes(f.value)}",
    "scope_of": _scope,
    "shape_of": _shape,
    "elements_of": lambda f: f"{_name(f)} has {f.value} element{'' if f.value == 1 else 's'}",
    "bytes_of": lambda f: f"{_name(f)} takes {f.value} byte{'' if f.value == 1 else 's'}",
    "evaluation_dtype": lambda f: f"values of {_name(f)} are computed in {codes(f.value)}",
    "expression_dtype": lambda f: f"the right side of {_where(f)} is computed in {codes(f.value)}",
    "update_kind": lambda f: f"{_where(f)} is {_UPDATES[str(f.value)]}",
    "update_op": _update_op,
    "update_init": lambda f: f"{_where(f)} {_INITS[str(f.value)]}",
    "reduction_loops": _reductions,
    "depends": lambda f: f"{_loop(f)} {_DEPENDS[str(f.value)]}",
    "conflict": _conflict,
    "dead_equations": _dead,
    "cost": _cost,
    "interchange": _interchange,
    "loops_inside": _of_loop("runs around {}", "contains no other loop"),
    "axes_in_use": _of_statement("runs on the axes {}", "runs on no hardware axis"),
    "parallel_loops": _of_statement(
        "has no parallel loops around or in it but {}", "has no parallel loop around or in it"
    ),
    "launch_loops": _of_statement("is launched once per iteration of {}", "is launched once"),
    "thread_axes": _thread_axes,
    "block_threads": lambda f: f"a block of {_where(f)} has {f.value} threads",
    "private_tensors": _of_statement(
        "keeps {} in shared or local memory", "keeps nothing in shared or local memory"
    ),
    "local_bytes": lambda f: f"a thread of {_where(f)} keeps {f.value} bytes",
    "infinity_tests": _of_statement(
        "tests {} for minus infinity before it takes a difference", "tests nothing for infinity"
    ),
    "strides": _strides,
    "unaligned": _of_loop(
        "would move {} across vector boundaries", "moves whole aligned vectors only"
    ),
    "vector_bytes": lambda f: f"{_loop(f)} moves {f.value} bytes at once",
    "lane_conditions": _of_loop("decides the conditions {}", "decides no condition"),
    "unrolled_equations": lambda f: f"written out, {_where(f)} is {f.value} equations",
    "divides": _divides,
    "product": _product,
    "quotient": lambda f: f"{f.arguments[0]} // {f.arguments[1]} = {f.value}",
    "remainder": lambda f: f"{f.arguments[0]} % {f.arguments[1]} = {f.value}",
    "at_most": _at_most,
    "changed_nests": _changed,
    "new_tensors": _names("the step adds", "the step adds no tensor"),
    "removed_tensors": _names("the step removes", "the step removes no tensor"),
    "same_signature": _signature,
    "same_text": _same,
    "cost_change": _cost_change,
    **ALGEBRA_PHRASES,
}
