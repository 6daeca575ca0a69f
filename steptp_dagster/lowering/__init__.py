"""LEIR to TVM's LLVM target: compile and run programs with LEIR's exact arithmetic."""

from steptp_dagster.lowering.build import compile_programs, executed_equations, run
from steptp_dagster.lowering.kernel import InputError, Kernel
from steptp_dagster.lowering.unlowerable import Unlowerable

__all__ = ["InputError", "Kernel", "Unlowerable", "compile_programs", "executed_equations", "run"]
