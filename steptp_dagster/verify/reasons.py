"""The named reasons for which a candidate is rejected, and what each means."""

from typing import Final

SIGNATURE_CHANGED: Final = "signature-changed"
INVALID: Final = "invalid"
OVER_LIMITS: Final = "over-target-limits"
TOO_LARGE: Final = "too-large"
FIRST_TOUCH: Final = "first-touch-undecidable"
INPUT_OVERWRITTEN: Final = "input-overwritten"
OUT_OF_BOUNDS: Final = "out-of-bounds-write"
LAUNCH_LIMITS: Final = "launch-limits"
SHARED_MEMORY: Final = "shared-memory"
SCOPE_ACROSS_KERNELS: Final = "scope-across-kernels"
BUILD_ERROR: Final = "build-error"
NO_COMPILER: Final = "no-compiler"
NOT_EXECUTED: Final = "not-executed"
TOO_FEW_FAMILIES: Final = "too-few-families"
UNTAKEN_BRANCH: Final = "untaken-branch"
INTEGERS_DIFFER: Final = "integer-output-differs"
MATHEMATICS: Final = "different-mathematics"
INFINITY_LOST: Final = "infinities-differ"
NEW_NON_FINITE: Final = "new-non-finite-values"
UNSTABLE: Final = "less-accurate"
CRASHED: Final = "crashed"
TIMED_OUT: Final = "timed-out"
OUT_OF_MEMORY: Final = "out-of-memory"
INVALID_ORIGINAL: Final = "invalid-original"

#: Every reason with its meaning, in the order in which they are looked for.
REASONS: Final[dict[str, str]] = {
    INVALID_ORIGINAL: "the original itself is not valid LEIR; says nothing about the candidate",
    SIGNATURE_CHANGED: "a known variable was renamed, reshaped, retyped, added or dropped",
    INVALID: "the candidate is not valid LEIR, or could not be shown to be",
    OVER_LIMITS: "the candidate exceeds what the GPU target allows",
    TOO_LARGE: "one of the programs executes or stores more than the budget of one verdict",
    FIRST_TOUCH: "the lowering cannot place an implicit initialisation",
    LAUNCH_LIMITS: "a CUDA kernel would need a grid or block that no GPU launches",
    SHARED_MEMORY: "shared tensors, and what reductions over threads add, exceed a block's memory",
    SCOPE_ACROSS_KERNELS: "a local or shared tensor would have to outlive its CUDA kernel",
    BUILD_ERROR: "the target's compiler refused the program; the message is its own",
    NO_COMPILER: "the target's compiler is not installed here",
    NOT_EXECUTED: "built for a GPU that is not here: nothing is said of the values",
    INPUT_OVERWRITTEN: "running the program changed an input",
    OUT_OF_BOUNDS: "running the program wrote outside its tensors",
    TOO_FEW_FAMILIES: "the original is meaningful on too few input families to judge by",
    INTEGERS_DIFFER: "an integer or bool output differs",
    MATHEMATICS: "the programs differ in binary64: they compute different functions",
    INFINITY_LOST: "the original is infinite, in binary64 too, and the candidate is not",
    NEW_NON_FINITE: "the candidate overflows or gives NaN where the original does not",
    UNSTABLE: "in working precision the candidate is clearly less accurate than the original",
    UNTAKEN_BRANCH: "a condition that only the candidate asks came out one way on all data",
    CRASHED: "the process that ran the pair died",
    TIMED_OUT: "the pair did not finish in time",
    OUT_OF_MEMORY: "the pair did not fit into the memory of one worker",
}

#: Rejections that say something of the machine and its limits, not of the pair: another machine,
#: other limits or another load may judge otherwise, so that they are no verdicts to keep.
OF_THE_MACHINE: Final = frozenset({CRASHED, TIMED_OUT, OUT_OF_MEMORY, NO_COMPILER})
