"""Invalid LEIR programs, one or more for every rule."""

from tests.support.cases import Case


def _invalid(kinds: str, name: str, header: str, short: str, temps: str = "") -> Case:
    return Case(name, header, short, temps, tuple(kinds.split()))


_ONE = "input A f32[4]; output D f32[4]"
_TWO = "input A f32[4,4]; output D f32[4]"

INVALID: tuple[Case, ...] = (
    _invalid("unknown-name", "unknown-name", _ONE, "L^4_a[D_{a}=A_{a}+Z_{a};];"),
    _invalid("rank-mismatch", "rank-of-input", _TWO, "L^4_a[D_{a}=A_{a};];"),
    _invalid("rank-mismatch", "rank-of-output", _ONE, "L^4_a[D_{a,0}=A_{a};];"),
    _invalid("rank-mismatch", "rank-of-intermediate", _ONE, "L^4_a[E_{a}=A_{a};D_{a}=E_{a,0};];"),
    _invalid(
        "annotation-conflict",
        "dtype-of-intermediate",
        _ONE,
        "L^4_a[E_{a}=A_{a};E^{f64,g}_{a}=A_{a};D_{a}=E_{a};];",
    ),
    _invalid(
        "annotation-conflict",
        "scope-of-intermediate",
        _ONE,
        "B^4_tx[E^{f32,l}=A_{tx};E^{f32,s}=A_{tx};D_{tx}=E^{f32,l};];",
    ),
    _invalid(
        "known-variable-changed annotation-conflict",
        "output-in-local-memory",
        _ONE,
        "B^4_tx[D^{f32,l}_{tx}=A_{tx};];",
    ),
    _invalid(
        "known-variable-changed annotation-conflict",
        "output-of-another-dtype",
        _ONE,
        "B^4_tx[D^{f16,g}_{tx}=A_{tx};];",
    ),
    _invalid("unbound-index", "unbound-in-subscript", _ONE, "L^4_a[D_{a}=A_{c};];"),
    _invalid("unbound-index", "unbound-in-guard", _ONE, "L^4_a[D_{a}=A_{a}:c<4;];"),
    _invalid("unbound-index", "unbound-in-target", _ONE, "L^4_a[D_{c}=A_{a};];"),
    _invalid(
        "unbound-index", "bound-by-a-sibling-only", _ONE, "L^1_a[L^4_c[D_{c}=A_{c};];D_{0}=A_{c};];"
    ),
    _invalid("index-rebound", "index-rebound", _ONE, "L^4_a[L^4_a[D_{a}=A_{a};];];"),
    _invalid("index-rebound", "index-rebound-in-one-nest", _ONE, "L^4_a L^2_a[D_{a}=A_{a};];"),
    _invalid("out-of-bounds", "read-beyond", _ONE, "L^4_a[D_{a}=A_{a+1};];"),
    _invalid("out-of-bounds", "read-below", _ONE, "L^4_a[D_{a}=A_{a-1};];"),
    _invalid("out-of-bounds", "write-beyond", _ONE, "L^5_a[D_{a}=1;];"),
    _invalid("out-of-bounds", "write-below", _ONE, "L^4_a[E_{a-1}=A_{a};];L^4_a[D_{a}=A_{a};];"),
    _invalid(
        "out-of-bounds",
        "read-of-intermediate-beyond",
        _ONE,
        "L^4_a[E_{a}=A_{a};];L^4_a[D_{a}=E_{a+1};];",
    ),
    _invalid(
        "out-of-bounds",
        "guard-off-by-one",
        "input A f32[10]; output D f32[10]",
        "L^3_a L^4_c[D_{a*4+c}=A_{a*4+c}:a*4+c<=10;];",
    ),
    _invalid(
        "out-of-bounds",
        "else-branch-below",
        _ONE,
        "L^4_a[D_{a}=if_then_else(a>1,0,A_{a-1});];",
    ),
    _invalid(
        "out-of-bounds",
        "padding-too-wide",
        "input A f32[8]; output D f32[8]",
        "L^8_c L^3_d[D_{c}=D_{c}+if_then_else(1<=c+d<=9,A_{c+d-1},0);];",
    ),
    _invalid(
        "out-of-bounds",
        "recurrence-without-guard",
        _ONE,
        "L^4_c[D_{c}=D_{c-1}+A_{c};];",
    ),
    _invalid(
        "out-of-bounds",
        "scalar-tile-of-a-row",
        "input A f32[3,4]; output D f32[3,4]",
        "L^4_a L^3_c[D_{c,a}=A_{a,c};];",
    ),
    _invalid(
        "unwritten-read",
        "read-before-write",
        _ONE,
        "L^4_a[D_{a}=E_{a};];L^4_a[E_{a}=A_{a};];",
    ),
    _invalid(
        "unwritten-read",
        "read-before-write-in-one-body",
        _ONE,
        "L^4_a[D_{a}=E_{a};E_{a}=A_{a};];",
    ),
    _invalid(
        "unwritten-read",
        "recurrence-without-start",
        _ONE,
        "L^{3}_{c=1}[D_{c}=D_{c-1}+A_{c};];L^1_a[D_{0}=A_{0};];",
    ),
    _invalid(
        "unwritten-read", "impure-update", "input A f32[4]; output D f32[]", "L^4_a[D=D*2+A_{a};];"
    ),
    _invalid(
        "unwritten-read",
        "reversed-difference-update",
        "input A f32[4]; output D f32[]",
        "L^4_a[D=A_{a}-D;];",
    ),
    _invalid(
        "unwritten-read",
        "update-that-squares-its-target",
        "input A f32[4]; output D f32[]",
        "L^4_a[D=D+A_{a}*D;];",
    ),
    _invalid(
        "unwritten-read",
        "hole-in-an-intermediate",
        _ONE,
        "L^4_a[E_{a}=A_{a}:a!=2;];L^4_a[D_{a}=E_{a};];",
    ),
    _invalid(
        "unwritten-read",
        "tail-of-a-tile-missing",
        "input A f32[10]; output D f32[10]",
        "L^2_a L^4_c[E_{a*4+c}=A_{a*4+c};];L^1_a[E_{9}=0;];L^10_a[D_{a}=E_{a};];",
    ),
    _invalid(
        "unwritten-read",
        "local-value-from-an-earlier-launch",
        _TWO,
        "L^4_a B^4_tx[X=A_{a,tx}:a==0;D_{tx}=X;];",
        "X f32 l",
    ),
    _invalid(
        "unwritten-read",
        "shared-value-from-an-earlier-launch",
        _TWO,
        "L^4_a B^4_tx[S_{tx}=A_{a,tx}:a==0;D_{tx}=S_{tx};];",
        "S f32 s",
    ),
    _invalid(
        "unwritten-read",
        "local-value-of-a-thread-that-has-none",
        _ONE,
        "L^1_a[B^2_tx[X=A_{tx};];B^4_tx[D_{tx}=X;];];",
        "X f32 l",
    ),
    _invalid(
        "unwritten-read",
        "shared-value-of-another-block",
        _ONE,
        "B^4_bx[S=A_{bx}:bx==0;D_{bx}=S;];",
        "S f32 s",
    ),
    _invalid("output-not-covered", "tail-dropped", _ONE, "L^3_a[D_{a}=A_{a};];"),
    _invalid(
        "output-not-covered",
        "tail-tile-dropped",
        "input A f32[10]; output D f32[10]",
        "L^2_a L^4_c[D_{a*4+c}=A_{a*4+c};];",
    ),
    _invalid(
        "output-not-covered",
        "output-never-written",
        "input A f32[4]; output D f32[4]; output E f32[4]",
        "L^4_a[D_{a}=A_{a};];",
    ),
    _invalid("output-not-covered", "guard-too-narrow", _ONE, "L^4_a[D_{a}=A_{a}:1<=a<4;];"),
    _invalid("output-not-covered", "only-every-second", _ONE, "L^2_a[D_{a*2}=A_{a};];"),
    _invalid("input-written", "input-written", _ONE, "L^4_a[A_{a}=0;D_{a}=1;];"),
    _invalid(
        "input-written",
        "parameter-updated",
        "param W f32[4]; output D f32[4]",
        "L^4_a[W_{a}=W_{a}*2;D_{a}=W_{a};];",
    ),
    _invalid(
        "input-written",
        "constant-written",
        "const K f32[] = 2; output D f32[4]",
        "L^4_a[K=1;D_{a}=K;];",
    ),
    _invalid(
        "axis-repeated", "axis-bound-twice", _ONE, "B^2_tx B^2_txa[D_{tx*2+txa}=A_{tx*2+txa};];"
    ),
    _invalid(
        "axis-repeated",
        "block-axis-bound-twice",
        _ONE,
        "B^2_bx[B^2_bxc[D_{bx*2+bxc}=A_{bx*2+bxc};];];",
    ),
    _invalid(
        "loop-conflict", "parallel-sum", "input A f32[4]; output D f32[]", "P^4_a[D=D+A_{a};];"
    ),
    _invalid("loop-conflict", "vector-sum", "input A f32[4]; output D f32[]", "V^4_a[D=D+A_{a};];"),
    _invalid(
        "loop-conflict cross-block",
        "sum-over-blocks",
        "input A f32[4]; output D f32[]",
        "B^4_bx[D=D+A_{bx};];",
    ),
    _invalid(
        "loop-conflict",
        "stencil-in-place",
        _ONE,
        "L^4_a[D_{a}=A_{a};];P^3_a[D_{a}=D_{a+1};];",
    ),
    _invalid(
        "loop-conflict", "same-value-twice", "input A f32[4]; output D f32[]", "P^4_a[D=A_{0};];"
    ),
    _invalid("loop-conflict", "shared-temporary", _ONE, "P^4_a[E=A_{a};D_{a}=E;];"),
    _invalid(
        "loop-conflict",
        "neighbour-in-the-same-thread-loop",
        _ONE,
        "B^4_tx[E_{tx}=A_{tx};D_{tx}=E_{3-tx}:tx>1;D_{tx}=0:tx<=1;];",
    ),
    _invalid(
        "loop-conflict",
        "temporary-shared-by-threads",
        _ONE,
        "B^4_tx[S=A_{tx};D_{tx}=S;];",
        "S f32 s",
    ),
    _invalid(
        "loop-conflict partial-value",
        "block-reduction-read-inside",
        _ONE,
        "B^4_tx[K=K+A_{tx};D_{tx}=K;];",
    ),
    _invalid(
        "loop-conflict",
        "block-reduction-read-inside-after-init",
        _ONE,
        "L^1_a[K=0;];B^4_tx[K=K+A_{tx};D_{tx}=K;];",
    ),
    _invalid(
        "loop-conflict",
        "impure-update-over-threads",
        "input A f32[4]; output D f32[]",
        "L^1_a[D=0;];B^4_tx[D=D*2+A_{tx};];",
    ),
    _invalid(
        "loop-conflict",
        "parallel-recurrence",
        _ONE,
        "P^4_c[D_{c}=if_then_else(c<1,0,D_{c-1})+A_{c};];",
    ),
    _invalid(
        "loop-conflict",
        "local-temporary-in-a-parallel-loop",
        "input A f32[4,4]; output D f32[4,4]",
        "B^4_tx P^4_c[X=A_{tx,c};D_{tx,c}=X;];",
        "X f32 l",
    ),
    _invalid(
        "loop-conflict", "parallel-over-halves", _ONE, "P^4_a[D_{a//2}=A_{a};D_{a//2+2}=A_{a};];"
    ),
    _invalid(
        "cross-block loop-conflict",
        "blocks-exchange-between-siblings",
        _ONE,
        "L^1_a[B^4_bx[E_{bx}=A_{bx};];B^4_bx[D_{bx}=E_{3-bx};];];",
    ),
    _invalid(
        "cross-block loop-conflict",
        "blocks-write-the-same-across-siblings",
        _ONE,
        "L^1_a[B^4_bx[D_{bx}=A_{bx};];B^4_bx[D_{3-bx}=A_{bx};];];",
    ),
    _invalid(
        "thread-communication",
        "threads-pass-on-through-a-serial-loop",
        "input A f32[4]; output D f32[3,4]",
        "B^1_bx L^3_c B^4_tx[D_{c,tx}=if_then_else(c==0,A_{tx},D_{c-1,3-tx}+1);];",
    ),
    _invalid(
        "loop-conflict undecided",
        "parallel-histogram",
        "input A f32[8]; input Y i64[8] in 0..3; output D f32[4]",
        "L^4_c[D_{c}=0;];P^8_a[D_{Y_{a}}=D_{Y_{a}}+A_{a};];",
    ),
    _invalid(
        "output-not-covered undecided",
        "histogram-without-zeros",
        "input A f32[2]; input Y i64[2] in 0..3; output D f32[4]",
        "L^2_a[D_{Y_{a}}=D_{Y_{a}}+A_{a};];",
    ),
    _invalid(
        "vector-width",
        "three-lanes",
        "input A f32[3]; output D f32[3]",
        "V^3_a[D_{a}=A_{a};];",
    ),
    _invalid("vector-not-innermost", "vector-outside", _TWO, "V^4_a L^4_c[D_{a}=D_{a}+A_{a,c};];"),
    _invalid(
        "parallel-in-vector vector-not-innermost",
        "threads-in-vector",
        "input A f32[4,4]; output D f32[4,4]",
        "V^4_a B^4_tx[D_{a,tx}=A_{a,tx};];",
    ),
    _invalid(
        "parallel-in-vector vector-not-innermost",
        "parallel-in-vector",
        "input A f32[4,4]; output D f32[4,4]",
        "V^4_a P^4_c[D_{a,c}=A_{a,c};];",
    ),
    _invalid(
        "parallel-nested",
        "parallel-in-parallel",
        "input A f32[4,4]; output D f32[4,4]",
        "P^4_a[L^4_c P^1_d[D_{a,c+d}=A_{a,c+d};];];",
    ),
    _invalid(
        "thread-structure",
        "equation-outside-the-threads",
        _ONE,
        "L^1_a[E=1;B^4_tx[D_{tx}=A_{tx}+E;];];",
    ),
    _invalid(
        "thread-structure",
        "siblings-under-different-threads",
        "input A f32[4,4]; output D f32[4,4]",
        "L^1_a[B^4_tx[E_{tx}=A_{tx,0};];B^4_tx B^4_ty[D_{tx,ty}=A_{tx,ty}+E_{tx};];];",
    ),
    _invalid(
        "scope-lifetime",
        "local-tensor-in-two-nests",
        _ONE,
        "B^4_tx[X=A_{tx};];B^4_tx[D_{tx}=X;];",
        "X f32 l",
    ),
    _invalid(
        "scope-lifetime",
        "shared-tensor-in-two-nests",
        _ONE,
        "B^4_tx[S_{tx}=A_{tx};];B^4_tx[D_{tx}=S_{tx};];",
        "S f32 s",
    ),
    _invalid(
        "scope-lifetime scope-blocks",
        "shared-tensor-under-other-block-axes",
        _ONE,
        "B^2_bx[B^2_by[S_{by}=A_{by*2+bx};];L^2_c[D_{c*2+bx}=S_{c};];];",
        "S f32 s",
    ),
    _invalid(
        "mixed-first-touch",
        "half-initialised",
        "input A f32[4,3]; output D f32[4]",
        "L^2_a[D_{a}=1;];L^4_a L^3_c[D_{a}=D_{a}+A_{a,c};];",
    ),
    _invalid(
        "mixed-first-touch",
        "initialised-under-a-guard",
        "input A f32[4,3]; output D f32[4]",
        "L^4_a[D_{a}=1:a%2==0;L^3_c[D_{a}=D_{a}+A_{a,c};];];",
    ),
    _invalid(
        "partial-value",
        "accumulator-not-reset-per-row",
        "input A f32[4,3]; output D f32[4]",
        "L^4_a[L^3_c[K=K+A_{a,c};];D_{a}=K;];",
    ),
    _invalid(
        "partial-value",
        "running-sum-without-start",
        _ONE,
        "L^4_a[K=K+A_{a};D_{a}=K;];",
    ),
    _invalid(
        "partial-value mixed-first-touch",
        "two-updates-of-one-element",
        "input A f32[4]; output D f32[]",
        "L^4_a[D=D+A_{a};D=max(D,A_{a});];",
    ),
    _invalid(
        "partial-value mixed-first-touch",
        "accumulator-overwritten-inside",
        "input A f32[4]; output D f32[]",
        "L^4_a[D=D+A_{a};D=0:a==2;];",
    ),
    _invalid("subscript-not-integer", "float-subscript", _ONE, "L^4_a[D_{a}=A_{A_{a}};];"),
    _invalid("subscript-not-integer", "real-division-in-subscript", _ONE, "L^4_a[D_{a}=A_{a/1};];"),
    _invalid("guard-not-bool", "guard-is-no-condition", _ONE, "L^4_a[D_{a}=A_{a}:a;];"),
    _invalid(
        "condition-not-bool",
        "branch-on-a-number",
        _ONE,
        "L^4_a[D_{a}=if_then_else(A_{a},1,0);];",
    ),
    _invalid("logical-not-bool", "conjunction-of-numbers", _ONE, "L^4_a[D_{a}=A_{a}:a<3&a;];"),
    _invalid("integer-power", "integer-power-of-an-index", _ONE, "L^4_a[D_{a}=2**a;];"),
)
