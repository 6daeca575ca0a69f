"""Speed of the static checks on one core, the fast path and the isl path apart.

    python benchmarks/bench_check.py

Prints the best of several rounds, in milliseconds. The target is at most 2 ms to check a program
of 300 tokens on the fast path, analyses included. (Token counts are those of the Qwen vocabulary.)
The last part asks isl what the fast test had already answered, to show what isl costs.
"""

from collections.abc import Callable
from functools import partial
from time import process_time
from timeit import repeat

from steptp_dagster.leir import dependence, sets
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check

PROGRAMS = {
    "product, softmax and tile, 348 tokens": (
        "# input A f32[64,512]\n# param W f32[512,256]\n# output X f32[64,256]\n"
        "# output Q f32[60]\n"
        "B^{64}_{tx=0}L^{256}_{a=0}L^{512}_{c=0}"
        "[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];"
        "B^{64}_{tx=0}L^{256}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},D^{f32,g}_{tx,a});];"
        "B^{64}_{tx=0}L^{256}_{a=0}[E^{f32,g}_{tx,a}=exp(D^{f32,g}_{tx,a}-M^{f32,g}_{tx});];"
        "B^{64}_{tx=0}L^{256}_{a=0}[S^{f32,g}_{tx}=S^{f32,g}_{tx}+E^{f32,g}_{tx,a};];"
        "B^{64}_{tx=0}L^{256}_{a=0}[X^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}/S^{f32,g}_{tx};];"
        "L^{4}_{a=0}L^{16}_{c=0}[Q^{f32,g}_{a*16+c}="
        "if_then_else(1<=a*16+c<60,-A^{f32,g}_{0,a*16+c-1}**2*0.5,-inf):a*16+c<60;];"
    ),
    "convolution with padding, 292 tokens": (
        "# input A f32[8,16,32,32]\n# param W f32[32,16,3,3]\n# param C f32[32]\n"
        "# output D f32[8,32,32,32]\n"
        "B^{8}_{tx=0}L^{32}_{a=0}L^{32}_{c=0}L^{32}_{d=0}L^{16}_{f=0}L^{3}_{g=0}L^{3}_{h=0}"
        "[E^{f32,g}_{tx,a,c,d}=E^{f32,g}_{tx,a,c,d}+if_then_else(1<=c+g<33&1<=d+h<33,"
        "A^{f32,g}_{tx,f,c+g-1,d+h-1},0)*W^{f32,g}_{a,f,g,h};];"
        "B^{8}_{tx=0}L^{32}_{a=0}L^{32}_{c=0}L^{32}_{d=0}"
        "[D^{f32,g}_{tx,a,c,d}=max(E^{f32,g}_{tx,a,c,d}+C^{f32,g}_{a},0);];"
    ),
    "tiled product through shared memory, 350 tokens": (
        "# input A f32[64,64]\n# param C f32[64,64]\n# output D f32[64,64]\n"
        "B^{4}_{by=0}B^{4}_{bx=0}[B^{16}_{ty=0}B^{16}_{tx=0}[X^{f32,l}=0;];L^{4}_{c=0}["
        "B^{16}_{ty=0}B^{16}_{tx=0}[S^{f32,s}_{ty,tx}=A^{f32,g}_{by*16+ty,c*16+tx};"
        "Q^{f32,s}_{ty,tx}=C^{f32,g}_{c*16+ty,bx*16+tx};];B^{16}_{ty=0}B^{16}_{tx=0}L^{16}_{d=0}"
        "[X^{f32,l}=X^{f32,l}+S^{f32,s}_{ty,d}*Q^{f32,s}_{d,tx};];];B^{16}_{ty=0}B^{16}_{tx=0}"
        "[D^{f32,g}_{by*16+ty,bx*16+tx}=X^{f32,l};];];"
    ),
    "reshape that needs isl": (
        "# input A f32[6,35]\n# output D f32[10,21]\nL^{6}_{a=0}L^{35}_{c=0}"
        "[D^{f32,g}_{(a*35+c)//21,(a*35+c)%21}=A^{f32,g}_{a,c};];"
    ),
}


def best(function: Callable[[], object], rounds: int = 7, number: int = 20) -> float:
    """Milliseconds of processor time per call in the fastest round."""
    spent = repeat(function, timer=process_time, repeat=rounds, number=number)
    return min(spent) / number * 1e3


def fresh(signed: SignedProgram) -> SignedProgram:
    """The same program, of which nothing is known yet."""
    return SignedProgram(signed.program, signed.signature)


def loops(signed: SignedProgram) -> int:
    """Ask what every loop carries; returns the number of loops."""
    services = Analysis.of(signed).dependences
    every = [ref for refs in services.accesses.loops_of.values() for ref in refs]
    for ref in every:
        services.carried(ref)
    return len(every)


def check_anew(signed: SignedProgram) -> None:
    """Check validity, all analyses included."""
    check(fresh(signed))


def limits_anew(signed: SignedProgram) -> None:
    """Check the target limits, the analyses that they need included."""
    check_limits(fresh(signed))


def loops_anew(signed: SignedProgram) -> None:
    """Ask what every loop carries, analyses included."""
    loops(fresh(signed))


def loops_by_isl(signed: SignedProgram) -> None:
    """The same questions, all of them put to isl."""
    services = Analysis.of(signed).dependences
    for refs in services.accesses.loops_of.values():
        for ref in refs:
            for one, other in dependence.conflicting_pairs(services.uses_in(ref)):
                depth = one.chain.index(ref)
                relations = [*dependence.same(one.chain[:depth]), (ref.name, ref.name, "!=")]
                sets.overlap(one, other, relations)


def main() -> None:
    """Print the table."""
    queries = 0
    ask = sets._query

    def counted(question: Callable[[object, object], object]) -> object:
        nonlocal queries
        queries += 1
        return ask(question)

    for name, text in PROGRAMS.items():
        signed = read(text).signed
        queries, sets._query = 0, counted
        assert check(fresh(signed)) == ()
        used, sets._query = queries, ask
        count = loops(signed)
        print(name)
        print(
            f"  validity            {best(partial(check_anew, signed)):7.3f}  isl queries: {used}"
        )
        print(f"  target limits alone {best(partial(limits_anew, signed)):7.3f}")
        print(f"  {count:2} loops, fast first {best(partial(loops_anew, signed)):7.3f}")
        print(f"  {count:2} loops, isl alone  {best(partial(loops_by_isl, signed), 3, 3):7.3f}")


if __name__ == "__main__":
    main()
