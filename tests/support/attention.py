"""Attention programs in many forms, and the steps that lead from each to one pass over a row."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take

#: The steps of the chain, each of which accepts what the one before leaves.
CHAIN: Final = (
    "normal_loop_max_to_prefix_max",
    "normal_loop_summation_on_exp_to_prefix_summation_on_exp",
    "online_softmax",
    "normal_matmul_to_prefix_matmul_based_on_online_softmax",
    "flashattention_wo_tiling",
    "flashattention_rolling_state",
)
#: Those that a softmax without a weighted sum can take.
SOFTMAX_STEPS: Final = CHAIN[:3]

_SCORES = """
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}L^{2}_{d=0}[
  S^{f32,g}_{tx,a,c}=S^{f32,g}_{tx,a,c}+Q^{f32,g}_{tx,a,d}*K^{f32,g}_{tx,c,d};];"""


def _softmax(s: str) -> str:
    loops = "B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}"
    return f"""
{loops}[M^{{f32,g}}_{{tx,a}}=max(M^{{f32,g}}_{{tx,a}},{s});];
{loops}[Z^{{f32,g}}_{{tx,a}}=Z^{{f32,g}}_{{tx,a}}+exp({s}-M^{{f32,g}}_{{tx,a}});];
{loops}[W^{{f32,g}}_{{tx,a,c}}=exp({s}-M^{{f32,g}}_{{tx,a}})/Z^{{f32,g}}_{{tx,a}};];"""


_STORED = """
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[M^{f32,g}_{tx,a}=max(M^{f32,g}_{tx,a},S^{f32,g}_{tx,a,c});];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[D^{f32,g}_{tx,a,c}=S^{f32,g}_{tx,a,c}-M^{f32,g}_{tx,a};];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[E^{f32,g}_{tx,a,c}=exp(D^{f32,g}_{tx,a,c});];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[Z^{f32,g}_{tx,a}=Z^{f32,g}_{tx,a}+E^{f32,g}_{tx,a,c};];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[W^{f32,g}_{tx,a,c}=E^{f32,g}_{tx,a,c}/Z^{f32,g}_{tx,a};];"""
_SUM = """
B^{2}_{tx=0}L^{3}_{a=0}L^{2}_{d=0}L^{5}_{c=0}[
  O^{f32,g}_{tx,a,d}=O^{f32,g}_{tx,a,d}+W^{f32,g}_{tx,a,c}*X^{f32,g}_{tx,c,d};];"""
_DEFERRED = """
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[M^{f32,g}_{tx,a}=max(M^{f32,g}_{tx,a},S^{f32,g}_{tx,a,c});];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[
  E^{f32,g}_{tx,a,c}=exp(S^{f32,g}_{tx,a,c}-M^{f32,g}_{tx,a});];
B^{2}_{tx=0}L^{3}_{a=0}L^{2}_{d=0}L^{5}_{c=0}[
  Y^{f32,g}_{tx,a,d}=Y^{f32,g}_{tx,a,d}+E^{f32,g}_{tx,a,c}*X^{f32,g}_{tx,c,d};];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[Z^{f32,g}_{tx,a}=Z^{f32,g}_{tx,a}+E^{f32,g}_{tx,a,c};];
B^{2}_{tx=0}L^{3}_{c=0}L^{2}_{a=0}[
  O^{f32,g}_{tx,c,a}=Y^{f32,g}_{tx,c,a}/Z^{f32,g}_{tx,c};];"""
_HIDDEN = """
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[
  F^{f32,g}_{tx,a,c}=if_then_else(J^{bool,g}_{a,c},S^{f32,g}_{tx,a,c},-inf);];
B^{3}_{tx=0}L^{5}_{c=0}[
  I^{i32,g}_{tx}=max(I^{i32,g}_{tx},if_then_else(J^{bool,g}_{tx,c},1,0));];"""
_UNLESS_HIDDEN = """
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[
  Y^{f32,g}_{tx,a,c}=if_then_else(I^{i32,g}_{a}==0,0,W^{f32,g}_{tx,a,c});];
