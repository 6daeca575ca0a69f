"""Rewrites as people write them, and the mistakes they make in them, apart from the zoo's."""

import re

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.verdict import verify


def nest(loops: str, body: str) -> str:
    """``nest("tx:4 a:9", "D[tx]=D[tx]+A[tx,a];")``: axes are bound, tensors f32 in g."""
    text = re.sub(r"([A-Z])\[([^\]]*)\]", r"\1^{f32,g}_{\2}", body)
    for loop in reversed(loops.split()):
        index, extent = loop.split(":")
        kind = "B" if index in ("tx", "bx") else "L"
        text = f"{kind}^{{{extent}}}_{{{index}=0}}[{text}];"
    return text


ROWS = "# input A f32[4,10]\n# output D f32[4]\n"
SUM = nest("tx:4 a:10", "D[tx]=D[tx]+A[tx,a];")
VARIANCE = nest("tx:4 a:10", "M[tx]=M[tx]+A[tx,a]/10;") + nest(
    "tx:4 a:10", "D[tx]=D[tx]+(A[tx,a]-M[tx])*(A[tx,a]-M[tx])/10;"
)
LOGSUMEXP = (
    nest("tx:4 a:10", "M[tx]=max(M[tx],A[tx,a]);")
    + nest("tx:4 a:10", "S[tx]=S[tx]+exp(A[tx,a]-M[tx]);")
    + nest("tx:4", "D[tx]=log(S[tx])+M[tx];")
)
TREE = nest("tx:4 a:5", "E[tx,a]=A[tx,a]+A[tx,a+5];") + nest(
    "tx:4", "D[tx]=E[tx,0]+E[tx,1]+(E[tx,2]+E[tx,3])+E[tx,4];"
)
#: Sums of 1, 2, 4 and 8 elements that end at each; the last is one of 8 and one of 2.
SCAN = (
    nest("tx:4 a:10", "E[tx,a]=A[tx,a]+if_then_else(a<1,0,A[tx,a-1]);")
    + nest("tx:4 a:10", "F[tx,a]=E[tx,a]+if_then_else(a<2,0,E[tx,a-2]);")
    + nest("tx:4 a:10", "G[tx,a]=F[tx,a]+if_then_else(a<4,0,F[tx,a-4]);")
    + nest("tx:4", "D[tx]=G[tx,9]+E[tx,1];")
)
COMPENSATED = nest(
    "tx:4",
    "C[tx]=0;E[tx]=0;"
    + nest("a:10", "F[tx]=A[tx,a]-C[tx];G[tx]=E[tx]+F[tx];C[tx]=(G[tx]-E[tx])-F[tx];E[tx]=G[tx];")
    + "D[tx]=E[tx];",
)
#: Relative to the first element.
SHIFTED = nest("tx:4 a:10", "M[tx]=M[tx]+(A[tx,a]-A[tx,0])/10;") + nest(
    "tx:4 a:10", "D[tx]=D[tx]+(A[tx,a]-A[tx,0]-M[tx])*(A[tx,a]-A[tx,0]-M[tx])/10;"
)
HALVES = "".join(
    nest("tx:4 a:5", f"{m}[tx]=max({m}[tx],A[tx,a+{start}]);")
    + nest("tx:4 a:5", f"{s}[tx]={s}[tx]+exp(A[tx,a+{start}]-{m}[tx]);")
    for m, s, start in (("E", "F", 0), ("G", "H", 5))
)
JOINED = (
    "M[tx]=max(E[tx],G[tx]);S[tx]=if_then_else(E[tx]==-inf,0,F[tx]*exp(E[tx]-M[tx]))"
    "+if_then_else(G[tx]==-inf,0,H[tx]*exp(G[tx]-M[tx]));D[tx]=log(S[tx])+M[tx];"
)


@pytest.mark.parametrize(
    ("original", "candidate"),
    [
        (SUM, TREE),
        (SUM, SCAN),
        (SUM, COMPENSATED),
        (SUM, nest("tx:4 c:2 a:5", "D[tx]=D[tx]+A[tx,a*2+c];")),
        (VARIANCE, SHIFTED),
        (LOGSUMEXP, HALVES + nest("tx:4", JOINED.replace("log(S[tx])+M[tx]", "M[tx]+log(S[tx])"))),
    ],
)
def test_right_rewrites(original: str, candidate: str) -> None:
    verdict = verify(read(ROWS + original).signed, read(ROWS + candidate).signed)
    assert verdict.accepted, (verdict.reason, verdict.message)


