"""flashattention_wo_tiling: softmax and the weighted sum by it in one pass over the row."""

from dataclasses import replace
from math import prod

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Index,
    Loop,
    Nest,
    Statement,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.printer import loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    equations,
    expressions,
    fresh_indices,
    loops_around,
    replace_at,
    tensor_names,
)
from steptp_dagster.strategies.attention import Attention, NoAttention, find_attention
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.prefix_evidence import (
    extent_fact,
    guard_fact,
    kind_fact,
    new_tensor_facts,
    readers_fact,
    recurrence_facts,
    reduction_fact,
    start_facts,
    value_fact,
    writers_fact,
)
from steptp_dagster.strategies.rewrite import new_tensor_names
from steptp_dagster.strategies.softmax_rewrite import rebuilt
from steptp_dagster.strategies.streaming import MINUS_INF, ZERO, shrink, term

_STATE = 6


class FlashattentionWoTiling(Strategy):
    """Compute ``O=O+W*X``, where the weights ``W`` are a softmax, in one pass over each row.

    Maximum, sum of weights and weighted sum run together in thread-private memory; whenever the
    maximum grows, both sums are rescaled, and one division per element ends the row. The new nest
    stands where the weighted sum stood. Weights, maximum and sum go, with their running forms,
    unless something else reads them.

    The softmax may be a naive one or any form that ``normal_loop_max_to_prefix_max``,
    ``normal_loop_summation_on_exp_to_prefix_summation_on_exp`` and ``online_softmax`` leave,
    written out or followed through plain assignments. Terms whose score is -inf count as 0, so
    that rows may start with -inf.

        === example
        --- before
        # input S f32[2,4]
        # input X f32[4,3]
        # output O f32[2,3]
        B^{2}_{tx=0}L^{4}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{4}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
        B^{2}_{tx=0}L^{4}_{a=0}[
          W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx};];
        B^{2}_{tx=0}L^{3}_{c=0}L^{4}_{a=0}[
          O^{f32,g}_{tx,c}=O^{f32,g}_{tx,c}+W^{f32,g}_{tx,a}*X^{f32,g}_{a,c};];
        --- site statement 4.1
        --- after
        B^{2}_{tx=0}[
          A^{f32,l}=-inf;C^{f32,l}=0;L^{3}_{c=0}[D^{f32,l}_{c}=0;];
          L^{4}_{a=0}[
            E^{f32,l}=max(A^{f32,l},S^{f32,g}_{tx,a});
            F^{f32,l}=if_then_else(A^{f32,l}==-inf,0,exp(A^{f32,l}-E^{f32,l}));
            G^{f32,l}=if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-E^{f32,l}));
            C^{f32,l}=C^{f32,l}*F^{f32,l}+G^{f32,l};
            L^{3}_{c=0}[D^{f32,l}_{c}=D^{f32,l}_{c}*F^{f32,l}+G^{f32,l}*X^{f32,g}_{a,c};];
            A^{f32,l}=E^{f32,l};];
          L^{3}_{c=0}[O^{f32,g}_{tx,c}=D^{f32,l}_{c}/C^{f32,l};];];
        --- numerics reassociated
    """

    name = "flashattention_wo_tiling"
    level = "math"
    version = "1"
    summary = "Computes a softmax and the weighted sum by it in one pass, without storing weights."
    preconditions = (
        "not-alone",
        "start-not-identity",
        "reduction-loop-not-serial",
        "rows-differ",
        "scores-change",
        "state-not-private",
        "state-too-large",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every weighted sum of softmax weights, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for found in find_attention(program):
            if isinstance(found, NoAttention):
                refusals.append(Refusal(self.name, found.path, found.reason, found.message))
                continue
            site = Site.of(self.name, found.path)
            broken = fault(self.apply(program, site))
            if broken is None:
                sites.append(site)
            elif broken[0] == "result-over-limits":
                refusals.append(Refusal(self.name, found.path, "state-too-large", broken[1]))
            else:
                refusals.append(Refusal(self.name, found.path, *broken))
        return Survey(tuple(sites), tuple(refusals))

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Replace the weighted sum by the streaming nest, then drop what nothing reads."""
        found = _found(program, site)
        names = new_tensor_names(program, _STATE)
        new = replace_at(program.program, site.path[:1], _nest(found, names))
        return _pruned(SignedProgram(new, program.signature), found.chain)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show the weights' rows, that scores stay what they were, and the new state."""
        found = _found(before, site)
        names = new_tensor_names(before, _STATE)
        left = tensor_names(after.program)
        known = dict.fromkeys(
            access.name
            for one in equations(before.program)
            for expr in expressions(one.equation)
            for access in accesses_in(expr)
        )
        gone = tuple(name for name in known if name not in left)
        return Explanation(
            state=(
                value_fact(before, found.path),
                extent_fact(before, found.path, found.reduction.index),
            ),
            preconditions=_preconditions(before, after, found, names),
            decision=(
                *new_tensor_facts(after, names),
                pair("removed_tensors", value=gone),
            ),
            transition=transition(before, after),
            soundness_rule="rescaled-weighted-sum",
            soundness=(
                *recurrence_facts(after, names),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )


def _found(program: SignedProgram, site: Site) -> Attention:
    for found in find_attention(program):
        if isinstance(found, Attention) and found.path == site.path:
            return found
    raise ValueError(f"no such site in this program: {site.describe()}")


def _nest(found: Attention, names: tuple[str, ...]) -> Nest:
    """The streaming nest.

    ``names`` are for the running maximum, the sum of weights, the weighted sum, the next maximum,
    the factor of the old sums, and the weight, in the order in which they occur.
    """
    wide = tuple(Index(loop.index) for loop in found.columns if loop.extent > 1)
    running, new = (_state(names[k], found.maximum) for k in (0, 3))
    total, factor, weight = (_state(names[k], found.total) for k in (1, 4, 5))
    weighted = replace(_state(names[2], found.target), subscripts=wide)
    parts: tuple[Expr, Expr] = (weight, found.operand)
    product = Binary("*", *(parts[::-1] if found.operand_first else parts))
    scaled = Binary("*", weighted, factor)
    step: tuple[Statement, ...] = (
        Equation(new, Call("max", (running, found.score))),
        Equation(factor, shrink(running, new)),
        Equation(weight, term(found.score, new)),
        Equation(total, Binary("+", Binary("*", total, factor), weight)),
        _under(found.columns, Equation(weighted, Binary("+", scaled, product))),
        Equation(running, new),
    )
    rows = found.rows or (Loop("L", _fresh(found), 1),)
    return Nest(
        rows,
        (
            Equation(running, MINUS_INF),
            Equation(total, ZERO),
            _under(found.columns, Equation(weighted, ZERO)),
            Nest((found.reduction,), step),
            _under(found.columns, Equation(found.target, Binary("/", weighted, total))),
        ),
    )


def _state(name: str, like: Access) -> Access:
    return Access(name, DTYPES[like.dtype].evaluation.name, "l")


def _under(loops: tuple[Loop, ...], equation: Equation) -> Statement:
    return Nest(loops, (equation,)) if loops else equation


def _fresh(found: Attention) -> str:
    used = {loop.index for loop in (*found.columns, found.reduction)}
    return next(fresh_indices(used))


def _pruned(program: SignedProgram, names: tuple[str, ...]) -> SignedProgram:
    """The program without those of the tensors that nothing reads any more."""
    left = [name for name in names if name not in program.signature.by_name]
    while True:
        uses = Analysis.of(program).accesses.by_tensor
        dead: dict[Path, tuple[Statement, ...]] = {}
        for name in left:
            own = {use.statement.path for use in uses.get(name, []) if use.write}
            if own and all(use.statement.path in own for use in uses[name]):
                dead.update(dict.fromkeys(own, ()))
        if not dead:
            return program
        program = SignedProgram(
            rebuilt(program.program, dead, {}, lambda node: node), program.signature
        )


def _preconditions(
    program: SignedProgram, after: SignedProgram, found: Attention, names: tuple[str, ...]
) -> tuple[Evidence, ...]:
    path = found.path
    scores = tuple(dict.fromkeys(access.name for access in accesses_in(found.score)))
    room = (
        prod(loop.extent for loop in found.columns) * DTYPES[_state("A", found.target).dtype].bytes
    )
    header = loops_text(loops_around(program.program, path))
    return (
        evidence(
            "not-alone",
            before_fact("statements", path[:1], value=1),
            guard_fact(program, path),
        ),
        evidence("start-not-identity", *start_facts(program, (path,), ())),
        evidence("reduction-loop-not-serial", kind_fact(program, path, found.reduction.index)),
        evidence(
            "rows-differ",
            reduction_fact(program, path),
            extent_fact(program, path, found.reduction.index),
            value_fact(program, found.maker),
            *(writers_fact(program, name) for name in found.chain),
        ),
        evidence(
            "scores-change",
            *(writers_fact(program, name) for name in scores or (found.maximum.name,)),
            readers_fact(program, found.maximum.name),
        ),
        evidence("state-not-private", before_fact("header_text", path, value=header)),
        evidence("state-too-large", after_fact("bytes_of", names[2], value=room)),
    )
