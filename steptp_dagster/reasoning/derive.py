"""Deriving facts: one small function per kind, from the programs before and after a step alone.

``derive(fact, before, after)`` computes what the value of a fact must be; ``check`` compares it
with what the strategy claimed. A path is a tuple of integers (``leir.walk``); a path of a nest
stands for everything in it. Text is canonical text. Order is text order unless said otherwise.

Kinds with side ``before`` or ``after``:

===================  ==================  ======================================================
kind                 arguments           value
===================  ==================  ======================================================
statement_text       path                the statement's text
loops_text           path                the loop header of a nest
header_text          path                all loops at and around the statement, as text
target_text          path                left side of an equation
value_text           path                right side of an equation
guard_text           path                guard of an equation, ``""`` without one
renamed_value        path, renaming      right side with indices replaced, ``((from, to), ...)``
statements           path                number of statements in a nest; ``()``: of nests
loops_around         path                indices of the loops around it, a nest's own included
loop_extent          path, index         of the loop ``index`` at or around the statement
loop_start           path, index         of the loop ``index`` at or around the statement
loop_kind            path, index         of the loop ``index`` at or around the statement
trip_count           path                product of the extents of ``loops_around``, guards aside
reads                path                names of the tensors read
writes               path                names of the tensors written
read_texts           path, tensor        its distinct read accesses, as text
write_texts          path, tensor        its distinct written accesses, as text
element_reads        path, tensor        reads of it times the trip counts of its equations
element_writes       path, tensor        writes of it times the trip counts of its equations
uses_index           path, tensor, index whether any of its accesses has ``index`` in a subscript
readers_of           tensor              paths of the equations that read it
writers_of           tensor              paths of the equations that write it
role_of              tensor              input, param, const, output or intermediate
is_output            tensor              whether it is an output
dtype_of             tensor              its dtype
scope_of             tensor              its scope: g, s or l
shape_of             tensor              its shape (local coordinates for ``s`` and ``l``)
elements_of          tensor              number of elements of one instance
bytes_of             tensor              size of one instance in bytes
evaluation_dtype     dtype               the dtype in which values of this dtype are computed
expression_dtype     path                the dtype of the right side of an equation
update_kind          path                assignment, update or recurrence
update_op            path                ``+ * max min``, ``""`` where it is no pure update
update_init          path                identity, continue or ambiguous; ``""`` likewise
reduction_loops      path                indices of its reduction loops
depends              path, index         none, reduction, dependence, unknown: what it carries
conflict             path, path          none, dependence, unknown: between statements of a body
dead_equations                           paths of the equations that no output depends on
cost                 figure              a figure of ``leir.cost`` (``evidence.EFFECT_FIGURES``)
interchange          path, index, index  exact, reassociated, illegal, unknown: to swap the loops
loops_inside         path, index         indices of the loops inside a loop of a nest
axes_in_use          path                hardware axes around, at and inside it
parallel_loops       path                indices of the P loops around, at and inside it
launch_loops         path                indices of the serial loops around its kernel's B loops
thread_axes          path                sets of thread axes that its kernel's equations have
block_threads        path                threads in a block of its kernel
private_tensors      path                tensors in scope s or l that it uses
local_bytes          path                bytes of local tensors that a thread of its kernel keeps
infinity_tests       path                values that an equation compares with -inf, as text
strides              path, index         distinct steps of its accesses along the loop
unaligned            path, index         tensors accessed off multiples of the loop's extent
vector_bytes         path, index         bytes of the widest access along the whole loop
lane_conditions      path, index         guards and conditions that depend on the loop, as text
unrolled_equations   path                equations that its U loops make of it
part_text            path, place         the part of a right side at a place in it
stands_for           path, text, letter  whether what a letter of a law stands for is a part of it
stands_for_minus     path, text, letter  whether minus what a letter stands for is subtracted in it
part_dtype           path, text          the dtype in which a part of a right side is computed
value_is             path, text, claim   why a value is positive, nonzero, finite, ...
not_above            path, text, text    whether the first value never exceeds the second
is_shift             path, text          whether a value is a score minus its row's maximum
power_bound          path, text          a power of two that its magnitude does not exceed
new_bound            path, text          the same, if what the equation computes already is finite
factor_of            path, three texts   whether a factor times the third is the second
constant_sum         path, text, text    what two values add up to, whatever they read
constant_difference  path, text, text    by how much the second exceeds the first, likewise
lost_bits            path, text, text    bits that a difference of their inverses loses at most
alike_data           tensor, tensor      whether both have one role and type and no range
range_kept           path, text, texts   whether new values leave a type only where a part does
at_least             path, text, text    a bound between two values, the first not below it
takes_infinity       path, text          whether an infinity may reach a value
sources_of           path, text          inputs and parameters that a value depends on
decided_by           tensor              paths of the equations that decide by values made of it
amplified_by         tensor              paths of the differences between values related to it
sites                strategy            number of sites that a strategy lists
alternative          strategy, site      a figure of ``leir.cost`` after a step at another site
===================  ==================  ======================================================

Kinds with side ``pair``:

===================  ==================  ======================================================
divides              n, f                whether f divides n without remainder
product              n, ...              their product
quotient             n, f                n // f
remainder            n, f                n % f
at_most              n, limit            whether n <= limit
changed_nests                            paths of the replaced nests, paths of the new ones
new_tensors                              tensors that only the program after the step has
removed_tensors                          tensors that only the program before the step has
same_signature                           whether the known variables are the same
same_text            path, path          whether a statement before and one after are equal
cost_change          figure              figure after minus figure before
law                  rule, form          the law of an algebraic rule, in letters; one of its forms
headroom             dtype               the power of two that data is taken not to exceed
same_algebra         path                whether both right sides are one function
same_value           path, text, text    whether a part before and one after are one function
===================  ==================  ======================================================
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.reasoning import algebra, choices, loops, pairs, properties, structure, trials
from steptp_dagster.reasoning.kinds import Derivation, DerivationError, path_of
from steptp_dagster.strategies.facts import Fact, Value

ONE_SIDED: Final[Mapping[str, Derivation]] = {
    **structure.KINDS,
    **properties.KINDS,
    **loops.KINDS,
    **algebra.KINDS,
    **trials.KINDS,
    **choices.KINDS,
}
PAIRED: Final[Mapping[str, Derivation]] = {**pairs.KINDS, **algebra.PAIRED, **trials.PAIRED}

__all__ = ["ONE_SIDED", "PAIRED", "DerivationError", "derive", "path_of"]


def derive(fact: Fact, before: SignedProgram, after: SignedProgram) -> Value:
    """What the value of ``fact`` is; its own ``value`` is not looked at.

    Raises DerivationError for an unknown kind, a side that the kind does not have, arguments
    that do not fit it, or a question without an answer (the extent of a loop that is not there).
    """
    if fact.side == "pair":
        function = PAIRED.get(fact.kind)
        programs: tuple[SignedProgram, ...] = (before, after)
    else:
        function = ONE_SIDED.get(fact.kind)
        programs = (before if fact.side == "before" else after,)
    if function is None:
        raise DerivationError(f"no derivation of {fact.kind!r} for side {fact.side!r}")
    _check_arity(fact, function, len(programs))
    return function(*programs, *fact.arguments)


def _check_arity(fact: Fact, function: Callable[..., Value], programs: int) -> None:
    try:
        inspect.signature(function).bind(*(None,) * programs, *fact.arguments)
    except TypeError as error:
        raise DerivationError(f"{fact.kind} of {fact.arguments}: {error}") from error
