"""Programs that are too large to run at some shapes, and small at others."""

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram


def matmul(m: int, n: int, k: int) -> SignedProgram:
    """``D = A C`` with a thread for each of the ``m`` rows, in f32."""
    return read(
        f"# input A f32[{m},{k}]\n# input C f32[{k},{n}]\n# output D f32[{m},{n}]\n"
        f"B^{{{m}}}_{{tx=0}}L^{{{n}}}_{{a=0}}L^{{{k}}}_{{c=0}}"
        "[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];"
    ).signed