B^{2}_{tx=0}L^{3}_{a=0}L^{2}_{d=0}L^{5}_{c=0}[
  O^{f32,g}_{tx,a,d}=O^{f32,g}_{tx,a,d}+Y^{f32,g}_{tx,a,c}*X^{f32,g}_{tx,c,d};];"""
_UNLESS_EMPTY = _UNLESS_HIDDEN.replace("I^{i32,g}_{a}==0", "M^{f32,g}_{tx,a}==-inf")
_SHIFT = """
B^{2}_{tx=0}L^{3}_{a=0}[
  I^{f32,g}_{tx,a}=if_then_else(abs(M^{f32,g}_{tx,a})==inf,0,M^{f32,g}_{tx,a});];"""
_LOGARITHM = """
B^{2}_{tx=0}L^{3}_{a=0}[H^{f32,g}_{tx,a}=log(Z^{f32,g}_{tx,a})+I^{f32,g}_{tx,a};];"""
_BY_LOGARITHM = "=exp(S^{f32,g}_{tx,a,c}-H^{f32,g}_{tx,a});];"


def _shifted(text: str, *, logarithm: bool) -> str:
    """A softmax relative to a finite maximum, as PyTorch's ``logsumexp`` is; or by its result."""
    largest, total, weights = text.strip().splitlines()
    parts = [largest + _SHIFT, total.replace("-M", "-I")]
    if not logarithm:
        return "\n".join((*parts, weights.replace("-M", "-I")))
    return "\n".join((*parts, _LOGARITHM, weights[: weights.index("=exp")] + _BY_LOGARITHM))


_PRODUCTS = """
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}L^{2}_{d=0}[
  Y^{f32,g}_{tx,a,c,d}=W^{f32,g}_{tx,a,c}*X^{f32,g}_{tx,c,d};];
B^{2}_{tx=0}L^{3}_{a=0}L^{2}_{d=0}L^{5}_{c=0}[
  O^{f32,g}_{tx,a,d}=O^{f32,g}_{tx,a,d}+Y^{f32,g}_{tx,a,c,d};];"""
_QKX = "# input Q f32[2,3,2]\n# input K f32[2,5,2]\n# input X f32[2,5,2]\n"
_O = "# output O f32[2,3,2]\n"
_COPIED = """
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[Y^{f32,g}_{tx,a,c}=W^{f32,g}_{tx,a,c};];
B^{2}_{tx=0}L^{5}_{a=0}L^{2}_{c=0}[R^{f32,g}_{tx,a,c}=X^{f32,g}_{tx,a,c}*2;];
B^{2}_{tx=0}L^{3}_{a=0}L^{2}_{d=0}L^{5}_{c=0}[
  O^{f32,g}_{tx,a,d}=O^{f32,g}_{tx,a,d}+Y^{f32,g}_{tx,a,c}*R^{f32,g}_{tx,c,d};];"""
_F = "F^{f32,g}_{tx,a,c}"
#: What stands between the scores and their maximum.
_BETWEEN = {
    "scale": "S^{f32,g}_{tx,a,c}*0.7",
    "bool mask": "if_then_else(J^{bool,g}_{a,c},-inf,S^{f32,g}_{tx,a,c}*0.7)",
    "float mask": "S^{f32,g}_{tx,a,c}*0.7+J^{f32,g}_{a,c}",
    "causal mask": "if_then_else(c<=a,S^{f32,g}_{tx,a,c},-inf)",
    "anti-causal mask": "if_then_else(a<=c,S^{f32,g}_{tx,a,c},-inf)",
}
_MASKS = {"bool mask": "# input J bool[3,5]\n", "float mask": "# input J f32[3,5]\n"}


