"""The right programs that the zoo's mistakes are made in."""

from typing import Final

MATMUL: Final = """\
# input A f32[6,16]
# input C f32[16,8]
# output D f32[6,8]
B^{6}_{tx=0}L^{8}_{a=0}L^{16}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
"""

MATMUL_HALF: Final = """\
# input A f16[6,64]
# input C f16[64,8]
# output D f16[6,8]
B^{6}_{tx=0}L^{8}_{a=0}L^{64}_{c=0}[F^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}+A^{f16,g}_{tx,c}*C^{f16,g}_{c,a};];
B^{6}_{tx=0}L^{8}_{a=0}[D^{f16,g}_{tx,a}=F^{f32,g}_{tx,a};];
"""

LINEAR: Final = """\
# input A f32[5,12]
# param W f32[7,12]
# param F f32[7]
# output D f32[5,7]
B^{5}_{tx=0}L^{7}_{a=0}L^{12}_{c=0}[E^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{a,c};];
B^{5}_{tx=0}L^{7}_{a=0}[D^{f32,g}_{tx,a}=max(E^{f32,g}_{tx,a}+F^{f32,g}_{a},0);];
"""

SOFTMAX: Final = """\
# input A f32[5,12]
# output D f32[5,12]
B^{5}_{tx=0}L^{12}_{a=0}[C^{f32,g}_{tx}=max(C^{f32,g}_{tx},A^{f32,g}_{tx,a});];
B^{5}_{tx=0}L^{12}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx});];
B^{5}_{tx=0}L^{12}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})/E^{f32,g}_{tx};];
"""

SOFTMAX_HALF: Final = """\
# input A f16[2,4096]
# output D f16[2,4096]
B^{2}_{tx=0}L^{4096}_{a=0}[C^{f32,g}_{tx}=max(C^{f32,g}_{tx},A^{f16,g}_{tx,a});];
B^{2}_{tx=0}L^{4096}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+exp(A^{f16,g}_{tx,a}-C^{f32,g}_{tx});];
B^{2}_{tx=0}L^{4096}_{a=0}[D^{f16,g}_{tx,a}=exp(A^{f16,g}_{tx,a}-C^{f32,g}_{tx})/E^{f32,g}_{tx};];
"""

LAYERNORM: Final = """\
# input A f32[4,10]
# param W f32[10]
# param F f32[10]
# output D f32[4,10]
B^{4}_{tx=0}L^{10}_{a=0}[C^{f32,g}_{tx}=C^{f32,g}_{tx}+A^{f32,g}_{tx,a}/10;];
B^{4}_{tx=0}L^{10}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})**2/10;];
B^{4}_{tx=0}L^{10}_{a=0}[D^{f32,g}_{tx,a}=(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})/sqrt(E^{f32,g}_{tx}+1e-5)*W^{f32,g}_{a}+F^{f32,g}_{a};];
"""

MAX_POOL: Final = """\
# input A f32[3,10]
# output D f32[3,5]
B^{3}_{tx=0}L^{5}_{a=0}L^{3}_{c=0}[D^{f32,g}_{tx,a}=max(D^{f32,g}_{tx,a},if_then_else(1<=a*2+c&a*2+c<11,A^{f32,g}_{tx,a*2+c-1},-inf));];
"""

CONVOLUTION: Final = """\
# input A f32[3,9]
# param W f32[4,3,3]
# output D f32[4,9]
B^{4}_{tx=0}L^{9}_{a=0}L^{3}_{c=0}L^{3}_{d=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+if_then_else(1<=a+d&a+d<10,A^{f32,g}_{c,a+d-1},0)*W^{f32,g}_{tx,c,d};];
"""

PREFIX_SUM: Final = """\
# input A f32[4,9]
# output D f32[4,9]
B^{4}_{tx=0}L^{9}_{a=0}[D^{f32,g}_{tx,a}=if_then_else(a-1<0,0,D^{f32,g}_{tx,a-1})+A^{f32,g}_{tx,a};];
"""

ATTENTION: Final = """\
# input A f32[6,4]
# input C f32[6,4]
# input E f32[6,4]
# output D f32[6,4]
B^{6}_{tx=0}L^{6}_{a=0}L^{4}_{c=0}[F^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{a,c};];
B^{6}_{tx=0}L^{6}_{a=0}[G^{f32,g}_{tx,a}=if_then_else(a<=tx,F^{f32,g}_{tx,a}*0.5,-inf);];
B^{6}_{tx=0}L^{6}_{a=0}[H^{f32,g}_{tx}=max(H^{f32,g}_{tx},G^{f32,g}_{tx,a});];
B^{6}_{tx=0}L^{6}_{a=0}[K^{f32,g}_{tx}=K^{f32,g}_{tx}+exp(G^{f32,g}_{tx,a}-H^{f32,g}_{tx});];
B^{6}_{tx=0}L^{4}_{c=0}L^{6}_{a=0}[D^{f32,g}_{tx,c}=D^{f32,g}_{tx,c}+exp(G^{f32,g}_{tx,a}-H^{f32,g}_{tx})/K^{f32,g}_{tx}*E^{f32,g}_{a,c};];
"""

ARGMAX: Final = """\
# input A f32[4,7]
# output D i64[4]
B^{4}_{tx=0}[H^{f32,g}_{tx}=-inf;D^{i64,g}_{tx}=0;L^{7}_{a=0}[D^{i64,g}_{tx}=if_then_else(A^{f32,g}_{tx,a}>H^{f32,g}_{tx},a,D^{i64,g}_{tx});H^{f32,g}_{tx}=max(H^{f32,g}_{tx},A^{f32,g}_{tx,a});];];
"""

STEP: Final = """\
# input A f32[24]
# output D f32[24]
B^{24}_{tx=0}[D^{f32,g}_{tx}=if_then_else(A^{f32,g}_{tx}>0.5,1.0,0.0);];
"""

GATHER: Final = """\
# input A f32[9,3]
# input C i64[5] in 0..8
# output D f32[5,3]
B^{5}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{C^{i64,g}_{tx},a};];
"""

MEAN_SQUARE: Final = """\
# input A f32[6,5]
# input C f32[6,5]
# output D f32[]
B^{1}_{tx=0}L^{6}_{a=0}L^{5}_{c=0}[D^{f32,g}=D^{f32,g}+(A^{f32,g}_{a,c}-C^{f32,g}_{a,c})**2/30;];
"""

SCALE_ADD: Final = """\
# input A f32[20]
# input C f32[20]
# output D f32[20]
B^{20}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2.5-C^{f32,g}_{tx};];
"""

QUANTISE: Final = """\
# input A f32[16]
# output D i32[16]
B^{16}_{tx=0}[D^{i32,g}_{tx}=min(max(round(A^{f32,g}_{tx}*16),-128),127);];
"""

INTEGER_SUM: Final = """\
# input A i32[4,8]
# output D i32[4]
B^{4}_{tx=0}L^{8}_{a=0}[D^{i32,g}_{tx}=D^{i32,g}_{tx}+A^{i32,g}_{tx,a}*A^{i32,g}_{tx,a};];
"""

REVERSE: Final = """\
# input A f32[3,8]
# output D f32[3,8]
B^{3}_{bx=0}[B^{8}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{bx,tx};];B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=S^{f32,s}_{7-tx};];];
"""

GELU: Final = """\
# input A f32[24]
# output D f32[24]
B^{24}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*0.5*(1+erf(A^{f32,g}_{tx}/sqrt(2)));];
"""
