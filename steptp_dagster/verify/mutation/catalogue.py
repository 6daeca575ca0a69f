"""All kinds of mistake by name, those that say more in front: a program counts for one of them."""

from collections.abc import Mapping
from typing import Final

from steptp_dagster.verify.mutation import accumulation, bounds, structure, terms
from steptp_dagster.verify.mutation.edits import Kind

KINDS: Final[Mapping[str, Kind]] = {
    "dropped-rescale": accumulation.dropped_rescale,
    "lost-last-tile": bounds.lost_last_tile,
    "double-count": bounds.double_count,
    "wrong-combine": accumulation.wrong_combine,
    "lost-accumulation": accumulation.lost_accumulation,
    "missing-start": accumulation.missing_start,
    "wrong-start": accumulation.wrong_start,
    "repeated-statement": accumulation.repeated_statement,
    "repeated-nest": structure.repeated_nest,
    "dropped-mask": terms.dropped_mask,
    "swapped-branches": terms.swapped_branches,
    "comparison-boundary": bounds.comparison_boundary,
    "wrong-guard": bounds.wrong_guard,
    "extent-off-by-one": bounds.extent_off_by_one,
    "start-off-by-one": bounds.start_off_by_one,
    "wrong-offset": bounds.wrong_offset,
    "wrong-axis": terms.wrong_axis,
    "wrong-tensor": terms.wrong_tensor,
    "swapped-operands": terms.swapped_operands,
    "dropped-term": terms.dropped_term,
    "wrong-operator": terms.wrong_operator,
    "wrong-function": terms.wrong_function,
    "wrong-constant": terms.wrong_constant,
    "narrow-temporary": terms.narrow_temporary,
    "race": structure.race,
    "wrong-scope": structure.wrong_scope,
    "wrong-order": structure.wrong_order,
    "wrong-loop-order": structure.wrong_loop_order,
    "wrong-fusion": structure.wrong_fusion,
    "missing-statement": structure.missing_statement,
    "over-limits": structure.over_limits,
}
