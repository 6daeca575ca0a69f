"""All strategies by name.

Adding a strategy takes three touches: its file, its line here, its fixtures
(``tests/fixtures/strategies/<name>.txt``). Strategies of users come as plug-ins (``plugins``).
"""

from collections.abc import Mapping
from typing import Final

from steptp_dagster.strategies.base import Strategy
from steptp_dagster.strategies.graph.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)
from steptp_dagster.strategies.graph.compute_inline import ComputeInline
from steptp_dagster.strategies.graph.dead_code_elimination import DeadCodeElimination
from steptp_dagster.strategies.graph.expression_reorder import ExpressionReorder
from steptp_dagster.strategies.graph.expression_splitting import ExpressionSplitting
from steptp_dagster.strategies.graph.operator_fission import OperatorFission
from steptp_dagster.strategies.graph.operator_fusion import OperatorFusion
from steptp_dagster.strategies.graph.tensor_concat_to_fuse_operators import (
    TensorConcatToFuseOperators,
)
from steptp_dagster.strategies.graph.tensor_split_to_decouple_operators import (
    TensorSplitToDecoupleOperators,
)
from steptp_dagster.strategies.math.additive_split import AdditiveSplit
from steptp_dagster.strategies.math.apart import Apart
from steptp_dagster.strategies.math.cancellation import Cancellation
from steptp_dagster.strategies.math.collect import Collect
from steptp_dagster.strategies.math.expand_cancellation import ExpandCancellation
from steptp_dagster.strategies.math.expand_collect import ExpandCollect
from steptp_dagster.strategies.math.expand_factorization import ExpandFactorization
from steptp_dagster.strategies.math.expand_log import ExpandLog
from steptp_dagster.strategies.math.expand_powsimp import ExpandPowSimp
from steptp_dagster.strategies.math.exponential_split import ExponentialSplit
from steptp_dagster.strategies.math.factorization import Factorization
from steptp_dagster.strategies.math.flashattention_rolling_state import FlashattentionRollingState
from steptp_dagster.strategies.math.flashattention_wo_tiling import FlashattentionWoTiling
from steptp_dagster.strategies.math.logsimp import LogSimp
from steptp_dagster.strategies.math.multiplicative_split import MultiplicativeSplit
from steptp_dagster.strategies.math.normal_loop_max_to_prefix_max import NormalLoopMaxToPrefixMax
from steptp_dagster.strategies.math.normal_loop_reduction_to_prefix_reduction import (
    NormalLoopReductionToPrefixReduction,
)
from steptp_dagster.strategies.math.normal_loop_summation_on_exp_to_prefix_summation_on_exp import (
    NormalLoopSummationOnExpToPrefixSummationOnExp,
)
from steptp_dagster.strategies.math.normal_matmul_to_prefix_matmul_based_on_online_softmax import (
    NormalMatmulToPrefixMatmulBasedOnOnlineSoftmax,
)
from steptp_dagster.strategies.math.online_softmax import OnlineSoftmax
from steptp_dagster.strategies.math.partially_equivalent_then_correct import (
    PartiallyEquivalentThenCorrect,
)
from steptp_dagster.strategies.math.powsimp import PowSimp
from steptp_dagster.strategies.math.together import Together
from steptp_dagster.strategies.memory.cache_read_write import CacheReadWrite
from steptp_dagster.strategies.memory.layout_transformation import LayoutTransformation
from steptp_dagster.strategies.memory.precompute_indices import PrecomputeIndices
from steptp_dagster.strategies.memory.set_storage_layout import SetStorageLayout
from steptp_dagster.strategies.memory.set_storage_scope import SetStorageScope
from steptp_dagster.strategies.operator.loop_binding import LoopBinding
from steptp_dagster.strategies.operator.loop_fusion import LoopFusion
from steptp_dagster.strategies.operator.loop_parallelization import LoopParallelization
from steptp_dagster.strategies.operator.loop_reorder import LoopReorder
from steptp_dagster.strategies.operator.loop_split import LoopSplit
from steptp_dagster.strategies.operator.loop_tiling import LoopTiling
from steptp_dagster.strategies.operator.loop_unrolling import LoopUnrolling
from steptp_dagster.strategies.operator.loop_vectorization import LoopVectorization
from steptp_dagster.strategies.operator.reduction_factorization import ReductionFactorization
from steptp_dagster.strategies.plugins import PluginFault, load

_ALL: Final[tuple[type[Strategy], ...]] = (
    ComputeInline,
    TensorConcatToFuseOperators,
    TensorSplitToDecoupleOperators,
    CommonSubexpressionElimination,
    ExpressionSplitting,
    OperatorFission,
    DeadCodeElimination,
    ExpressionReorder,
    OperatorFusion,
    LoopSplit,
    ReductionFactorization,
    CacheReadWrite,
    OnlineSoftmax,
    SetStorageScope,
    LoopReorder,
    SetStorageLayout,
    LoopBinding,
    LayoutTransformation,
    LoopVectorization,
    LoopParallelization,
    LoopUnrolling,
    PrecomputeIndices,
    LoopFusion,
    LoopTiling,
    Factorization,
    ExpandFactorization,
    ExpandCollect,
    ExpandCancellation,
    Collect,
    Cancellation,
    Apart,
    Together,
    PartiallyEquivalentThenCorrect,
    PowSimp,
    ExpandPowSimp,
    ExpandLog,
    LogSimp,
    ExponentialSplit,
    MultiplicativeSplit,
    AdditiveSplit,
    NormalLoopMaxToPrefixMax,
    NormalLoopSummationOnExpToPrefixSummationOnExp,
    FlashattentionWoTiling,
    FlashattentionRollingState,
    NormalMatmulToPrefixMatmulBasedOnOnlineSoftmax,
    NormalLoopReductionToPrefixReduction,
)


def own_strategies() -> Mapping[str, Strategy]:
    """One instance of every strategy of the library by name, in the order of the names."""
    found = {strategy.name: strategy() for strategy in _ALL}
    if len(found) != len(_ALL):
        raise ValueError("two strategies have one name")
    return dict(sorted(found.items()))


def strategies() -> Mapping[str, Strategy]:
    """One instance of every strategy by name, plug-ins included, in the order of the names."""
    own = own_strategies()
    more = {found.name: found() for found in load(frozenset(own)).classes}
    return dict(sorted({**own, **more}.items()))


def faults() -> tuple[PluginFault, ...]:
    """The plug-ins that give no strategy, and why."""
    return load(frozenset(own_strategies())).faults


def strategy(name: str) -> Strategy:
    """The strategy of that name. Raises KeyError that lists the names otherwise."""
    known = strategies()
    if name not in known:
        broken = "".join(f"; {fault}" for fault in faults())
        raise KeyError(f"no strategy {name!r}; one of {', '.join(known)}{broken}")
    return known[name]