def _masked(name: str, value: str) -> str:
    nest = f"\nB^{{2}}_{{tx=0}}L^{{3}}_{{a=0}}L^{{5}}_{{c=0}}[{_F}={value};];"
    return _QKX + _MASKS.get(name, "") + _O + _SCORES + nest + _softmax(_F) + _SUM


_GROUPED = """
# input Q f32[2,4,3,2]
# input K f32[2,2,5,2]
# input X f32[2,2,5,2]
# output O f32[2,3,4,2]
B^{2}_{bx=0}B^{4}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}L^{2}_{d=0}[S^{f32,g}_{bx,tx,a,c}=
  S^{f32,g}_{bx,tx,a,c}+Q^{f32,g}_{bx,tx,a,d}*K^{f32,g}_{bx,tx//2,c,d};];
B^{2}_{bx=0}B^{4}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[
  M^{f32,g}_{bx,tx,a}=max(M^{f32,g}_{bx,tx,a},S^{f32,g}_{bx,tx,a,c});];
B^{2}_{bx=0}L^{3}_{a=0}B^{4}_{tx=0}L^{5}_{d=0}[Z^{f32,g}_{bx,tx,a}=
  Z^{f32,g}_{bx,tx,a}+exp(S^{f32,g}_{bx,tx,a,d}-M^{f32,g}_{bx,tx,a});];
B^{2}_{tx=0}L^{4}_{a=0}L^{3}_{c=0}L^{5}_{d=0}[W^{f32,g}_{tx,c,a,d}=
  exp(S^{f32,g}_{tx,a,c,d}-M^{f32,g}_{tx,a,c})/Z^{f32,g}_{tx,a,c};];
B^{2}_{bx=0}B^{4}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}L^{2}_{d=0}[O^{f32,g}_{bx,a,tx,d}=
  O^{f32,g}_{bx,a,tx,d}+X^{f32,g}_{bx,tx//2,c,d}*W^{f32,g}_{bx,a,tx,c};];"""
_ROWS = """
# input S f32[9,6]
# input X f32[6,2]
# output O f32[9,2]
B^{9}_{tx=0}L^{6}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
B^{9}_{tx=0}L^{6}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
B^{9}_{tx=0}L^{6}_{a=0}[W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx};];
B^{9}_{tx=0}L^{2}_{c=0}L^{6}_{a=0}[
  O^{f32,g}_{tx,c}=O^{f32,g}_{tx,c}+W^{f32,g}_{tx,a}*X^{f32,g}_{a,c};];"""
