"""Optimised forms by hand, each right for its original: tiles, guards, prefixes, partial results.

They are accepted themselves, and mistakes are made in them (``verify.mutation``): a mistake in a
tile or in a rescaling is another one than in a plain loop.
"""

from typing import Final

from steptp_dagster.verify.zoo import originals as o
from steptp_dagster.verify.zoo.pairs import Pair, rewritten

_ROW_SUM: Final = """\
# input A f32[6,10]
# output D f32[6]
B^{6}_{tx=0}L^{10}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a};];
"""
_TILES: Final = """\
# input A f32[8,8]
# param W f32[8,8]
# output D f32[8,8]
B^{8}_{tx=0}L^{8}_{a=0}L^{8}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];
"""
_SCALED: Final = """\
# input A f32[10,7]
# output D f32[10,7]
B^{10}_{tx=0}L^{7}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a})*2;];
"""
_PADDED: Final = """\
# input A f32[2,3,8]
# param W f32[4,3,3]
# output D f32[2,4,8]
B^{2}_{tx=0}L^{3}_{a=0}L^{10}_{c=0}[H^{f32,g}_{tx,a,c}=if_then_else(1<=c<9,A^{f32,g}_{tx,a,c-1},0);];
B^{2}_{tx=0}L^{4}_{a=0}L^{8}_{c=0}L^{3}_{d=0}L^{3}_{f=0}[D^{f32,g}_{tx,a,c}=D^{f32,g}_{tx,a,c}+H^{f32,g}_{tx,d,c+f}*W^{f32,g}_{a,d,f};];
"""
_VARIANCE: Final = """\
# input A f32[4,16]
# output D f32[4]
B^{4}_{tx=0}L^{16}_{a=0}[M^{f32,g}_{tx}=M^{f32,g}_{tx}+A^{f32,g}_{tx,a};];
B^{4}_{tx=0}[E^{f32,g}_{tx}=M^{f32,g}_{tx}/16;];
B^{4}_{tx=0}L^{16}_{a=0}[Q^{f32,g}_{tx}=Q^{f32,g}_{tx}+(A^{f32,g}_{tx,a}-E^{f32,g}_{tx})**2;];
B^{4}_{tx=0}[D^{f32,g}_{tx}=Q^{f32,g}_{tx}/16;];
"""
_FLASH: Final = """\
# input Q f32[2,3,2]
# input K f32[2,4,2]
# input X f32[2,4,2]
# output O f32[2,3,2]
B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}L^{2}_{d=0}[S^{f32,g}_{tx,a,c}=S^{f32,g}_{tx,a,c}+Q^{f32,g}_{tx,a,d}*K^{f32,g}_{tx,c,d};];
B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[M^{f32,g}_{tx,a}=max(M^{f32,g}_{tx,a},S^{f32,g}_{tx,a,c});];
B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[Z^{f32,g}_{tx,a}=Z^{f32,g}_{tx,a}+exp(S^{f32,g}_{tx,a,c}-M^{f32,g}_{tx,a});];
B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[W^{f32,g}_{tx,a,c}=exp(S^{f32,g}_{tx,a,c}-M^{f32,g}_{tx,a})/Z^{f32,g}_{tx,a};];
B^{2}_{tx=0}L^{3}_{a=0}L^{2}_{d=0}L^{4}_{c=0}[O^{f32,g}_{tx,a,d}=O^{f32,g}_{tx,a,d}+W^{f32,g}_{tx,a,c}*X^{f32,g}_{tx,c,d};];
"""
_TWO_TILES: Final = """\
# input S f32[3,8]
# input X f32[8,2]
# output O f32[3,2]
B^{3}_{tx=0}L^{8}_{c=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,c});];
B^{3}_{tx=0}L^{8}_{c=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,c}-M^{f32,g}_{tx});];
B^{3}_{tx=0}L^{2}_{d=0}L^{8}_{c=0}[O^{f32,g}_{tx,d}=O^{f32,g}_{tx,d}+exp(S^{f32,g}_{tx,c}-M^{f32,g}_{tx})/Z^{f32,g}_{tx}*X^{f32,g}_{c,d};];
"""
_ARGMAX: Final = """\
# input A f32[4,8]
# output D i64[4]
B^{4}_{tx=0}L^{8}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},A^{f32,g}_{tx,a});];
B^{4}_{tx=0}[D^{i64,g}_{tx}=0;];
B^{4}_{tx=0}L^{8}_{a=0}[D^{i64,g}_{tx}=if_then_else(A^{f32,g}_{tx,a}>=M^{f32,g}_{tx},a,D^{i64,g}_{tx});];
"""

