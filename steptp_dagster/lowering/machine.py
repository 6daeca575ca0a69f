"""What differs between targets: operations that TIR leaves to the machine, as calls it knows.

Everything else in the lowering is the same for all targets, so that a program means the same on
each. A machine gives calls for rounding to integers, NaN-keeping extremes, two's complement
arithmetic on 64 bits, and conversions of floats to integers.
"""

from collections.abc import Callable
from typing import Final, Protocol

from tvm import tirx

from steptp_dagster.lowering.tir import Node, integer, prim

#: Functions of one float with a result of the same type, by LEIR name.
ROUNDING: Final = ("abs", "sqrt", "floor", "ceil", "round")
#: TIR's own arithmetic.
PLAIN: Final[dict[str, Callable[[Node, Node], Node]]] = {
    "+": tirx.Add,
    "-": tirx.Sub,
    "*": tirx.Mul,
    "/": tirx.Div,
}


class Machine(Protocol):
    """The operations of one target. All operands and results have the TIR dtype named."""

    def rounded(self, op: str, left: Node, right: Node, dtype: str) -> Node:
        """``+ - * /`` of floats."""

    def rounding(self, name: str, value: Node, dtype: str) -> Node:
        """One of ``ROUNDING`` of a float; ``round`` takes ties to even."""

    def absolute(self, value: Node, dtype: str) -> Node:
        """The absolute value of a signed integer; the lowest stays."""

    def extreme(self, op: str, left: Node, right: Node, dtype: str) -> Node:
        """``max`` or ``min``; of floats, NaN where one operand is NaN."""

    def library(self, name: str, operands: tuple[Node, ...], dtype: str) -> Node:
        """A function of the C library (``exp``, ``pow``, ...) of floats of one dtype."""

    def wrapped(self, op: str, left: Node, right: Node) -> Node:
        """``+ - *`` of int64 modulo 2**64, without undefined overflow."""

    def truncated(self, value: Node, source: str, target: str) -> Node:
        """A float as an integer toward zero; the nearest end for what does not fit, 0 for NaN."""


class Llvm:
    """LLVM's intrinsics."""

    _NAMES: Final = {
        "abs": "llvm.fabs",
        "sqrt": "llvm.sqrt",
        "floor": "llvm.floor",
        "ceil": "llvm.ceil",
        "round": "llvm.roundeven",
    }

    def rounded(self, op: str, left: Node, right: Node, dtype: str) -> Node:
        """See ``Machine``."""
        return PLAIN[op](left, right)

    def rounding(self, name: str, value: Node, dtype: str) -> Node:
        """See ``Machine``."""
        return tirx.call_llvm_pure_intrin(prim(dtype), self._NAMES[name], value)

    def absolute(self, value: Node, dtype: str) -> Node:
        """See ``Machine``."""
        keep_lowest = tirx.IntImm("bool", 0)
        return tirx.call_llvm_pure_intrin(prim(dtype), "llvm.abs", value, keep_lowest)

    def extreme(self, op: str, left: Node, right: Node, dtype: str) -> Node:
        """See ``Machine``."""
        if dtype.startswith("float"):
            name = "llvm.maximum" if op == "max" else "llvm.minimum"
        else:
            name = f"llvm.{'u' if dtype.startswith('u') else 's'}{op}"
        return tirx.call_llvm_pure_intrin(prim(dtype), name, left, right)

    def library(self, name: str, operands: tuple[Node, ...], dtype: str) -> Node:
        """See ``Machine``. In binary64, rounded once: it then hardly depends on the C library."""
        wide = [v if dtype == "float64" else tirx.Cast("float64", v) for v in operands]
        result = tirx.call_pure_extern(prim("float64"), name, *wide)
        return result if dtype == "float64" else tirx.Cast(dtype, result)

    def wrapped(self, op: str, left: Node, right: Node) -> Node:
        """See ``Machine``. Reductions of vectors carry no promise that nothing overflows."""
        if op == "-":  # a - b = a + ~b + 1
            operands = [left, tirx.bitwise_not(right), integer("int64", 1), integer("int64", 0)]
        else:
            operands = [left, right]
        lanes = [integer("int32", lane) for lane in range(len(operands))]
        name = "llvm.vector.reduce.mul" if op == "*" else "llvm.vector.reduce.add"
        return tirx.call_llvm_pure_intrin(prim("int64"), name, tirx.Shuffle(operands, lanes))

    def truncated(self, value: Node, source: str, target: str) -> Node:
        """See ``Machine``. The plain conversion is undefined for what does not fit."""
        if not source.startswith("float"):
            raise TypeError(f"{source} is no float")
        name = "llvm.fptoui.sat" if target.startswith("u") else "llvm.fptosi.sat"
        return tirx.call_llvm_pure_intrin(prim(target), name, value)


class Cuda:
    """Device functions of the prologue of each CUDA text (``cuda.prologue``)."""

    def rounded(self, op: str, left: Node, right: Node, dtype: str) -> Node:
        """See ``Machine``."""
        return PLAIN[op](left, right)

    def rounding(self, name: str, value: Node, dtype: str) -> Node:
        """See ``Machine``."""
        return tirx.call_pure_extern(prim(dtype), f"leir_{name}", value)

    def absolute(self, value: Node, dtype: str) -> Node:
        """See ``Machine``."""
        return tirx.call_pure_extern(prim(dtype), "leir_abs", value)

    def extreme(self, op: str, left: Node, right: Node, dtype: str) -> Node:
        """See ``Machine``."""
        return tirx.call_pure_extern(prim(dtype), f"leir_{op}", left, right)

    def library(self, name: str, operands: tuple[Node, ...], dtype: str) -> Node:
        """See ``Machine``. In the working precision, as kernels do."""
        own = name if dtype == "float64" else f"{name}f"
        return tirx.call_pure_extern(prim(dtype), own, *operands)

    def wrapped(self, op: str, left: Node, right: Node) -> Node:
        """See ``Machine``."""
        name = {"+": "leir_add", "-": "leir_sub", "*": "leir_mul"}[op]
        return tirx.call_pure_extern(prim("int64"), name, left, right)

    def truncated(self, value: Node, source: str, target: str) -> Node:
        """See ``Machine``."""
        wide = tirx.Cast("float64", value) if source != "float64" else value
        return tirx.call_pure_extern(prim(target), f"leir_to_{target}", wide)


LLVM: Final[Machine] = Llvm()
CUDA: Final[Machine] = Cuda()
