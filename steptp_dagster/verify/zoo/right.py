"""Known-right candidates: every one must be accepted, so that a verifier cannot just say no."""

from typing import Final

from steptp_dagster.verify.zoo import originals as o
from steptp_dagster.verify.zoo.forms import FORMS
from steptp_dagster.verify.zoo.pairs import Pair, edited, nests_of, rewritten

_SCORES, _MASK, _ROW_MAX, _ROW_SUM, _WEIGHTED = nests_of(o.ATTENTION)
_MAX, _SUM, _DIVIDE = nests_of(o.SOFTMAX)
_MEAN, _VARIANCE, _NORMALISE = nests_of(o.LAYERNORM)

RIGHT: Final[tuple[Pair, ...]] = (
    Pair("identity", "the original itself", o.MATMUL, o.MATMUL),
    rewritten(
        "loops",
        "reduction split with a guarded tail",
        o.MATMUL,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{4}_{d=0}L^{5}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,d*5+c}*C^{f32,g}_{d*5+c,a}:d*5+c<16;];",
    ),
    rewritten(
        "loops",
        "reduction outermost, with its implicit start",
        o.MATMUL,
        "L^{16}_{c=0}B^{6}_{tx=0}L^{8}_{a=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];",
    ),
    rewritten(
        "loops",
        "rows and columns fused into one loop",
        o.MATMUL,
        "B^{48}_{tx=0}L^{16}_{c=0}[D^{f32,g}_{tx//8,tx%8}=D^{f32,g}_{tx//8,tx%8}+A^{f32,g}_{tx//8,c}*C^{f32,g}_{c,tx%8};];",
    ),
    edited(
        "loops",
        "columns vectorised by four",
        o.SCALE_ADD,
        ("B^{20}_{tx=0}", "B^{5}_{tx=0}V^{4}_{a=0}"),
        ("_{tx}", "_{tx*4+a}"),
    ),
    rewritten(
        "memory",
        "an accumulator in a register, reset per column",
        o.MATMUL,
        "B^{6}_{tx=0}L^{8}_{a=0}[K^{f32,l}=0;L^{16}_{c=0}[K^{f32,l}=K^{f32,l}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];D^{f32,g}_{tx,a}=K^{f32,l};];",
    ),
    rewritten(
        "memory",
        "tiles through shared memory",
        o.MATMUL,
        "B^{3}_{by=0}B^{2}_{bx=0}[B^{2}_{ty=0}B^{4}_{tx=0}[K^{f32,l}=0;];L^{4}_{c=0}[B^{2}_{ty=0}B^{4}_{tx=0}[Q^{f32,s}_{ty,tx}=A^{f32,g}_{by*2+ty,c*4+tx};R^{f32,s}_{ty,tx}=C^{f32,g}_{c*4+ty,bx*4+tx};R^{f32,s}_{ty+2,tx}=C^{f32,g}_{c*4+ty+2,bx*4+tx};];B^{2}_{ty=0}B^{4}_{tx=0}L^{4}_{d=0}[K^{f32,l}=K^{f32,l}+Q^{f32,s}_{ty,d}*R^{f32,s}_{d,tx};];];B^{2}_{ty=0}B^{4}_{tx=0}[D^{f32,g}_{by*2+ty,bx*4+tx}=K^{f32,l};];];",
    ),
    rewritten(
        "memory",
        "a row cached in shared memory",
        o.REVERSE,
        "B^{3}_{bx=0}[B^{8}_{tx=0}[S^{f32,s}_{7-tx}=A^{f32,g}_{bx,tx};];B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=S^{f32,s}_{tx};];];",
    ),
    rewritten(
        "reduction",
        "split into four partial sums",
        o.MATMUL,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{4}_{d=0}L^{4}_{c=0}[F^{f32,g}_{tx,a,d}=F^{f32,g}_{tx,a,d}+A^{f32,g}_{tx,d*4+c}*C^{f32,g}_{d*4+c,a};];",
        "B^{6}_{tx=0}L^{8}_{a=0}L^{4}_{d=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+F^{f32,g}_{tx,a,d};];",
    ),
    rewritten(
        "reduction",
        "over the threads of a block",
        o.MEAN_SQUARE,
        "B^{30}_{tx=0}[D^{f32,g}=D^{f32,g}+(A^{f32,g}_{tx//5,tx%5}-C^{f32,g}_{tx//5,tx%5})**2/30;];",
    ),
    rewritten(
        "reduction",
        "a shared maximum by block reduction",
        o.SOFTMAX,
        "B^{5}_{bx=0}[B^{12}_{tx=0}[S^{f32,s}=max(S^{f32,s},A^{f32,g}_{bx,tx});];B^{12}_{tx=0}[R^{f32,s}=R^{f32,s}+exp(A^{f32,g}_{bx,tx}-S^{f32,s});];B^{12}_{tx=0}[D^{f32,g}_{bx,tx}=exp(A^{f32,g}_{bx,tx}-S^{f32,s})/R^{f32,s};];];",
    ),
    rewritten(
        "mathematics",
        "multiplied by the reciprocal",
        o.SOFTMAX,
        _MAX,
        _SUM,
        "B^{5}_{tx=0}[F^{f32,g}_{tx}=1/E^{f32,g}_{tx};];",
        "B^{5}_{tx=0}L^{12}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})*F^{f32,g}_{tx};];",
    ),
    rewritten(
        "mathematics",
        "online softmax, safe for -inf",
        o.SOFTMAX,
        "B^{5}_{tx=0}[C^{f32,g}_{tx}=-inf;E^{f32,g}_{tx}=0;L^{12}_{a=0}[F^{f32,g}_{tx}=max(C^{f32,g}_{tx},A^{f32,g}_{tx,a});E^{f32,g}_{tx}=if_then_else(F^{f32,g}_{tx}==-inf,0,E^{f32,g}_{tx}*exp(C^{f32,g}_{tx}-F^{f32,g}_{tx})+exp(A^{f32,g}_{tx,a}-F^{f32,g}_{tx}));C^{f32,g}_{tx}=F^{f32,g}_{tx};];];",
        _DIVIDE,
    ),
    rewritten(
        "mathematics",
        "softmax with a common factor in the exponents",
        o.SOFTMAX,
        _MAX,
        _SUM,
        "B^{5}_{tx=0}[E^{f32,g}_{tx}=log(E^{f32,g}_{tx});];",
        "B^{5}_{tx=0}L^{12}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx}-E^{f32,g}_{tx});];",
    ),
    edited(
        "mathematics",
        "division by ten last",
        o.LAYERNORM,
        (_MEAN, _MEAN.replace("/10", "") + "\nB^{4}_{tx=0}[C^{f32,g}_{tx}=C^{f32,g}_{tx}/10;];"),
    ),
    edited(
        "mathematics",
        "factored",
        o.GELU,
        (
            "A^{f32,g}_{tx}*0.5*(1+erf(A^{f32,g}_{tx}/sqrt(2)))",
            "A^{f32,g}_{tx}*(0.5+0.5*erf(A^{f32,g}_{tx}*sqrt(0.5)))",
        ),
    ),
    edited(
        "mathematics",
        "commuted and regrouped",
        o.SCALE_ADD,
        ("A^{f32,g}_{tx}*2.5-C^{f32,g}_{tx}", "-(C^{f32,g}_{tx}-2.5*A^{f32,g}_{tx})"),
    ),
    rewritten(
        "fusion",
        "scores never stored",
        o.ATTENTION,
        "B^{6}_{tx=0}[H^{f32,g}_{tx}=-inf;L^{6}_{a=0}[K^{f32,l}=0;L^{4}_{c=0}[K^{f32,l}=K^{f32,l}+A^{f32,g}_{tx,c}*C^{f32,g}_{a,c};];G^{f32,g}_{tx,a}=if_then_else(a<=tx,K^{f32,l}*0.5,-inf);H^{f32,g}_{tx}=max(H^{f32,g}_{tx},G^{f32,g}_{tx,a});];];",
        _ROW_SUM.replace("K^{f32,g}", "M^{f32,g}"),
        _WEIGHTED.replace("K^{f32,g}", "M^{f32,g}"),
    ),
    rewritten(
        "fusion",
        "division moved behind the sum",
        o.ATTENTION,
        _SCORES,
        _MASK,
        _ROW_MAX,
        _ROW_SUM,
        "B^{6}_{tx=0}L^{4}_{c=0}L^{6}_{a=0}[M^{f32,g}_{tx,c}=M^{f32,g}_{tx,c}+exp(G^{f32,g}_{tx,a}-H^{f32,g}_{tx})*E^{f32,g}_{a,c};];",
        "B^{6}_{tx=0}L^{4}_{c=0}[D^{f32,g}_{tx,c}=M^{f32,g}_{tx,c}/K^{f32,g}_{tx};];",
    ),
    edited(
        "conditions",
        "padding by a guard and an explicit start",
        o.MAX_POOL,
        (
            nests_of(o.MAX_POOL)[0],
            "B^{3}_{tx=0}L^{5}_{a=0}[D^{f32,g}_{tx,a}=-inf;L^{3}_{c=0}[D^{f32,g}_{tx,a}=max(D^{f32,g}_{tx,a},A^{f32,g}_{tx,a*2+c-1}):1<=a*2+c&a*2+c<11;];];",
        ),
    ),
    edited(
        "conditions",
        "branches exchanged",
        o.STEP,
        ("if_then_else(A^{f32,g}_{tx}>0.5,1.0,0.0)", "if_then_else(A^{f32,g}_{tx}<=0.5,0,1)"),
    ),
    edited(
        "conditions",
        "limits exchanged",
        o.QUANTISE,
        (
            "min(max(round(A^{f32,g}_{tx}*16),-128),127)",
            "max(min(round(A^{f32,g}_{tx}*16),127),-128)",
        ),
    ),
    rewritten(
        "launch",
        "rounded-up launch with a guard",
        o.SCALE_ADD,
        "B^{3}_{bx=0}B^{8}_{tx=0}[D^{f32,g}_{bx*8+tx}=A^{f32,g}_{bx*8+tx}*2.5-C^{f32,g}_{bx*8+tx}:bx*8+tx<20;];",
    ),
    rewritten(
        "precision",
        "halves through a wider temporary",
        o.MATMUL_HALF,
        "B^{6}_{tx=0}L^{8}_{a=0}L^{4}_{d=0}L^{16}_{c=0}[G^{f32,g}_{tx,a,d}=G^{f32,g}_{tx,a,d}+A^{f16,g}_{tx,d*16+c}*C^{f16,g}_{d*16+c,a};];",
        "B^{6}_{tx=0}L^{8}_{a=0}L^{4}_{d=0}[F^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}+G^{f32,g}_{tx,a,d};];",
        "B^{6}_{tx=0}L^{8}_{a=0}[D^{f16,g}_{tx,a}=F^{f32,g}_{tx,a};];",
    ),
    *FORMS,
)
