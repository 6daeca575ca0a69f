"""Valid LEIR programs that a checker or a lowering easily gets wrong."""

from tests.support.cases import Case


def _valid(name: str, header: str, short: str, temps: str = "") -> Case:
    return Case(name, header, short, temps)


VALID: tuple[Case, ...] = (
    _valid(
        "matmul",
        "input A f32[4,5]; param C f32[5,3]; output D f32[4,3]",
        "B^4_tx L^3_a L^5_c[D_{tx,a}=D_{tx,a}+A_{tx,c}*C_{c,a};];",
    ),
    _valid("block-reduction", "input A f32[8]; output D f32[]", "B^8_tx[D=D+A_{tx};];"),
    _valid(
        "block-reduction-per-block",
        "input A f32[3,4]; output D f32[3]",
        "B^3_bx B^4_tx[D_{bx}=max(D_{bx},A_{bx,tx});];",
    ),
    _valid(
        "block-reduction-in-shared-memory",
        "input A f32[2,4] in 1..2; output D f32[2,4]",
        "B^2_bx[B^4_tx[S=S+A_{bx,tx};];B^4_tx[D_{bx,tx}=A_{bx,tx}/S;];];",
        "S f32 s",
    ),
    _valid(
        "block-reduction-over-two-axes",
        "input A f32[2,3,4]; output D f32[2]",
        "B^2_bx B^3_ty B^4_tx[D_{bx}=D_{bx}+A_{bx,ty,tx};];",
    ),
    _valid(
        "block-reduction-with-serial-part",
        "input A f32[4,6]; output D f32[]",
        "B^4_tx L^6_c[D=D+A_{tx,c};];",
    ),
    _valid(
        "block-reduction-guarded",
        "input A f32[6]; output D f32[]",
        "B^8_tx[D=D+A_{tx}:tx<6;];",
    ),
    _valid(
        "exchange-through-shared-memory",
        "input A f32[2,4]; output D f32[2,4]",
        "B^2_bx[B^4_tx[S_{tx}=A_{bx,tx};];B^4_tx[D_{bx,tx}=S_{3-tx};];];",
        "S f32 s",
    ),
    _valid(
        "exchange-through-global-memory-in-a-block",
        "input A f32[2,4]; output D f32[2,4]",
        "B^2_bx[B^4_tx[E_{bx,tx}=A_{bx,tx};];B^4_tx[D_{bx,tx}=E_{bx,3-tx};];];",
    ),
    _valid(
        "tiled-matmul",
        "input A f32[2,8]; param C f32[8,4]; output D f32[2,4]",
        "B^2_bx[B^4_tx[X=0;];L^2_c[B^4_tx[S_{tx}=A_{bx,c*4+tx};];"
        "B^4_tx L^4_d[X=X+S_{d}*C_{c*4+d,tx};];];B^4_tx[D_{bx,tx}=X;];];",
        "X f32 l; S f32 s",
    ),
    _valid(
        "tiled-matmul-in-two-axes",
        "input A f32[4,6]; param C f32[6,4]; output D f32[4,4]",
        "B^2_by B^2_bx[L^3_c[B^2_ty B^2_tx[S_{ty,tx}=A_{by*2+ty,c*2+tx};"
        "Q_{ty,tx}=C_{c*2+ty,bx*2+tx};];"
        "B^2_ty B^2_tx L^2_d[X=X+S_{ty,d}*Q_{d,tx};];];B^2_ty B^2_tx[D_{by*2+ty,bx*2+tx}=X;];];",
        "X f32 l; S f32 s; Q f32 s",
    ),
    _valid(
        "local-accumulator-starts-fresh-per-thread",
        "input A f32[4,3]; output D f32[4]",
        "B^4_tx[L^3_c[X=X+A_{tx,c};];D_{tx}=X;];",
        "X f32 l",
    ),
    _valid(
        "local-array-per-thread",
        "input A f32[4,3]; output D f32[4,3]",
        "B^4_tx[L^3_c[X_{c}=A_{tx,c}*2;];L^3_c[D_{tx,c}=X_{2-c};];];",
        "X f32 l",
    ),
    _valid(
        "guarded-tile",
        "input A f32[10]; output D f32[10]",
        "L^3_a L^4_c[D_{a*4+c}=A_{a*4+c}*2:a*4+c<10;];",
    ),
    _valid(
        "rounded-up-launch",
        "input A f32[10]; output D f32[10]",
        "B^3_bx B^4_tx[D_{bx*4+tx}=exp(A_{bx*4+tx}):bx*4+tx<10;];",
    ),
    _valid(
        "guarded-reduction-tile",
        "input A f32[4,10]; output D f32[4]",
        "L^4_a L^3_c L^4_d[D_{a}=D_{a}+A_{a,c*4+d}:c*4+d<10;];",
    ),
    _valid(
        "reduction-tile-by-identity",
        "input A f32[10]; output D f32[]",
        "L^3_c L^4_d[D=D+if_then_else(c*4+d<10,A_{c*4+d},0);];",
    ),
    _valid(
        "accumulator-reused-with-init",
        "input A f32[4,3]; output D f32[4]",
        "L^4_a[K=0;L^3_c[K=K+A_{a,c};];D_{a}=K;];",
    ),
    _valid(
        "running-maximum-reused-with-init",
        "input A f32[4,3]; output D f32[4]",
        "L^4_a[K=-inf;L^3_c[K=max(K,A_{a,c});];D_{a}=K;];",
    ),
    _valid(
        "softmax",
        "input A f32[4,5]; output D f32[4,5]",
        "B^4_tx L^5_c[M_{tx}=max(M_{tx},A_{tx,c});];B^4_tx L^5_c[E_{tx,c}=exp(A_{tx,c}-M_{tx});];"
        "B^4_tx L^5_c[S_{tx}=S_{tx}+E_{tx,c};];B^4_tx L^5_c[D_{tx,c}=E_{tx,c}/S_{tx};];",
    ),
    _valid(
        "online-softmax",
        "input A f32[4,5]; output D f32[4,5]",
        "B^4_tx L^5_c[N_{tx,c}=max(if_then_else(c-1<0,-inf,N_{tx,c-1}),A_{tx,c});"
        "R_{tx,c}=if_then_else(c-1<0,0,if_then_else(N_{tx,c-1}==-inf,0,"
        "R_{tx,c-1}*exp(N_{tx,c-1}-N_{tx,c})))+if_then_else(A_{tx,c}==-inf,0,exp(A_{tx,c}-N_{tx,c}));];"
        "B^4_tx L^5_c[D_{tx,c}=exp(A_{tx,c}-N_{tx,4})/R_{tx,4};];",
    ),
    _valid(
        "attention-with-rolling-state",
        "input A f32[4,3]; input C f32[5,3]; input W f32[5,2]; output D f32[4,2]",
        "B^4_tx[M=-inf;S=0;L^2_g[O_{g}=0;];L^5_c[Q=0;L^3_d[Q=Q+A_{tx,d}*C_{c,d};];"
        "N=max(M,Q);F=if_then_else(M==-inf,0,exp(M-N));G=exp(Q-N);S=S*F+G;"
        "L^2_g[O_{g}=O_{g}*F+G*W_{c,g};];M=N;];L^2_g[D_{tx,g}=O_{g}/S;];];",
        "M f32 l; S f32 l; O f32 l; Q f32 l; N f32 l; F f32 l; G f32 l",
    ),
    _valid(
        "attention-with-rolling-state-in-global-memory",
        "input A f32[4,3]; input C f32[5,3]; output D f32[4]",
        "L^4_a[M=-inf;S=0;L^5_c[Q=0;L^3_d[Q=Q+A_{a,d}*C_{c,d};];N=max(M,Q);"
        "S=if_then_else(M==-inf,0,S*exp(M-N))+exp(Q-N);M=N;];D_{a}=M+log(S);];",
    ),
    _valid(
        "cooperative-copy-with-halo",
        "input A f32[10]; output D f32[8]",
        "B^2_bx[B^6_tx[S_{tx}=A_{bx*4+tx};];B^4_tx[D_{bx*4+tx}=S_{tx}+S_{tx+1}+S_{tx+2};];];",
        "S f32 s",
    ),
    _valid(
        "cooperative-copy-strided",
        "input A f32[2,12]; output D f32[2,4]",
        "B^2_bx[B^4_tx L^3_c[S_{c*4+tx}=A_{bx,c*4+tx};];"
        "B^4_tx L^3_c[D_{bx,tx}=D_{bx,tx}+S_{tx*3+c};];];",
        "S f32 s",
    ),
    _valid(
        "serial-loop-launches-kernels",
        "input A f32[3,4]; output D f32[3,4]",
        "L^3_a B^4_tx[X=A_{a,tx}*2;D_{a,tx}=X+1;];",
        "X f32 l",
    ),
    _valid(
        "reduction-over-launches",
        "input A f32[3,4]; output D f32[4]",
        "L^3_a B^4_tx[D_{tx}=D_{tx}+A_{a,tx};];",
    ),
    _valid(
        "launches-pass-on-through-global-memory",
        "input A f32[4]; output D f32[3,4]",
        "L^3_a B^4_tx[D_{a,tx}=if_then_else(a==0,A_{tx},D_{a-1,3-tx}+1);];",
    ),
    _valid(
        "siblings-pass-on-through-a-serial-loop",
        "input A f32[4]; output D f32[4]",
        "B^1_bx[B^4_tx[S_{tx}=A_{tx};];L^3_c[B^4_tx[X=S_{(tx+1)%4};];B^4_tx[S_{tx}=X*2;];];"
        "B^4_tx[D_{tx}=S_{tx};];];",
        "S f32 s; X f32 l",
    ),
    _valid(
        "threads-keep-their-own-through-a-serial-loop",
        "input A f32[3,4]; output D f32[4]",
        "B^1_bx L^3_c B^4_tx[D_{tx}=if_then_else(c==0,0,D_{tx})*0.5+A_{c,tx};];",
    ),
    _valid(
        "block-reduction-in-a-serial-loop",
        "input A f32[3,4]; output D f32[]",
        "B^1_bx L^3_c B^4_tx[D=D+A_{c,tx};];",
    ),
    _valid(
        "launch-loop-around-blocks-with-shared-memory",
        "input A f32[3,2,4]; output D f32[3,2,4]",
        "L^3_a B^2_bx[B^4_tx[S_{tx}=A_{a,bx,tx};];B^4_tx[D_{a,bx,tx}=S_{(tx+1)%4};];];",
        "S f32 s",
    ),
    _valid(
        "cumulative-sum",
        "input A f32[8]; output D f32[8]",
        "L^8_c[D_{c}=if_then_else(c-1<0,0,D_{c-1})+A_{c};];",
    ),
    _valid(
        "recurrence-from-one",
        "input A f32[8]; output D f32[8]",
        "L^1_a[D_{0}=A_{0};];L^{7}_{c=1}[D_{c}=D_{c-1}*0.5+A_{c};];",
    ),
    _valid(
        "recurrence-of-two-steps",
        "input A f32[8]; output D f32[8]",
        "L^8_c[D_{c}=if_then_else(c<2,A_{c},D_{c-1}-D_{c-2});];",
    ),
    _valid(
        "edge-padding",
        "input A f32[8]; param W f32[3]; output D f32[8]",
        "L^8_c L^3_d[D_{c}=D_{c}+if_then_else(1<=c+d<9,A_{c+d-1},0)*W_{d};];",
    ),
    _valid(
        "edge-padding-in-two-dimensions",
        "input A f32[4,4]; output D f32[4,4]",
        "L^4_a L^4_c L^3_d L^3_f[D_{a,c}=max(D_{a,c},"
        "if_then_else(1<=a+d<5&1<=c+f<5,A_{a+d-1,c+f-1},-inf));];",
    ),
    _valid(
        "padding-by-else",
        "input A f32[8]; output D f32[8]",
        "L^8_c[D_{c}=if_then_else(c<1|c>=7,0,A_{c-1}+A_{c+1});];",
    ),
    _valid(
        "padding-by-nested-branches",
        "input A f32[8]; output D f32[8]",
        "L^8_c[D_{c}=if_then_else(c<2,0,if_then_else(c>5,1,A_{c-2}*A_{c+2}));];",
    ),
    _valid(
        "indirect-read-in-range",
        "input A f32[10,3]; input Y i64[4] in 0..9; output D f32[4,3]",
        "B^4_tx L^3_c[D_{tx,c}=A_{Y_{tx},c};];",
    ),
    _valid(
        "index-table",
        "input A f32[4]; output D f32[8]",
        "L^8_a[Q_{a}=a//2;];L^8_a[D_{a}=A_{Q_{a}};];",
        "Q i64 g",
    ),
    _valid(
        "unit-extents",
        "input A f32[1,1]; output D f32[1]",
        "B^1_bx B^1_tx P^1_a V^1_c[D_{a}=D_{a}+A_{a,c};];",
    ),
    _valid("parallel-over-one-iteration", "input A f32[1]; output D f32[]", "P^1_a[D=A_{a};];"),
    _valid(
        "parallel-and-vector",
        "input A f32[3,4]; output D f32[3,4]",
        "P^3_a V^4_c[D_{a,c}=A_{a,c}+1;];",
    ),
    _valid(
        "parallel-rows-accumulate",
        "input A f32[3,4]; output D f32[3]",
        "P^3_a[K_{a}=0;L^4_c[K_{a}=K_{a}+A_{a,c};];D_{a}=K_{a};];",
    ),
    _valid("unrolled-reduction", "input A f32[4]; output D f32[]", "U^4_c[D=D+A_{c};];"),
    _valid(
        "fused-loop-layout",
        "input A f32[3,4]; output D f32[4,3]",
        "P^12_a[D_{a%4,a//4}=A_{a//4,a%4};];",
    ),
    _valid(
        "concatenation",
        "input A f32[4]; input C f32[3]; output D f32[7]",
        "B^4_tx[D_{tx}=A_{tx};];B^3_tx[D_{tx+4}=C_{tx};];",
    ),
    _valid(
        "concatenation-in-one-equation",
        "input A f32[4]; input C f32[3]; output D f32[7]",
        "B^7_tx[D_{tx}=if_then_else(tx<4,A_{tx},C_{tx-4});];",
    ),
    _valid(
        "bias-continues-the-sum",
        "input A f32[3,4]; param W f32[3]; output D f32[3]",
        "L^3_a L^4_c[D_{a}=D_{a}+A_{a,c};];L^3_a[D_{a}=D_{a}+W_{a};];",
    ),
    _valid(
        "update-of-a-chain",
        "input A f32[4]; input C f32[4]; output D f32[]",
        "L^4_a[D=D+A_{a}+C_{a};];",
    ),
    _valid("difference-update", "input A f32[4]; output D f32[]", "L^4_a[D=D-A_{a};];"),
    _valid("operand-before-target", "input A f32[4]; output D f32[]", "L^4_a[D=A_{a}*D;];"),
    _valid(
        "update-with-its-subscript-written-otherwise",
        "input A f32[12]; output D f32[12]",
        "L^3_a L^4_c[D_{a*4+c}=D_{c+4*a}+A_{a*4+c};];",
    ),
    _valid(
        "fold-into-halves",
        "input A f32[8]; output D f32[4]",
        "L^8_c[D_{c//2}=D_{c//2}+A_{c};];",
    ),
    _valid(
        "two-updates-of-different-elements",
        "input A f32[4]; output D f32[2]",
        "L^4_a[D_{0}=D_{0}+A_{a};D_{1}=max(D_{1},A_{a});];",
    ),
    _valid(
        "unequal-sibling-thread-loops",
        "input A f32[8]; output D f32[8]; output E f32[3]",
        "L^1_a[B^8_tx[D_{tx}=A_{tx}*2;];B^3_tx[E_{tx}=D_{tx+5};];];",
    ),
    _valid(
        "sibling-inner-threads",
        "input A f32[2,4]; output D f32[2,4]",
        "B^2_tx[B^4_ty[S_{tx,ty}=A_{tx,ty};];B^4_ty[D_{tx,ty}=S_{tx,3-ty};];];",
        "S f32 s",
    ),
    _valid(
        "blocks-agree-across-siblings",
        "input A f32[3]; output D f32[3]",
        "L^2_a[B^3_bx[E_{bx}=A_{bx}+a;];B^3_bx[D_{bx}=E_{bx};];];",
    ),
    _valid(
        "arg-maximum",
        "input A f32[3,4]; output D i64[3]",
        "L^3_a L^4_c[M_{a}=max(M_{a},A_{a,c});D_{a}=0;];"
        "L^3_a L^4_c[D_{a}=if_then_else(A_{a,c}>=M_{a},c,D_{a});];",
    ),
    _valid(
        "masked",
        "input A f32[4]; input C bool[4]; output D f32[4]; output E bool[4]",
        "L^4_a[D_{a}=if_then_else(C_{a},-inf,A_{a});E_{a}=C_{a}|A_{a}>0;];",
    ),
    _valid(
        "half-precision-with-wide-sum",
        "input A f16[4,8]; output D f16[4]",
        "B^4_tx L^8_c[K_{tx}=K_{tx}+A_{tx,c};];B^4_tx[D_{tx}=K_{tx}/8;];",
    ),
    _valid(
        "default-then-overwrite-by-data",
        "input A f32[4]; output D f32[4]",
        "L^4_a[D_{a}=0;D_{a}=A_{a}:A_{a}>0;];",
    ),
    _valid("ring", "input A f32[4]; output D f32[4]", "V^4_c[D_{c}=A_{(c+3)%4};];"),
    _valid("reversed", "input A f32[8]; output D f32[8]", "P^8_c[D_{7-c}=A_{c};];"),
    _valid(
        "shift-in-place",
        "input A f32[8]; output D f32[8]",
        "L^8_c[D_{c}=A_{c};];L^7_c[D_{c}=D_{c+1};];",
    ),
    _valid(
        "triangular-guard",
        "input A f32[4,4]; output D f32[4]",
        "L^4_a[D_{a}=0;L^4_c[D_{a}=D_{a}+A_{a,c}:c<=a;];];",
    ),
    _valid(
        "partly-written-intermediate",
        "input A f32[8]; output D f32[4]",
        "L^4_a[E_{a*2}=A_{a};];L^4_a[D_{a}=E_{a*2};];",
    ),
    _valid(
        "complementary-guards",
        "input A f32[8]; output D f32[8]",
        "L^8_a[D_{a}=A_{a}:a%2==0;D_{a}=-A_{a}:a%2!=0;];",
    ),
    _valid(
        "constant-and-scalar",
        "input A f32[4]; param W f32[]; const K f32[] = 0.125; output D f32[4]",
        "B^4_tx[D_{tx}=A_{tx}*K+W*tx;];",
    ),
    _valid(
        "strided-window",
        "input A f32[9]; output D f32[4]",
        "L^4_c L^3_f[D_{c}=D_{c}+A_{c*2+f};];",
    ),
    _valid(
        "integer-minimum-and-product",
        "input A i32[4] in 1..5; output D i32[]; output E i32[]",
        "L^4_a[D=min(D,A_{a});E=E*A_{a};];",
    ),
    _valid(
        "histogram",
        "input A f32[8]; input Y i64[8] in 0..3; output D f32[4]",
        "L^4_c[D_{c}=0;];L^8_a[D_{Y_{a}}=D_{Y_{a}}+A_{a};];",
    ),
    _valid(
        "parallel-writes-through-an-affine-table",
        "input A f32[8]; output D f32[8]",
        "L^8_a[Q_{a}=7-a;];P^8_a[D_{Q_{a}}=A_{a};];",
        "Q i64 g",
    ),
    _valid(
        "shifted-table-under-a-condition",
        "input A f32[8]; output D f32[8]",
        "L^8_a[Q_{a}=a+1;];L^8_a[D_{a}=if_then_else(a<7,A_{Q_{a}},0);];",
        "Q i64 g",
    ),
    _valid(
        "clamped-table",
        "input A f32[8]; output D f32[8]",
        "L^8_a[Q_{a}=min(a+1,7);];L^8_a[D_{a}=A_{Q_{a}};];",
        "Q i64 g",
    ),
    _valid(
        "attention-with-shared-tiles",
        "input A f32[2,4]; input C f32[8,4]; input W f32[8,4]; output D f32[2,4]",
        "B^2_bx[B^4_tx[M=-inf;S=0;O=0;];L^2_c[B^4_tx L^4_d[K_{tx,d}=C_{c*4+tx,d};"
        "J_{tx,d}=W_{c*4+tx,d};];B^4_tx[R=0;L^4_d[R=R+A_{bx,d}*K_{tx,d};];Q_{tx}=R;];B^4_tx["
        "L^4_d[N=max(M,Q_{d});F=if_then_else(M==-inf,0,exp(M-N));"
        "G=if_then_else(Q_{d}==-inf,0,exp(Q_{d}-N));S=S*F+G;O=O*F+G*J_{d,tx};M=N;];];];B^4_tx["
        "D_{bx,tx}=O/S;];];",
        "M f32 l; S f32 l; O f32 l; K f32 s; J f32 s; R f32 l; Q f32 s; N f32 l; F f32 l; G f32 l",
    ),
    _valid(
        "tree-reduction",
        "input A f32[8]; output D f32[]",
        "L^1_a[B^8_tx[S_{tx}=A_{tx};];B^8_tx[S_{tx}=S_{tx}+S_{tx+4}:tx<4;];B^8_tx["
        "S_{tx}=S_{tx}+S_{tx+2}:tx<2;];B^8_tx[D=S_{0}+S_{1}:tx==0;];];",
        "S f32 s",
    ),
    _valid(
        "split-k",
        "input A f32[4,8]; output D f32[4]",
        "B^4_tx L^2_a L^4_c[E_{a,tx}=E_{a,tx}+A_{tx,a*4+c};];B^4_tx L^2_a["
        "D_{tx}=D_{tx}+E_{a,tx};];",
    ),
    _valid(
        "convolution",
        "input A f32[2,6,6]; param W f32[3,2,3,3]; output D f32[3,4,4]",
        "B^3_bx L^4_a L^4_c L^2_d L^3_f L^3_g[D_{bx,a,c}=D_{bx,a,c}+A_{d,a+f,c+g}*W_{bx,d,f,g};];",
    ),
    _valid(
        "guard-on-an-intermediate",
        "input A f32[8]; output D f32[8]",
        "L^8_a[E_{a}=A_{a};D_{a}=0;D_{a}=E_{a}:E_{a}>0;];",
    ),
    _valid(
        "one-thread-initialises",
        "input A f32[4]; output D f32[]",
        "L^1_a[B^4_tx[S=0:tx==0;];B^4_tx[S=S+A_{tx};];B^4_tx[D=S:tx==0;];];",
        "S f32 s",
    ),
    _valid(
        "rounded-up-block-reduction",
        "input A f32[10]; output D f32[3]",
        "B^3_bx B^4_tx[D_{bx}=D_{bx}+A_{bx*4+tx}:bx*4+tx<10;];",
    ),
    _valid(
        "swap-neighbours",
        "input A f32[8]; output D f32[8]",
        "L^8_a[D_{a}=if_then_else(a%2==0,A_{a+1},A_{a-1});];",
    ),
    _valid(
        "diagonal-by-guard",
        "input A f32[4,4]; output D f32[4]",
        "L^4_a L^4_c[D_{a}=A_{a,c}:a==c;];",
    ),
    _valid(
        "triangle-and-its-complement",
        "input A f32[4,4]; output D f32[4,4]",
        "L^4_a L^4_c[D_{a,c}=A_{a,c}:c<=a;D_{a,c}=-inf:c>a;];",
    ),
    _valid(
        "ping-pong",
        "input A f32[8]; output D f32[8]",
        "L^8_a[E_{0,a}=A_{a};];L^3_c L^8_a[E_{(c+1)%2,a}=E_{c%2,(a+1)%8};];L^8_a[D_{a}=E_{1,a};];",
    ),
    _valid(
        "carry-across-chunks",
        "input A f32[8]; output D f32[8]",
        "L^2_c[L^4_a[D_{c*4+a}=if_then_else(c*4+a<1,0,D_{c*4+a-1})+A_{c*4+a};];];",
    ),
    _valid(
        "scan-in-two-levels",
        "input A f32[8]; output D f32[8]",
        "P^2_c[L^4_a[E_{c,a}=if_then_else(a<1,0,E_{c,a-1})+A_{c*4+a};];];L^2_c["
        "F_{c}=if_then_else(c<1,0,F_{c-1}+E_{c-1,3});];P^8_a[D_{a}=E_{a//4,a%4}+F_{a//4};];",
    ),
    _valid(
        "dilated-pooling",
        "input A f32[9]; output D f32[5]",
        "L^5_c L^3_f[D_{c}=max(D_{c},A_{c+f*2});];",
    ),
    _valid(
        "upsample",
        "input A f32[4]; output D f32[8]",
        "L^8_c[D_{c}=A_{c//2};];",
    ),
    _valid(
        "upsample-write",
        "input A f32[4]; output D f32[8]",
        "P^4_c V^2_f[D_{c*2+f}=A_{c};];",
    ),
    _valid(
        "transposed-conv-gather",
        "input A f32[4]; param W f32[3]; output D f32[9]",
        "L^9_c L^3_f["
        "D_{c}=D_{c}+if_then_else(c-f>=0&(c-f)%2==0&(c-f)//2<4,A_{(c-f)//2}*W_{f},0);];",
    ),
    _valid(
        "transposed-conv-scatter",
        "input A f32[4]; param W f32[3]; output D f32[9]",
        "L^4_c L^3_f[D_{c*2+f}=D_{c*2+f}+A_{c}*W_{f};];",
    ),
    _valid(
        "scalar-broadcast-under-threads",
        "input A f32[4]; output D f32[4]",
        "B^1_tx[K=A_{0};];B^4_tx[D_{tx}=A_{tx}*K;];",
    ),
    _valid(
        "unsigned-bytes",
        "input A u8[4]; output D u8[4]",
        "L^4_a[D_{a}=A_{a}*2+1;];",
    ),
    _valid(
        "last-iteration-wins",
        "input A f32[4]; output D f32[]",
        "L^4_a[D=A_{a};];",
    ),
)