FORMS: Final[tuple[Pair, ...]] = (
    rewritten(
        "tiles",
        "tiles in shared memory, sum in a register",
        _TILES,
        "B^{2}_{bx=0}B^{2}_{by=0}[B^{4}_{tx=0}B^{4}_{ty=0}[C^{f32,l}=0;];L^{2}_{a=0}[B^{4}_{tx=0}B^{4}_{ty=0}[E^{f32,s}_{tx,ty}=A^{f32,g}_{bx*4+tx,a*4+ty};F^{f32,s}_{tx,ty}=W^{f32,g}_{a*4+tx,by*4+ty};];B^{4}_{tx=0}B^{4}_{ty=0}L^{4}_{c=0}[C^{f32,l}=C^{f32,l}+E^{f32,s}_{tx,c}*F^{f32,s}_{c,ty};];];B^{4}_{tx=0}B^{4}_{ty=0}[D^{f32,g}_{bx*4+tx,by*4+ty}=C^{f32,l};];];",
    ),
    rewritten(
        "tiles",
        "three loops tiled in global memory",
        _TILES,
        "B^{2}_{bx=0}B^{4}_{tx=0}L^{2}_{a=0}L^{4}_{d=0}L^{4}_{c=0}L^{2}_{f=0}[D^{f32,g}_{bx*4+tx,a*4+d}=D^{f32,g}_{bx*4+tx,a*4+d}+A^{f32,g}_{bx*4+tx,c*2+f}*W^{f32,g}_{c*2+f,a*4+d};];",
    ),
    rewritten(
        "guards",
        "rows rounded up to blocks of four",
        _SCALED,
        "B^{3}_{bx=0}B^{4}_{tx=0}L^{7}_{a=0}[D^{f32,g}_{bx*4+tx,a}=exp(A^{f32,g}_{bx*4+tx,a})*2:bx*4+tx<10;];",
    ),
    rewritten(
        "guards",
        "a sum in tiles of four, the last one cut",
        _ROW_SUM,
        "B^{6}_{tx=0}L^{3}_{c=0}L^{4}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,c*4+a}:c*4+a<10;];",
    ),
    rewritten(
        "guards",
        "padding by a guard instead of a copy",
        _PADDED,
        "B^{2}_{tx=0}L^{4}_{a=0}L^{8}_{c=0}[D^{f32,g}_{tx,a,c}=0;L^{3}_{d=0}L^{3}_{f=0}[D^{f32,g}_{tx,a,c}=D^{f32,g}_{tx,a,c}+A^{f32,g}_{tx,d,c+f-1}*W^{f32,g}_{a,d,f}:1<=c+f<9;];];",
    ),
    rewritten(
        "partial-results",
        "two partial sums, added",
        _ROW_SUM,
        "B^{6}_{tx=0}L^{4}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+A^{f32,g}_{tx,a};];",
        "B^{6}_{tx=0}L^{6}_{a=0}[F^{f32,g}_{tx}=F^{f32,g}_{tx}+A^{f32,g}_{tx,a+4};];",
        "B^{6}_{tx=0}[D^{f32,g}_{tx}=E^{f32,g}_{tx}+F^{f32,g}_{tx};];",
    ),
    rewritten(
        "partial-results",
        "partial sums in parallel, then their sum",
        _ROW_SUM,
        "B^{6}_{tx=0}P^{2}_{c=0}L^{5}_{a=0}[E^{f32,g}_{tx,c}=E^{f32,g}_{tx,c}+A^{f32,g}_{tx,c*5+a};];",
        "B^{6}_{tx=0}L^{2}_{c=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+E^{f32,g}_{tx,c};];",
    ),
    rewritten(
        "partial-results",
        "a tree in shared memory",
        _ROW_SUM,
        "B^{6}_{bx=0}[B^{5}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{bx,tx}+A^{f32,g}_{bx,tx+5};];B^{5}_{tx=0}[S^{f32,s}_{0}=S^{f32,s}_{0}+S^{f32,s}_{1}+S^{f32,s}_{2}+S^{f32,s}_{3}+S^{f32,s}_{4}:tx==0;];B^{5}_{tx=0}[D^{f32,g}_{bx}=S^{f32,s}_{0}:tx==0;];];",
    ),
    rewritten(
        "fusion",
        "mean and variance in one nest",
        _VARIANCE,
        "B^{4}_{tx=0}[L^{16}_{a=0}[M^{f32,l}=M^{f32,l}+A^{f32,g}_{tx,a};];E^{f32,l}=M^{f32,l}/16;L^{16}_{a=0}[Q^{f32,l}=Q^{f32,l}+(A^{f32,g}_{tx,a}-E^{f32,l})**2;];D^{f32,g}_{tx}=Q^{f32,l}/16;];",
    ),
    rewritten(
        "fusion",
        "the place of the maximum in one nest",
        _ARGMAX,
        "B^{4}_{tx=0}[L^{8}_{a=0}[M^{f32,l}=max(M^{f32,l},A^{f32,g}_{tx,a});];D^{i64,g}_{tx}=0;L^{8}_{a=0}[D^{i64,g}_{tx}=if_then_else(A^{f32,g}_{tx,a}>=M^{f32,l},a,D^{i64,g}_{tx});];];",
    ),
    rewritten(
        "prefix",
        "running maximum and sum of a softmax",
        o.SOFTMAX,
        "B^{5}_{tx=0}L^{12}_{c=0}[N^{f32,g}_{tx,c}=max(if_then_else(c-1<0,-inf,N^{f32,g}_{tx,c-1}),A^{f32,g}_{tx,c});R^{f32,g}_{tx,c}=if_then_else(c-1<0,0,if_then_else(N^{f32,g}_{tx,c-1}==-inf,0,R^{f32,g}_{tx,c-1}*exp(N^{f32,g}_{tx,c-1}-N^{f32,g}_{tx,c})))+if_then_else(A^{f32,g}_{tx,c}==-inf,0,exp(A^{f32,g}_{tx,c}-N^{f32,g}_{tx,c}));];",
        "B^{5}_{tx=0}L^{12}_{c=0}[D^{f32,g}_{tx,c}=exp(A^{f32,g}_{tx,c}-N^{f32,g}_{tx,11})/R^{f32,g}_{tx,11};];",
    ),
    rewritten(
        "prefix",
        "attention in one pass over the keys, state in registers",
        _FLASH,
        "B^{2}_{tx=0}L^{3}_{a=0}[M^{f32,l}=-inf;Z^{f32,l}=0;L^{2}_{d=0}[F^{f32,l}_{d}=0;];L^{4}_{c=0}[S^{f32,l}=0;L^{2}_{d=0}[S^{f32,l}=S^{f32,l}+Q^{f32,g}_{tx,a,d}*K^{f32,g}_{tx,c,d};];N^{f32,l}=max(M^{f32,l},S^{f32,l});R^{f32,l}=if_then_else(M^{f32,l}==-inf,0,exp(M^{f32,l}-N^{f32,l}));G^{f32,l}=if_then_else(S^{f32,l}==-inf,0,exp(S^{f32,l}-N^{f32,l}));Z^{f32,l}=Z^{f32,l}*R^{f32,l}+G^{f32,l};L^{2}_{d=0}[F^{f32,l}_{d}=F^{f32,l}_{d}*R^{f32,l}+G^{f32,l}*X^{f32,g}_{tx,c,d};];M^{f32,l}=N^{f32,l};];L^{2}_{d=0}[O^{f32,g}_{tx,a,d}=F^{f32,l}_{d}/Z^{f32,l};];];",
    ),
    rewritten(
        "prefix",
        "attention in two tiles of keys, rescaled between them",
        _TWO_TILES,
        "B^{3}_{tx=0}[M^{f32,l}=-inf;Z^{f32,l}=0;L^{2}_{d=0}[F^{f32,l}_{d}=0;];L^{2}_{a=0}[N^{f32,l}=M^{f32,l};L^{4}_{c=0}[N^{f32,l}=max(N^{f32,l},S^{f32,g}_{tx,a*4+c});];R^{f32,l}=if_then_else(M^{f32,l}==-inf,0,exp(M^{f32,l}-N^{f32,l}));Z^{f32,l}=Z^{f32,l}*R^{f32,l};L^{2}_{d=0}[F^{f32,l}_{d}=F^{f32,l}_{d}*R^{f32,l};];L^{4}_{c=0}[G^{f32,l}=if_then_else(S^{f32,g}_{tx,a*4+c}==-inf,0,exp(S^{f32,g}_{tx,a*4+c}-N^{f32,l}));Z^{f32,l}=Z^{f32,l}+G^{f32,l};L^{2}_{d=0}[F^{f32,l}_{d}=F^{f32,l}_{d}+G^{f32,l}*X^{f32,g}_{a*4+c,d};];];M^{f32,l}=N^{f32,l};];L^{2}_{d=0}[O^{f32,g}_{tx,d}=F^{f32,l}_{d}/Z^{f32,l};];];",
    ),
)
