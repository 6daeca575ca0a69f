"""How long verdicts take: ``python benchmarks/bench_verify.py``, in CPU milliseconds per program.

Columns: evaluating the original on all families (once per original); compiling one candidate
alone, then many together; a verdict alone, then in a batch, the original being evaluated already.
"""

import time
from collections.abc import Callable

from steptp_dagster.verify.worker import quieten_tvm

quieten_tvm()

from steptp_dagster.leir.fileform import read  # noqa: E402
from steptp_dagster.leir.signature import SignedProgram  # noqa: E402
from steptp_dagster.lowering import compile_programs  # noqa: E402
from steptp_dagster.verify.batch import verify_batch  # noqa: E402
from steptp_dagster.verify.original import evaluate  # noqa: E402
from steptp_dagster.verify.verdict import verify  # noqa: E402
from steptp_dagster.verify.zoo import originals  # noqa: E402

NAMES = ("MATMUL", "SOFTMAX", "LAYERNORM", "ATTENTION")
TOGETHER = 20


def variants(text: str, first: int, count: int) -> list[SignedProgram]:
    """Right candidates that differ in one literal, so that none is in the kernel cache."""
    signature = read(text).signed.signature
    body, _, tail = text.rpartition(";];")
    return [
        read(f"{body}+0*{n};];{tail}", inherit=signature).signed
        for n in range(first, first + count)
    ]


def cpu(function: Callable[[], object]) -> float:
    """CPU milliseconds of one call."""
    start = time.process_time()
    function()
    return 1e3 * (time.process_time() - start)


def row(name: str) -> list[float]:
    """The measurements of one program, in the order of the columns."""
    text = getattr(originals, name)
    original = read(text).signed
    lone, other = variants(text, 1, 2)
    many = variants(text, 100, TOGETHER)
    pairs = [(original, candidate) for candidate in variants(text, 200, TOGETHER)]
    return [
        cpu(lambda: evaluate(original, 0)),
        cpu(lambda: compile_programs([lone])),
        cpu(lambda: compile_programs(many)) / TOGETHER,
        cpu(lambda: verify(original, other)),
        cpu(lambda: verify_batch(pairs)) / TOGETHER,
    ]


def main() -> None:
    """Print a table."""
    columns = ("original", "compile 1", f"of {TOGETHER}", "verdict 1", f"of {TOGETHER}")
    print("program   ", *(f"{c:>9}" for c in columns))
    for name in NAMES:
        print(f"{name:10}", *(f"{value:9.1f}" for value in row(name)))


if __name__ == "__main__":
    main()