_HEAD, _LARGEST, _TOTAL, _WEIGHTS, _WEIGHTED = (
    _ROWS[: _ROWS.index("B^")],
    *_ROWS[_ROWS.index("B^") :].split("\n", 3),
)
_FINITE = """
B^{9}_{tx=0}[I^{f32,g}_{tx}=if_then_else(abs(M^{f32,g}_{tx})==inf,0,M^{f32,g}_{tx});];
""" + _TOTAL.replace("-M", "-I")
_LOG = "B^{9}_{tx=0}[H^{f32,g}_{tx}=log(Z^{f32,g}_{tx})+I^{f32,g}_{tx};];"
_BY_LOG = "B^{9}_{tx=0}L^{6}_{a=0}[W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-H^{f32,g}_{tx});];"
#: The program ``rows`` with its softmax written in other ways.
ROWS: Final = {
    "relative to a finite maximum": "\n".join(
        (_HEAD + _LARGEST + _FINITE, _WEIGHTS.replace("-M", "-I"), _WEIGHTED)
    ),
    "by the logarithm of the sum": "\n".join(
        (_HEAD + _LARGEST + _FINITE, _LOG, _BY_LOG, _WEIGHTED)
    ),
}
#: Attention programs by what is particular about them.
PROGRAMS: Final = {
    "plain": _QKX + _O + _SCORES + _softmax("S^{f32,g}_{tx,a,c}") + _SUM,
    "weights are an output": _QKX
    + "# output W f32[2,3,5]\n"
    + _O
    + _SCORES
    + _softmax("S^{f32,g}_{tx,a,c}")
    + _SUM,
    "sums are an output": _QKX
    + "# output Z f32[2,3]\n"
    + _O
    + _SCORES
    + _softmax("S^{f32,g}_{tx,a,c}")
    + _SUM,
    "stored exponentials": _QKX + _O + _SCORES + _STORED + _SUM,
    "copied weights": _QKX + _O + _SCORES + _softmax("S^{f32,g}_{tx,a,c}") + _COPIED,
    "stored products": _QKX + _O + _SCORES + _softmax("S^{f32,g}_{tx,a,c}") + _PRODUCTS,
    "hidden rows": _QKX
    + "# input J bool[3,5]\n"
    + _O
    + _SCORES
    + _HIDDEN
    + _softmax(_F)
    + _UNLESS_HIDDEN,
    "rows without a score": _QKX
    + "# input J bool[3,5]\n"
    + _O
    + _SCORES
    + _HIDDEN[: _HIDDEN.index("B^{3}")]
    + _softmax(_F)
    + _UNLESS_EMPTY,
    "relative to a finite maximum": _QKX
    + _O
    + _SCORES
    + _shifted(_softmax("S^{f32,g}_{tx,a,c}"), logarithm=False)
    + _SUM,
    "by the logarithm of the sum": _QKX
    + _O
    + _SCORES
    + _shifted(_softmax("S^{f32,g}_{tx,a,c}"), logarithm=True)
    + _SUM,
    "grouped heads in 4-D": _GROUPED,
    "rows": _ROWS,
    **{name: _masked(name, value) for name, value in _BETWEEN.items()},
}
#: The same with one division at the end, which has no softmax to make an online one of.
DEFERRED: Final = _QKX + _O + _SCORES + _DEFERRED
#: Rows of scores for the program ``rows``: -inf first, but for the last, alone, at the end; equal
#: and zero ones; large and far apart ones.
HARD_ROWS: Final[NDArray[np.float32]] = np.array(
    [
        [-np.inf, -np.inf, 0.5, 2.0, -1.0, 0.25],
        [-np.inf, -np.inf, -np.inf, -np.inf, -np.inf, 3.0],
        [-np.inf] * 6,
        [1.0, -np.inf, 0.5, -np.inf, 2.0, -np.inf],
        [3.25] * 6,
        [0.0] * 6,
        [1e4, -1e4, 3e4, 3e4, -3e4, 0.0],
        [-1000.5, -1001.0, -1000.0, -999.0, -998.5, -1003.0],
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    ],
    np.float32,
)


def program_named(name: str) -> SignedProgram:
    """A program of ``PROGRAMS``."""
    return read(PROGRAMS[name]).signed


def taken(program: SignedProgram, name: str) -> Step:
    """The step by this strategy that leads on to one pass.

    Of several maxima that is one that a sum of exponentials goes with, of the two forms of
    ``online_softmax`` the one that keeps every step. Raises AssertionError where there is none.
    """
    chosen = strategy(name)
    survey = chosen.survey(program)
    sites = [s for s in survey.sites if s.named.get("form", "history") == "history"]
    assert sites, f"{name} finds nothing: {[(r.path, r.reason) for r in survey.refusals]}"
    for site in sites:
        step = take(chosen, program, site)
        assert isinstance(step, Step), f"{name} at {site.describe()}: {step}"
        if name != CHAIN[0] or strategy(CHAIN[1]).survey(step.after).sites:
            return step
    raise AssertionError(f"{name} finds no maximum of a softmax")


def walked(program: SignedProgram, names: tuple[str, ...] = CHAIN) -> list[Step]:
    """The steps of the chain, one after the other on the same program."""
    steps: list[Step] = []
    for name in names:
        steps.append(taken(steps[-1].after if steps else program, name))
    return steps
