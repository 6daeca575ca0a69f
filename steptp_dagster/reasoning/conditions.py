"""Preconditions in words: what holds where a step is legal, and what would go wrong otherwise.

A precondition is named by its failure (``dependence-reversed``), as refusals are. Someone who
learns the craft wants to read what has to hold, and what the step would break without it.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Condition:
    """``holds`` is a clause that is true where the step is legal, ``otherwise`` what would follow.

    Both are clauses without capital and stop, and without numbers and names.
    """

    holds: str
    otherwise: str


#: Preconditions that are seen at a glance: argued only where nothing else is.
OBVIOUS: Final = frozenset(
    {
        "index-name-taken",
        "known-variable",
        "layout-unchanged",
        "no-other-layout",
        "no-reader",
        "not-adjacent",
        "not-floating",
        "not-global",
        "nothing-dead",
        "order-immaterial",
        "row-of-one",
        "runs-once",
        "types-differ",
    }
)


def condition(name: str) -> Condition:
    """The words of a precondition; of one that a plug-in brings, made from its name."""
    return CONDITIONS.get(name) or Condition(
        f"it is not the case of {name.replace('-', ' ')}", "the step would not be legal"
    )


CONDITIONS: Final[dict[str, Condition]] = {
    "axis-limit-exceeded": Condition(
        "the loop fits the axis", "no GPU could launch that many blocks or threads"
    ),
    "axis-shared": Condition(
        "no other loop of the kernel stands on the axis",
        "sibling loops on one axis would have to agree on its extent",
    ),
    "axis-taken": Condition("the axis is free", "two nested loops would share one hardware index"),
    "base-may-be-negative": Condition(
        "the base is not negative", "its power or logarithm would not be a number"
    ),
    "base-may-be-zero": Condition(
        "the base is never zero", "a negative power of it would be infinite"
    ),
    "bound-inside": Condition(
        "no bound loop stands inside", "the loop would launch kernels instead of running in one"
    ),
    "bound-reduction": Condition(
        "the bound loop reduces nothing", "its threads would have to combine their results"
    ),
    "cache-too-large": Condition(
        "the copy fits its memory", "shared or local memory would overflow"
    ),
    "dependence-carried": Condition(
        "the iterations do not depend on each other",
        "one iteration would read or overwrite what another writes",
    ),
    "dependence-reversed": Condition(
        "no dependence is turned round", "an element would be read before it is written"
    ),
    "dependence-unknown": Condition(
        "dependences are decided", "a wrong result could not be ruled out"
    ),
    "digits-may-cancel": Condition(
        "no digits cancel that stood before", "a difference of nearly equal terms would lose digits"
    ),
    "digits-may-be-lost": Condition(
        "the original has kept its digits",
        "the result would have digits that the original has lost",
    ),
    "divisor-may-be-zero": Condition(
        "no divisor can be zero", "the table would hold a value that does not exist"
    ),
    "earlier-step-read": Condition(
        "only the last running value is read", "an intermediate one would be missing afterwards"
    ),
    "equations-differ": Condition(
        "both nests compute by the same equation", "one loop could not serve both"
    ),
    "exponent-may-be-large": Condition(
        "the exponent stays small", "the power would overflow where the original did not"
    ),
    "exponents-of-unknown-size": Condition(
        "the size of both exponents is known", "one factor could overflow while the other vanishes"
    ),
    "extent-too-small": Condition(
        "there is enough to divide", "partial results of one operand each save nothing"
    ),
    "extent-without-factor": Condition(
        "the factor leaves work on both sides", "one of the two loops would run once"
    ),
    "extent-without-tile": Condition(
        "both tiles leave work outside", "a tile as long as its loop tiles nothing"
    ),
    "factor-may-be-infinite": Condition(
        "no infinity gets in", "infinity would meet zero or itself, which leaves no number"
    ),
    "factor-may-not-be-positive": Condition(
        "the factor is positive", "a negative one would exchange the larger and the smaller value"
    ),
    "factor-may-vanish": Condition(
        "the factor is never zero", "dividing by it would not be allowed"
    ),
    "factor-of-unknown-size": Condition(
        "the size of the factor is known", "a product with it might overflow or vanish"
    ),
    "fractions-nearly-equal": Condition(
        "the two fractions are not nearly equal", "their difference would have few digits left"
    ),
    "guard-reads-tensor": Condition(
        "no bound is added to a guard that reads a tensor",
        "its read would happen in iterations beyond the end, too",
    ),
    "guarded": Condition("no guard is in the way", "some elements would not be written"),
    "guarded-by-reduction": Condition(
        "no guard depends on the reduction", "the accumulator could not be started apart"
    ),
    "guarded-producer": Condition(
        "the producer writes without a guard", "a reader might need a value that was never made"
    ),
    "guarded-update": Condition(
        "every step of the row takes part", "a guarded step would have to be skipped in the stream"
    ),
    "headers-differ": Condition(
        "the loop headers agree", "the statements would run in loops of another shape"
    ),
    "history-too-large": Condition(
        "every step takes no more room than the operands",
        "an array of steps would cost more memory than the pass reads",
    ),
    "index-name-taken": Condition("the new index is a fresh name", "two loops would share a name"),
    "index-not-bare": Condition(
        "the joined index stands bare in its subscripts", "the halves could not be told apart"
    ),
    "inside-parallel-loop": Condition(
        "no parallel loop stands around the place", "its iterations would share one copy"
    ),
    "intermediate-used-elsewhere": Condition(
        "only the two nests use the intermediate", "another reader would miss it"
    ),
    "iterations-dependent": Condition(
        "the iterations of both loops are independent", "the joined loop would mix their order"
    ),
    "kinds-differ": Condition(
        "both loops are of one kind", "one loop would have to run in two ways at once"
    ),
    "kernels-differ": Condition(
        "both results come from one kernel", "one pass could not compute both"
    ),
    "known-variable": Condition(
        "the tensor is an intermediate", "callers would no longer find it as they know it"
    ),
    "lanes-diverge": Condition(
        "all lanes take the same branch", "one vector would need several instructions"
    ),
    "lanes-unavailable": Condition(
        "the hardware has vectors of that many lanes", "no instruction would move them together"
    ),
    "launches-multiplied": Condition(
        "the number of launches stays", "each iteration would launch a kernel of its own"
    ),
    "layout-unchanged": Condition("the layout is another one", "nothing but the text would change"),
    "logarithms-may-cancel": Condition(
        "the logarithms do not cancel", "a difference of nearly equal terms would lose digits"
    ),
    "loops-differ": Condition(
        "both passes go over the same rows", "one pass could not take the place of both"
    ),
    "loops-inside": Condition("no loop stands inside", "each lane would run a loop of its own"),
    "nest-shared": Condition(
        "the statement stands alone in its nest", "its neighbours would be divided with it"
    ),
    "no-common-region": Condition(
        "all reads fall into one region", "a single copy could not serve them"
    ),
    "no-identity": Condition(
        "the operation has an identity to start from", "the accumulator would have no first value"
    ),
    "no-normalisation": Condition(
        "the row is normalised afterwards", "the streaming form would have no use"
    ),
    "no-other-layout": Condition(
        "another layout exists", "the copy would be laid out as the original is"
    ),
    "no-reader": Condition("something reads the producer", "there would be nowhere to inline to"),
    "no-reuse": Condition(
        "the copy is used more often than it is made", "copying would cost more than it saves"
    ),
    "not-adjacent": Condition(
        "the two nests are neighbours", "what stands between them would have to move"
    ),
    "not-alone": Condition(
        "nothing else shares the loops", "other statements would be rescaled or repeated"
    ),
    "not-associative": Condition(
        "the operation is associative", "partial results could not be combined"
    ),
    "not-between": Condition(
        "the value lies between the two sides",
        "one of the parts would grow beyond the whole, and could overflow where it does not",
    ),
    "not-floating": Condition("the values are floats", "a streaming form would bring nothing"),
    "not-global": Condition(
        "the tensor lives in global memory", "it is as close to the threads as a copy would be"
    ),
    "nothing-but-a-copy": Condition("the nest computes something", "it would only copy a copy"),
    "nothing-dead": Condition("there is something to remove", "the program would stay as it is"),
    "nothing-repeated": Condition("the part occurs again", "a name for it would save nothing"),
    "nothing-to-join": Condition(
        "the operators have inputs to put together", "there would be nothing to concatenate"
    ),
    "nothing-to-slice": Condition(
        "an input runs along the loop", "both halves would read the same"
    ),
    "numerator-may-be-infinite": Condition(
        "the numerator is a number", "one infinity would be subtracted from another"
    ),
    "operand-private": Condition(
        "the operands can be read at the new place",
        "a private value would have to outlive its nest",
    ),
    "operand-redefined": Condition(
        "the operands still hold the same values", "the reader would see later ones"
    ),
    "operand-written-later": Condition(
        "the operands are not written afterwards", "the joined operand would hold old values"
    ),
    "operand-written-between": Condition(
        "no operand changes in between", "the second occurrence would have another value"
    ),
    "operand-written-in-nest": Condition(
        "the nest does not write the operands", "the part would change while it is in use"
    ),
    "order-immaterial": Condition(
        "the order of the loops makes a difference", "the step would only rewrite the text"
    ),
    "order-matters": Condition(
        "the two statements do not touch one element", "one would see what the other left"
    ),
    "padded-copy-read-elsewhere": Condition(
        "only this nest reads the padded copy", "another reader would miss it"
    ),
    "padding-differs": Condition("both are padded alike", "the windows would see other borders"),
    "parallel-loop-carries": Condition(
        "the shared loops still carry nothing", "parallel iterations would depend on each other"
    ),
    "parallel-nested": Condition(
        "no other parallel loop is around or inside", "threads would have to start threads"
    ),
    "power-may-overflow": Condition(
        "no power can overflow that did not before", "infinity would appear where a number was"
    ),
    "private-state": Condition(
        "nothing private outlives its iteration", "a thread would find another one's value"
    ),
    "producer-is-output": Condition("the producer is no output", "the caller would miss a result"),
    "producer-is-update": Condition(
        "one plain assignment defines the tensor", "an accumulated value has no single expression"
    ),
    "read-too-early": Condition(
        "nobody reads an unfinished value", "the stream would hand out partial results"
    ),
    "reads-a-tensor": Condition(
        "the subscript reads no tensor", "its value would not be known before the run"
    ),
    "reads-target": Condition(
        "the part does not read the target", "it would change with every step"
    ),
    "recurrence": Condition("no step needs the one before", "the halves would not be independent"),
    "reduction-carried": Condition(
        "the loop accumulates nothing", "parallel iterations would race for one element"
    ),
    "reduction-loop-not-serial": Condition(
        "the row is walked one element after the other", "running values would have no order"
    ),
    "reduction-outside": Condition(
        "all reduction loops stand below", "the accumulator would be stored too early"
    ),
    "region-not-written": Condition(
        "the region is written before it is copied", "the copy would hold undefined elements"
    ),
    "result-decides": Condition(
        "no choice between other values hangs on the last digits",
        "a comparison could come out the other way",
    ),
    "results-interfere": Condition(
        "neither result is read by the other", "the joined loop would need a value too early"
    ),
    "rounding-observed": Condition(
        "no rounding is lost that a decision sees", "a comparison could come out the other way"
    ),
    "row-of-one": Condition("a row has several elements", "there would be nothing to run over"),
    "rows-differ": Condition(
        "sum, maximum and weights belong to the same row", "a row would be scaled by another's sum"
    ),
    "rows-overlap": Condition(
        "every row has an element of its own", "rows would overwrite each other's state"
    ),
    "runs-once": Condition(
        "the loop has several iterations", "there would be nothing to distribute"
    ),
    "scores-change": Condition(
        "the scores are not written in between", "the second pass would see other values"
    ),
    "scores-differ": Condition(
        "all passes use the same scores", "maximum and sum would speak of different values"
    ),
    "seam-not-aligned": Condition(
        "the seam falls between two steps of the window", "windows would start off their places"
    ),
    "several-nests": Condition(
        "one nest alone uses the tensor", "local and shared memory end with their kernel"
    ),
    "several-reduction-loops": Condition(
        "one loop runs over the row", "a row would have no single order"
    ),
    "several-writers": Condition(
        "one statement alone writes the tensor", "a read could mean one of several values"
    ),
    "shared-elements": Condition(
        "each element belongs to one block or thread", "data would pass where memory is private"
    ),
    "shared-memory": Condition(
        "nothing in shared memory changes hands", "blocks would find each other's values"
    ),
    "softmax-not-online": Condition(
        "maximum and sum run along with the row", "the weighted sum could not be rescaled"
    ),
    "start-changes": Condition(
        "every sum starts where it did", "an accumulator would start anew or not at all"
    ),
    "start-not-identity": Condition(
        "the row starts from the identity", "what was accumulated before would be lost"
    ),
    "start-not-zero": Condition(
        "the loops count from zero", "the joined index could not be taken apart"
    ),
    "state-not-private": Condition(
        "each row belongs to one thread", "its running state could not live in registers"
    ),
    "state-too-large": Condition(
        "the running state fits into registers", "it would spill to slow memory"
    ),
    "storage-too-large": Condition(
        "the tensor fits its memory", "shared or local memory would overflow"
    ),
    "stride-unsuitable": Condition(
        "the lanes touch neighbours", "a vector moves neighbouring elements only"
    ),
    "sum-private-elsewhere": Condition(
        "the sum can be read where it is needed", "a private value would have to outlive its nest"
    ),
    "table-too-large": Condition(
        "the table stays small", "looking a subscript up would cost more than computing it"
    ),
    "tail-uncovered": Condition(
        "the last, shorter part is covered", "elements would be left out or written beyond the end"
    ),
    "target-continues": Condition(
        "the result starts fresh", "an earlier value would be lost or counted twice"
    ),
    "target-misses-loop": Condition(
        "the written subscript uses every loop", "an element would be written several times"
    ),
    "target-not-bare": Condition(
        "the loop's index stands bare in the target", "the result could not be cut in two"
    ),
    "target-not-invertible": Condition(
        "the written subscript tells the iteration", "a read could not be traced to its definition"
    ),
    "target-repeats": Condition(
        "each element is reduced once", "a second round would start from the first one's result"
    ),
    "term-may-be-infinite": Condition(
        "the term is a number", "an infinity minus itself would leave no number"
    ),
    "term-may-be-larger": Condition(
        "no term is larger than what it came from", "digits would drown in a larger term"
    ),
    "term-may-be-negative": Condition(
        "all terms have one sign", "terms of both signs could cancel"
    ),
    "thread-axes-differ": Condition(
        "both nests use the same thread axes", "one kernel would need two shapes of thread block"
    ),
    "threads-differ": Condition(
        "all statements of the kernel keep the same axes", "some threads would run others' work"
    ),
    "threads-misplaced": Condition(
        "the place suits the memory", "a copy would be made by the wrong threads"
    ),
    "too-large": Condition(
        "the new tensor stays small", "storing it would cost more than computing it again"
    ),
    "too-many-equations": Condition(
        "the code stays short enough", "the instruction cache would overflow"
    ),
    "too-many-iterations": Condition("the loop is short", "written out it would be too much code"),
    "type-changes": Condition(
        "every operation keeps its type", "values would be rounded at other places"
    ),
    "type-mixed": Condition(
        "operands and target have one type", "partial results would round differently"
    ),
    "types-differ": Condition(
        "all operations run in one type", "values would be rounded at other places"
    ),
    "undoes-shift": Condition(
        "the shift by the maximum stays", "large scores would overflow in the exponential"
    ),
    "value-may-overflow": Condition(
        "no value can overflow that did not before", "infinity would appear where a number was"
    ),
    "vector-not-innermost": Condition(
        "vector loops stay innermost", "a vector would have to hold a loop"
    ),
    "vector-too-wide": Condition(
        "the vector fits one access", "no instruction moves that many bytes"
    ),
    "vector-unaligned": Condition(
        "every vector starts at a multiple of its size", "an unaligned access would fault"
    ),
    "written-elsewhere": Condition(
        "nothing else writes the row's state", "the running value would be overwritten"
    ),
    "written-in-nest": Condition("the nest does not write the tensor", "the copy would grow stale"),
}
