"""Known-wrong candidates: every one must be rejected.

Each is a mistake that a rewrite can make; many pass a comparison with loose tolerances on one
draw of normal data (the report of ``run`` shows which).
"""

from typing import Final

from steptp_dagster.verify.zoo import originals as o
from steptp_dagster.verify.zoo.pairs import Pair, edited, nests_of, rewritten

_SCORES, _MASK, _ROW_MAX, _ROW_SUM, _WEIGHTED = nests_of(o.ATTENTION)
_MAX, _SUM, _DIVIDE = nests_of(o.SOFTMAX)
_MAX_HALF, _SUM_HALF, _DIVIDE_HALF = nests_of(o.SOFTMAX_HALF)

WRONG: Final[tuple[Pair, ...]] = (
    # answers that need no computing
    rewritten(
        "trivial-output",
        "zeros for softmax",
        o.SOFTMAX_HALF,
        "B^{2}_{tx=0}L^{4096}_{a=0}[D^{f16,g}_{tx,a}=0;];",
    ),
    rewritten(
        "trivial-output",
        "mean of softmax",
        o.SOFTMAX_HALF,
        "B^{2}_{tx=0}L^{4096}_{a=0}[D^{f16,g}_{tx,a}=1/4096;];",
    ),
    rewritten(
        "trivial-output",
        "input for GELU",
        o.GELU,
        "B^{24}_{tx=0}[D^{f32,g}_{tx}=max(A^{f32,g}_{tx},0);];",
    ),
    rewritten("trivial-output", "zeros for a loss", o.MEAN_SQUARE, "B^{1}_{tx=0}[D^{f32,g}=0;];"),
    # memory
    edited(
        "stale-buffer",
        "a row's sum is read before it is complete",
        o.SOFTMAX,
        (_DIVIDE, ""),
        (
            _SUM,
            _SUM.replace(
                "];", "D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})/E^{f32,g}_{tx};];"
            ),
        ),
    ),
    rewritten(
        "stale-buffer",
        "an accumulator is not reset per column",
        o.MATMUL,
        "B^{6}_{tx=0}[K^{f32,l}=0;L^{8}_{a=0}[L^{16}_{c=0}[K^{f32,l}=K^{f32,l}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];D^{f32,g}_{tx,a}=K^{f32,l};];];",
    ),
    rewritten(
        "stale-buffer",
        "an uninitialised temporary is read",
        o.SCALE_ADD,
        "B^{20}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2.5-F^{f32,g}_{tx};F^{f32,g}_{tx}=C^{f32,g}_{tx};];",
    ),
    rewritten(
        "input-overwritten",
        "normalised in place",
        o.SCALE_ADD,
        "B^{20}_{tx=0}[A^{f32,g}_{tx}=A^{f32,g}_{tx}*2.5;];",
        "B^{20}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}-C^{f32,g}_{tx};];",
    ),
    edited(
        "memory-lifetime",
        "shared memory read by the next kernel",
        o.REVERSE,
        (
            nests_of(o.REVERSE)[0],
            "B^{3}_{bx=0}B^{8}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{bx,tx};];\nB^{3}_{bx=0}B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=S^{f32,s}_{7-tx};];",
        ),
    ),
    edited(
        "memory-lifetime",
        "a thread's register read by another",
        o.REVERSE,
        ("S^{f32,s}", "S^{f32,l}"),
    ),
    # bounds and tiles
    edited(
        "off-by-one-bound", "reduction stops one short", o.MATMUL, ("L^{16}_{c=0}", "L^{15}_{c=0}")
    ),
    edited(
        "off-by-one-bound", "reduction starts one late", o.MATMUL, ("L^{16}_{c=0}", "L^{15}_{c=1}")
    ),
    edited("off-by-one-bound", "padding condition one short", o.CONVOLUTION, ("a+d<10", "a+d<9")),
    edited(
        "off-by-one-bound", "pooling skips the first element", o.MAX_POOL, ("1<=a*2+c", "2<=a*2+c")
    ),
    edited("out-of-bounds", "padding condition one too wide", o.CONVOLUTION, ("a+d<10", "a+d<11")),
    rewritten(
        "dropped-tail",
        "a tile of 7 over 16 covers 14",
        o.MATMUL,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{2}_{d=0}L^{7}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,d*7+c}*C^{f32,g}_{d*7+c,a};];",
    ),
    rewritten(
        "dropped-tail",
        "tail rows are never written",
        o.LAYERNORM,
        *(n.replace("B^{4}_{tx=0}", "B^{3}_{tx=0}") for n in nests_of(o.LAYERNORM)),
    ),
    rewritten(
        "unguarded-tile",
        "a tile of 5 over 16 runs to 20",
        o.MATMUL,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{4}_{d=0}L^{5}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,d*5+c}*C^{f32,g}_{d*5+c,a};];",
    ),
    rewritten(
        "overlapping-tiles",
        "tiles of 6 with stride 5 count elements twice",
        o.MATMUL,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{3}_{d=0}L^{6}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,d*5+c}*C^{f32,g}_{d*5+c,a};];",
    ),
    # axes, operands, operators, constants
    edited(
        "wrong-axis",
        "softmax sums over rows",
        o.SOFTMAX,
        (
            _SUM,
            "B^{5}_{tx=0}L^{5}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+exp(A^{f32,g}_{a,tx}-C^{f32,g}_{tx});];",
        ),
    ),
    edited(
        "wrong-axis",
        "weights indexed by input channel first",
        o.CONVOLUTION,
        ("W^{f32,g}_{tx,c,d}", "W^{f32,g}_{tx,d,c}"),
    ),
    edited(
        "swapped-operands",
        "subtraction turned round",
        o.SCALE_ADD,
        ("A^{f32,g}_{tx}*2.5-C^{f32,g}_{tx}", "C^{f32,g}_{tx}-A^{f32,g}_{tx}*2.5"),
    ),
    edited(
        "swapped-operands",
        "dividend and divisor",
        o.SOFTMAX,
        (
            "exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})/E^{f32,g}_{tx}",
            "E^{f32,g}_{tx}/exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})",
        ),
    ),
    edited(
        "wrong-tensor",
        "keys in place of values",
        o.ATTENTION,
        ("*E^{f32,g}_{a,c}", "*C^{f32,g}_{a,c}"),
    ),
    edited(
        "wrong-operator",
        "minimum in the running maximum",
        o.SOFTMAX,
        ("=max(C^{f32,g}_{tx},", "=min(C^{f32,g}_{tx},"),
    ),
    edited("wrong-operator", "the residual is added", o.SCALE_ADD, ("-C^{f32,g}", "+C^{f32,g}")),
    edited("wrong-constant", "one percent in GELU", o.GELU, ("0.5", "0.505")),
    edited("wrong-constant", "N-1 for N", o.LAYERNORM, ("**2/10", "**2/9")),
    edited("wrong-constant", "epsilon changed", o.LAYERNORM, ("1e-5", "1e-6")),
    edited("wrong-constant", "scale with seven digits", o.GELU, ("sqrt(2)", "1.414214")),
    edited(
        "misplaced-epsilon",
        "outside the root",
        o.LAYERNORM,
        ("sqrt(E^{f32,g}_{tx}+1e-5)", "(sqrt(E^{f32,g}_{tx})+1e-5)"),
    ),
    edited(
        "dropped-term",
        "bias forgotten",
        o.LINEAR,
        ("E^{f32,g}_{tx,a}+F^{f32,g}_{a}", "E^{f32,g}_{tx,a}"),
    ),
    edited("dropped-term", "attention without scale", o.ATTENTION, ("*0.5", "")),
    rewritten(
        "lost-accumulation",
        "the last product only",
        o.MATMUL,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{16}_{c=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];",
    ),
    # initial values
    rewritten(
        "wrong-init",
        "maximum from zero",
        o.MAX_POOL,
        "B^{3}_{tx=0}L^{5}_{a=0}[D^{f32,g}_{tx,a}=0;];",
        *nests_of(o.MAX_POOL),
    ),
    rewritten(
        "wrong-init",
        "sum from one",
        o.PREFIX_SUM,
        nests_of(o.PREFIX_SUM)[0].replace("a-1<0,0", "a-1<0,1"),
    ),
    edited("wrong-init", "padding with zero under a maximum", o.MAX_POOL, ("-inf", "0")),
    rewritten(
        "missing-init",
        "a recurrence without its first case",
        o.PREFIX_SUM,
        "B^{4}_{tx=0}L^{9}_{a=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a-1}+A^{f32,g}_{tx,a};];",
    ),
    rewritten(
        "missing-init",
        "a rescaled sum without a start",
        o.SOFTMAX,
        _MAX,
        "B^{5}_{tx=0}L^{12}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}*1+exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx});];",
        _DIVIDE,
    ),
    # conditions
    edited("boundary", "greater-or-equal for greater", o.STEP, (">0.5", ">=0.5")),
    edited("boundary", "causal mask hides the present", o.ATTENTION, ("a<=tx", "a<tx")),
    edited("boundary", "the last maximum for the first", o.ARGMAX, (">H^{f32,g}", ">=H^{f32,g}")),
    edited("boundary", "threshold in the sixth digit", o.STEP, (">0.5", ">0.500001")),
    # precision
    rewritten(
        "half-accumulation",
        "products summed in halves",
        o.MATMUL_HALF,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{64}_{c=0}[D^{f16,g}_{tx,a}=D^{f16,g}_{tx,a}+A^{f16,g}_{tx,c}*C^{f16,g}_{c,a};];",
    ),
    rewritten(
        "half-accumulation",
        "exponentials summed in halves",
        o.SOFTMAX_HALF,
        _MAX_HALF,
        _SUM_HALF.replace("E^{f32,g}", "E^{f16,g}"),
        _DIVIDE_HALF.replace("E^{f32,g}", "E^{f16,g}"),
    ),
    rewritten(
        "unstable",
        "softmax without its maximum",
        o.SOFTMAX,
        "B^{5}_{tx=0}L^{12}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+exp(A^{f32,g}_{tx,a});];",
        "B^{5}_{tx=0}L^{12}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a})/E^{f32,g}_{tx};];",
    ),
    edited(
        "unstable",
        "variance in one pass",
        o.LAYERNORM,
        ("(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})**2/10", "A^{f32,g}_{tx,a}**2/10"),
        ("sqrt(E^{f32,g}_{tx}+1e-5)", "sqrt(E^{f32,g}_{tx}-C^{f32,g}_{tx}**2+1e-5)"),
    ),
    rewritten(
        "unstable",
        "the first element for the maximum",
        o.SOFTMAX,
        "B^{5}_{tx=0}[C^{f32,g}_{tx}=A^{f32,g}_{tx,0};];",
        _SUM,
        _DIVIDE,
    ),
    rewritten(
        "unsafe-mask",
        "online softmax, a row starting with -inf",
        o.SOFTMAX,
        "B^{5}_{tx=0}[C^{f32,g}_{tx}=-inf;E^{f32,g}_{tx}=0;L^{12}_{a=0}[F^{f32,g}_{tx}=max(C^{f32,g}_{tx},A^{f32,g}_{tx,a});E^{f32,g}_{tx}=E^{f32,g}_{tx}*exp(C^{f32,g}_{tx}-F^{f32,g}_{tx})+exp(A^{f32,g}_{tx,a}-F^{f32,g}_{tx});C^{f32,g}_{tx}=F^{f32,g}_{tx};];];",
        _DIVIDE,
    ),
    rewritten(
        "lost-rescaling",
        "online softmax without rescaling",
        o.SOFTMAX,
        "B^{5}_{tx=0}[C^{f32,g}_{tx}=-inf;E^{f32,g}_{tx}=0;L^{12}_{a=0}[C^{f32,g}_{tx}=max(C^{f32,g}_{tx},A^{f32,g}_{tx,a});E^{f32,g}_{tx}=E^{f32,g}_{tx}+exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx});];];",
        _DIVIDE,
    ),
    # integers
    edited(
        "integer-arithmetic",
        "truncation for rounding",
        o.QUANTISE,
        ("round(A^{f32,g}_{tx}*16)", "A^{f32,g}_{tx}*16"),
    ),
    edited("integer-arithmetic", "upper limit 128", o.QUANTISE, ("127", "128")),
    rewritten(
        "integer-arithmetic",
        "summed in 16 bits",
        o.INTEGER_SUM,
        "B^{4}_{tx=0}L^{8}_{a=0}[F^{i16,g}_{tx}=F^{i16,g}_{tx}+A^{i32,g}_{tx,a}*A^{i32,g}_{tx,a};];",
        "B^{4}_{tx=0}[D^{i32,g}_{tx}=F^{i16,g}_{tx};];",
    ),
    edited(
        "wrong-index",
        "the row after the one asked for",
        o.GATHER,
        ("C^{i64,g}_{tx},a", "(C^{i64,g}_{tx}+1)%9,a"),
    ),
    edited(
        "wrong-index",
        "indices left out",
        o.GATHER,
        ("A^{f32,g}_{C^{i64,g}_{tx},a}", "A^{f32,g}_{tx,a}"),
    ),
    # races and loop kinds
    edited(
        "race", "a prefix sum over parallel steps", o.PREFIX_SUM, ("L^{9}_{a=0}", "P^{9}_{a=0}")
    ),
    edited(
        "race",
        "blocks add into one element",
        o.MEAN_SQUARE,
        ("B^{1}_{tx=0}L^{6}_{a=0}L^{5}_{c=0}", "B^{6}_{bxa=0}L^{5}_{c=0}"),
        ("{a,c}", "{bxa,c}"),
    ),
    rewritten(
        "race",
        "threads exchange within one loop",
        o.REVERSE,
        "B^{3}_{bx=0}B^{8}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{bx,tx};D^{f32,g}_{bx,tx}=S^{f32,s}_{7-tx};];",
    ),
    edited(
        "race",
        "a shared maximum taken in parallel",
        o.SOFTMAX,
        (_MAX, _MAX.replace("L^{12}_{a=0}", "P^{12}_{a=0}")),
    ),
    edited(
        "vectorised-reduction",
        "lanes add into one element",
        o.MATMUL,
        ("L^{16}_{c=0}", "V^{16}_{c=0}"),
    ),
    edited(
        "vectorised-reduction",
        "lanes of a running maximum",
        o.SOFTMAX,
        (_MAX, _MAX.replace("L^{12}_{a=0}", "V^{12}_{a=0}")),
    ),
    # the frame
    edited(
        "over-limits",
        "two thousand threads",
        o.SCALE_ADD,
        (
            "B^{20}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2.5-C^{f32,g}_{tx};",
            "B^{2000}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2.5-C^{f32,g}_{tx}:tx<20;",
        ),
    ),
    edited(
        "signature-changed",
        "the output as halves",
        o.SCALE_ADD,
        ("# output D f32", "# output D f16"),
        ("D^{f32,g}", "D^{f16,g}"),
    ),
    edited(
        "axis-repeated",
        "one thread axis bound twice",
        o.MATMUL,
        ("L^{8}_{a=0}", "B^{8}_{txa=0}"),
        ("D^{f32,g}_{tx,a}", "D^{f32,g}_{tx,txa}"),
        ("C^{f32,g}_{c,a}", "C^{f32,g}_{c,txa}"),
    ),
)
