"""Programs of our own that need logarithms, powers, quotients and collecting of terms.

The published workloads hardly contain such expressions, so algebraic strategies would have
little to work on. These are formulas that people do write, in the form in which they write them.
"""

from collections.abc import Mapping
from typing import Final

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import LARGE_COLUMNS, LARGE_ROWS, MEDIUM, WIDE

_POOLS: Final = {"rows": (1, *MEDIUM), "columns": WIDE}
_LARGE: Final = {"rows": LARGE_ROWS, "columns": LARGE_COLUMNS}
_MATRIX: Final = ("rows", "columns")
#: Value ranges by what an input means.
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "positive": (0.125, 8.0),
    "scale": (0.25, 4.0),
    "probability": (0.125, 0.875),
    "step": (1.0, 1000.0),
    "unit": (0.0, 1.0),
    "shape": (2.25, 8.0),
}


def _work(shape: Shape) -> int:
    return 8 * shape["rows"] * shape["columns"]


def _input(name: str, kind: str = "", extents: tuple[str, ...] = _MATRIX) -> Input:
    """An input of any value, or within the range of its kind."""
    low, high = _RANGES.get(kind, (None, None))
    return Input(name, extents, low=low, high=high)


def _source(
    program: str, family: str, module: str, *inputs: Input, arguments: tuple[str, ...] = ()
) -> Source:
    return Source(
        program, 1, family, module, inputs, _POOLS, _LARGE, _work, arguments, origin="steptp"
    )


def _density(program: str, *inputs: Input) -> Source:
    return _source(program, "density", f"likelihoods:{program}", *inputs)


def _likelihood(program: str, *inputs: Input) -> Source:
    return _source(program, "likelihood", f"likelihoods:{program}", *inputs)


def _formula(program: str, family: str, *inputs: Input, arguments: tuple[str, ...] = ()) -> Source:
    return _source(program, family, f"formulas:{program}", *inputs, arguments=arguments)


_X: Final = _input("x")
_ROW, _COLUMN = ("rows",), ("columns",)

SOURCES = (
    _density("GaussianLogDensity", _X, _input("mean"), _input("scale", "scale")),
    _density(
        "LogNormalLogDensity", _input("x", "positive"), _input("mean"), _input("scale", "scale")
    ),
    _density("StudentLogDensity", _X, _input("mean"), _input("scale", "scale")),
    _density("BetaLogDensity", _input("x", "probability")),
    _density("GammaLogDensity", _input("x", "positive"), _input("rate", "scale")),
    _likelihood(
        "BernoulliLogLikelihood", _input("probabilities", "probability"), _input("targets", "unit")
    ),
    _likelihood("PoissonLogLikelihood", _input("rates", "positive"), _input("counts", "positive")),
    _likelihood("CategoricalLogLikelihood", _input("logits"), _input("counts", "unit")),
    _likelihood("LogisticLoss", _input("scores"), _input("labels")),
    _likelihood("FocalLoss", _input("probabilities", "probability")),
    _likelihood("LabelSmoothingCrossEntropy", _input("logits"), _input("targets", "unit")),
    _likelihood(
        "GaussianDivergence",
        _input("mean"),
        _input("scale", "scale"),
        _input("prior_mean"),
        _input("prior_scale", "scale"),
    ),
    _likelihood("CategoricalEntropy", _input("logits")),
    _likelihood("LogOdds", _input("probabilities", "probability")),
    _likelihood("GeometricMean", _input("x", "positive")),
    _likelihood("LogSumOfProducts", _input("weights", "positive"), _input("values", "positive")),
    _formula("PolynomialActivation", "activation", _X),
    _formula("PadeTanh", "activation", _X),
    _formula("SquarePlus", "activation", _X),
    _formula("InverseSquareRootUnit", "activation", _X),
    _formula("ScaledSwish", "activation", _X),
    _formula("LogCosh", "loss", _input("predictions"), _input("targets")),
    _formula(
        "GaussianKernel",
        "kernel",
        _input("x", extents=_ROW),
        _input("y", extents=_ROW),
        _input("u", extents=_COLUMN),
        _input("v", extents=_COLUMN),
    ),
    _formula(
        "ProductKernel",
        "kernel",
        _input("x", extents=_ROW),
        _input("t", extents=_ROW),
        _input("y", extents=_COLUMN),
        _input("s", extents=_COLUMN),
    ),
    _formula("DecayedSoftmaxWeights", "kernel", _input("scores"), _input("distances")),
    _formula("InverseSquareRootDecay", "schedule", _input("steps", "step")),
    _formula(
        "FoldedNormalization",
        "norm",
        _X,
        _input("mean", extents=_COLUMN),
        _input("variance", "positive", extents=_COLUMN),
        arguments=("columns",),
    ),
    _likelihood(
        "PearsonResiduals", _input("probabilities", "probability"), _input("targets", "unit")
    ),
    _density("LomaxSecondMoment", _input("shape", "shape"), _input("scale", "scale")),
    _formula(
        "ResidualModulation",
        "norm",
        _X,
        _input("scale", extents=_COLUMN),
        _input("shift", extents=_COLUMN),
    ),
    _density(
        "DensityRatio",
        _input("x", "unit"),
        _input("mean", "unit"),
        _input("other", "unit"),
        _input("scale", "scale"),
    ),
    _formula(
        "SaturationElasticity", "formula", _input("x", "positive"), _input("half", "positive")
    ),
    _formula("HarmonicMix", "formula", _input("x", "positive"), _input("y", "positive")),
)