@pytest.mark.parametrize(
    ("original", "candidate"),
    [
        (SUM, TREE.replace("_{tx,3}", "_{tx,2}")),
        (SUM, SCAN.replace("_{tx,a-4}", "_{tx,a-3}")),
        (SUM, SCAN.replace("E^{f32,g}_{tx,1};", "E^{f32,g}_{tx,2};")),
        (VARIANCE, SHIFTED.replace("_{tx,0}", "_{tx,1}", 1)),
        (VARIANCE, VARIANCE.replace("/10;", "/9;")),
        (LOGSUMEXP, HALVES + nest("tx:4", JOINED.replace("F[tx]*exp(E[tx]-M[tx])", "F[tx]"))),
        (LOGSUMEXP, HALVES + nest("tx:4", JOINED.replace("(E[tx]-M[tx])", "(M[tx]-E[tx])"))),
        (LOGSUMEXP, HALVES + nest("tx:4", JOINED.replace("G[tx]==-inf", "E[tx]==-inf"))),
        (LOGSUMEXP, HALVES + nest("tx:4", JOINED.replace("E[tx]==-inf", "E[tx]<G[tx]"))),
        (LOGSUMEXP, HALVES.replace("{tx,a+5}", "{tx,a+4}") + nest("tx:4", JOINED)),
        (LOGSUMEXP, LOGSUMEXP.replace("-M^{f32,g}_{tx})", ")").replace("+M^{f32,g}_{tx};", ";")),
    ],
)
def test_mistakes_in_rewrites(original: str, candidate: str) -> None:
    assert original != candidate
    assert not verify(read(ROWS + original).signed, read(ROWS + candidate).signed).accepted


MASKED = (
    "# input C f32[3,5]\n# input M f32[3,5]\n# output D f32[3,5]\n"
    + nest("tx:3 a:5", "S[tx,a]=C[tx,a]*0.5+M[tx,a];")
    + nest("tx:3 a:5", "E[tx]=max(E[tx],S[tx,a]);")
    + nest("tx:3 a:5", "F[tx]=F[tx]+exp(S[tx,a]-E[tx]);")
    + nest("tx:3 a:5", "D[tx,a]=exp(S[tx,a]-E[tx])/F[tx];")
)
MASK, WEIGHT = "M^{f32,g}_{tx,a}", "exp(S^{f32,g}_{tx,a}-E^{f32,g}_{tx});"


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        (MASK, f"if_then_else({MASK}==-inf,-inf,{MASK})", True),
        (MASK, f"if_then_else({MASK}==-inf,0,{MASK})", False),
        (MASK, f"max({MASK},-10000)", False),
        (WEIGHT, f"if_then_else({MASK}==-inf&E^{{f32,g}}_{{tx}}>-inf,0,{WEIGHT[:-1]});", True),
        (WEIGHT, f"if_then_else({MASK}==-inf,1,{WEIGHT[:-1]});", False),
        (f"*0.5+{MASK}", f"*0.5+{MASK}*0.5", False),
    ],
)
def test_masks_beside_scores(old: str, new: str, right: bool) -> None:
    assert MASKED.count(old) == 1
    verdict = verify(read(MASKED).signed, read(MASKED.replace(old, new)).signed)
    assert verdict.accepted == right, (verdict.reason, verdict.message)


#: What stands next to a place where the candidate's own number cancels, of a sum ``S``.
OF_SUMS = "# input A f32[8]\n# input C f32[8]\n# output D f32[8]\n" + nest("a:8", "S[0]=S[0]+A[a];")
WINDOW = "if_then_else(exp(S*0.5)==inf,if_then_else(exp(S*0.5-S/2048)<inf,0,A+S),A+S)"  # 177.5


def of_sums(value: str) -> str:
    """``value`` stored for every element; ``S`` is the sum of all."""
    text = re.sub(r"\b([AC])\b", r"\1[a]", re.sub(r"\bS\b", "S[0]", value))
    return nest("a:8", f"D[a]={text};")


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        # twice the root of the original: nothing but its own roundings there
        ("sqrt(S*S-3*S+2.25)+A", "abs(S-1.5)+A", True),
        ("1/(S*S+3*S+2.25)", "1/((S+1.5)*(S+1.5))", True),
        ("floor(S*0.25)+A", "floor((S-12)*0.25)+3+A", True),
        ("A+S", "A+S+exp(0-((S-12.815)*100000)**2)", False),
        ("A*C", "A*C+exp(0-((A-(C+12.815))*100000)**2)", False),
        # another small number in a maximum
        ("A/max((S-5)*(S-5),1e-12)", "A/max((S-5)*(S-5),1e-10)", False),
        # infinite by itself, and what happens then
        ("A+S", WINDOW, False),
    ],
)
@pytest.mark.parametrize("seed", [0, 5])
def test_where_own_numbers_cancel(old: str, new: str, right: bool, seed: int) -> None:
    original = read(OF_SUMS + of_sums(old)).signed
    text = OF_SUMS.partition("output D f32[8]\n")[2] + of_sums(new)
    verdict = verify(original, read(text, inherit=original.signature).signed, seed=seed)
    assert verdict.accepted == right, (verdict.reason, verdict.message)
