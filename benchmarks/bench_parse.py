"""Speed of reading and printing LEIR on one core.

    python benchmarks/bench_parse.py

Prints the best of several rounds, in milliseconds. The target is at most 0.5 ms to parse a
program of 300 tokens. (Token counts are those of the Qwen vocabulary.)
"""

from collections.abc import Callable
from functools import partial
from timeit import repeat

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.lexer import split
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text

HEADER = "# input A f32[64,512]\n# param W f32[512,256]\n# output X f32[64,256]\n"
MATMUL = (
    "B^{64}_{tx=0}L^{256}_{a=0}L^{512}_{c=0}"
    "[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];"
)
SOFTMAX = (
    "B^{64}_{tx=0}L^{256}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},D^{f32,g}_{tx,a});];"
    "B^{64}_{tx=0}L^{256}_{a=0}[E^{f32,g}_{tx,a}=exp(D^{f32,g}_{tx,a}-M^{f32,g}_{tx});];"
    "B^{64}_{tx=0}L^{256}_{a=0}[S^{f32,g}_{tx}=S^{f32,g}_{tx}+E^{f32,g}_{tx,a};];"
    "B^{64}_{tx=0}L^{256}_{a=0}[X^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}/S^{f32,g}_{tx};];"
)
TILED = (
    "L^{4}_{a=0}L^{16}_{c=0}[Q^{f32,g}_{a*16+c}="
    "if_then_else(1<=a*16+c<60,-A^{f32,g}_{0,a*16+c-1}**2*0.5,-inf):a*16+c<60;];"
)
PROGRAMS = {
    "348 tokens": MATMUL + SOFTMAX + TILED,
    "3132 tokens": (MATMUL + SOFTMAX + TILED) * 9,
}


def best(function: Callable[[], object], rounds: int = 7, number: int = 30) -> float:
    """Milliseconds per call in the fastest round."""
    return min(repeat(function, number=number, repeat=rounds)) / number * 1e3


def main() -> None:
    """Measure each program and print one line for it."""
    for name, text in PROGRAMS.items():
        program = parse(text).program
        lexemes = sum(1 for token in split(text).texts if token)
        figures = {
            "parse": best(partial(parse, text)),
            "read": best(partial(read, HEADER + text)),
            "print": best(partial(to_text, program)),
        }
        shown = "  ".join(f"{what} {ms:.3f} ms" for what, ms in figures.items())
        print(f"{name}: {len(text)} characters, {lexemes} lexemes: {shown}")


if __name__ == "__main__":
    main()
