"""How faithful a translation is: its LEIR against the module, both in float64."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.translate.translate import Translation

#: Largest normalised difference of a faithful translation.
TOLERANCE: Final = 1e-9

Array = NDArray[Any]
#: Runs a signed program on arrays by LEIR name, in float64, and gives its outputs by name.
Evaluator = Callable[[SignedProgram, Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The largest normalised difference over all outputs, and that of each output by name.

    ``inf`` stands for a difference in shape, in NaNs or in infinities, or in any integer or bool.
    """

    max_normalised_error: float
    by_output: Mapping[str, float]

    @property
    def faithful(self) -> bool:
        """Whether the difference is within ``TOLERANCE``."""
        return self.max_normalised_error <= TOLERANCE


def fidelity(
    module: nn.Module,
    inputs: Sequence[torch.Tensor],
    translation: Translation,
    evaluator: Evaluator | None = None,
) -> Fidelity:
    """Compare a translation with its module on ``inputs``, both evaluated in float64.

    ``evaluator`` defaults to the reference interpreter, which raises RuntimeError here where it
    finds a fault. The difference of an output is ``max|a-b| / max(1, max|b|)``.
    """
    wide = copy.deepcopy(module).double()
    doubles = [_double(x) for x in inputs]
    with torch.no_grad(), in_doubles(_spacing(inputs)):
        expected = [torch.as_tensor(x) for x in tree_leaves(wide(*doubles))]
    arrays = bind(translation, wide, doubles)
    found = (evaluator or by_interpreter)(translation.signed, arrays)
    errors = {
        v.name: difference(found[v.name], e.numpy())
        for v, e in zip(_outputs(translation), expected, strict=True)
    }
    return Fidelity(max(errors.values()), errors)


class _Doubles(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every float type that an operator is asked for becomes float64."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Call the operator with its dtypes widened."""
        del types
        wide_args, wide_kwargs = tree_map(_widened, (args, dict(kwargs or {})))
        return func(*wide_args, **wide_kwargs)


def _widened(argument: object) -> object:
    narrow = isinstance(argument, torch.dtype) and argument.is_floating_point
    return torch.float64 if narrow else argument


class _Spacing(TorchFunctionMode):
    """RMS norms without ``eps`` keep the one of the type in which the program works."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function, with an ``eps`` where an RMS norm lacks it."""
        del types
        given = dict(kwargs or {})
        if func in (torch.rms_norm, functional.rms_norm):
            names = ("input", "normalized_shape", "weight", "eps")
            given |= dict(zip(names, args, strict=False))
            if given.get("eps") is None:
                given["eps"] = self.eps
            args = ()
        return func(*args, **given)


def _spacing(inputs: Sequence[torch.Tensor]) -> float:
    """The distance from 1 to the next number of the type in which these inputs are evaluated."""
    narrow = [x.dtype for x in inputs if x.is_floating_point()]
    return float(torch.finfo(torch.float64 if torch.float64 in narrow else torch.float32).eps)


@contextmanager
def in_doubles(eps: float) -> Iterator[None]:
    """Evaluate PyTorch code in float64 even where it names, or defaults to, a narrower type.

    ``eps`` is what RMS norms add that are given none.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Spacing(eps), _Doubles():  # type: ignore[no-untyped-call]
            yield
    finally:
        torch.set_default_dtype(before)


def _outputs(translation: Translation) -> list[Any]:
    """The output variables in the order in which the module returns them."""
    by_position = {translation.names[v.name]: v for v in translation.signed.signature.outputs}
    return [by_position[f"output {i}"] for i in range(len(by_position))]


def bind(
    translation: Translation, module: nn.Module, inputs: Sequence[torch.Tensor]
) -> dict[str, Array]:
    """Arrays for every input and parameter of a translation, by LEIR name.

    ``inputs`` in the order of the module's ``forward``; parameters from ``module``.
    """
    parameters = dict(module.named_parameters(remove_duplicate=False))
    variables = translation.signed.signature.variables
    given = iter(inputs)
    arrays = {v.name: next(given).detach().numpy() for v in variables if v.role == "input"}
    for variable in variables:
        if variable.role == "param":
            arrays[variable.name] = parameters[translation.names[variable.name]].detach().numpy()
    return arrays


def by_interpreter(signed: SignedProgram, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Evaluate with the reference interpreter in float64.

    Raises RuntimeError for a program that breaks a rule of LEIR while it runs.
    """
    run = interpret(signed, dict(arrays), precision="float64")
    if run.faults:
        raise RuntimeError("; ".join(str(f) for f in run.faults))
    return run.outputs


def difference(found: Array, expected: Array) -> float:
    """``max|found-expected| / max(1, max|expected|)``; infinities and NaNs must coincide."""
    if found.shape != expected.shape:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    finite = np.isfinite(expected)
    same = np.array_equal(found[~finite], expected[~finite], equal_nan=True)
    if not same or not np.isfinite(found[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    a, b = found[finite].astype(np.float64), expected[finite]
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


def _double(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.is_floating_point() else x
