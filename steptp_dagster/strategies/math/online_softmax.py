"""online_softmax: maximum and sum of exponentials of a row in one pass instead of two."""

from math import prod

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Expr, Index
from steptp_dagster.leir.printer import expr_text, loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, equations, loops_around, substitute
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, quoted, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.rewrite import equation_at, new_tensor_names
from steptp_dagster.strategies.softmax_rewrite import history, not_private, rolling
from steptp_dagster.strategies.softmax_rows import Rows, find

FORMS = ("history", "rolling")


class OnlineSoftmax(Strategy):
    """Stream the maximum and the sum of exponentials of each row in one pass.

    A row's maximum ``M``, its sum ``Z`` of ``exp(S-M)`` and their use in a softmax, log-softmax
    or logsumexp are matched by the roles of the indices, so names and order of loops do not
    matter, nor what stands between the three, as long as it leaves the scores ``S`` alone.

    * ``form=history`` keeps the running values of every step in arrays ``N`` and ``R``. All
      reads of ``M`` and ``Z`` become reads of the last step; an output among them is copied out.
    * ``form=rolling`` keeps them in thread-private state, which each step overwrites; ``M`` and
      ``Z`` are written once, after the pass.

    A guard that picks whole rows, the same in maximum and sum, guards the pass as well.

    Both skip terms whose score is -inf, so that rows may start with -inf. ``N`` and ``R`` have
    the evaluation type of ``M`` and ``Z``: f32 where those are f16.

        === example
        --- before
        # input S f32[2,4]
        # output W f32[2,4]
        B^{2}_{tx=0}L^{4}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{4}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
        B^{2}_{tx=0}L^{4}_{a=0}[
          W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx};];
        --- site statement 1.1: form=history, sum=2.1
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[
          A^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,A^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});
          C^{f32,g}_{tx,a}=if_then_else(a-1<0,0,if_then_else(A^{f32,g}_{tx,a-1}==-inf,0,
            C^{f32,g}_{tx,a-1}*exp(A^{f32,g}_{tx,a-1}-A^{f32,g}_{tx,a})))
            +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-A^{f32,g}_{tx,a}));];
        B^{2}_{tx=0}L^{4}_{a=0}[
          W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-A^{f32,g}_{tx,3})/C^{f32,g}_{tx,3};];
        --- numerics reassociated
    """

    name = "online_softmax"
    level = "math"
    version = "1"
    summary = "Computes maximum and sum of exponentials of softmax rows in one streaming pass."
    preconditions = (
        "guarded-update",
        "not-floating",
        "several-reduction-loops",
        "rows-overlap",
        "reduction-loop-not-serial",
        "scores-differ",
        "loops-differ",
        "start-not-identity",
        "written-elsewhere",
        "sum-private-elsewhere",
        "scores-change",
        "read-too-early",
        "no-normalisation",
        "state-not-private",
    )

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """All preconditions; only the rolling form has private state."""
        names = super().preconditions_at(site)
        return names if site.text("form") == "rolling" else names[:-1]

    def survey(self, program: SignedProgram) -> Survey:
        """Every pair of passes that can become one, in each form."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for found in find(program):
            if isinstance(found, Miss):
                refusals.append(Refusal(self.name, found.path, found.reason, found.message))
                continue
            for form in FORMS:
                site = Site.of(self.name, found.max_path, form=form, sum=number(found.sum_path))
                objection = self._objection(program, found, site)
                if objection is None:
                    sites.append(site)
                else:
                    refusals.append(Refusal(self.name, found.max_path, *objection))
        return Survey(tuple(sites), tuple(refusals))

    def _objection(self, program: SignedProgram, rows: Rows, site: Site) -> tuple[str, str] | None:
        if site.text("form") == "rolling":
            message = not_private(program.program, rows)
            if message is not None:
                return "state-not-private", message
        return fault(self.apply(program, site))

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Put the streaming pass in the place of the maximum and drop the sum's pass."""
        rows = _rows_of(program, site)
        build = rolling if site.text("form") == "rolling" else history
        return SignedProgram(build(program, rows), program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show the roles of the three parts, that nothing interferes, and the recurrence."""
        rows = _rows_of(before, site)
        return Explanation(
            state=_state(before, rows),
            preconditions=_preconditions(before, rows, site),
            decision=_decision(before, after, rows, site),
            transition=transition(before, after),
            soundness_rule="rescaled-running-sum",
            soundness=_recurrence(before, after, site),
            effect=effects(before, after),
        )


def number(path: Path) -> str:
    """The number of a statement as sites name it: positions from 1, joined by dots."""
    return ".".join(str(i + 1) for i in path)


def _rows_of(program: SignedProgram, site: Site) -> Rows:
    for found in find(program):
        place = (site.path, site.text("sum"))
        if isinstance(found, Rows) and (found.max_path, number(found.sum_path)) == place:
            return found
    raise ValueError(f"no such site in this program: {site.describe()}")


def _state(program: SignedProgram, rows: Rows) -> tuple[Fact, ...]:
    updates = Analysis.of(program).updates
    extent = rows.reduction.loop.extent
    return (
        before_fact("update_op", rows.max_path, value=updates[rows.max_path].op or ""),
        before_fact("update_op", rows.sum_path, value=updates[rows.sum_path].op or ""),
        before_fact("loop_extent", rows.max_path, rows.reduction.name, value=extent),
    )


def _preconditions(program: SignedProgram, rows: Rows, site: Site) -> tuple[Evidence, ...]:
    first, second = rows.max_path, rows.sum_path
    m, z, loop = rows.maximum.name, rows.total.name, rows.reduction.loop
    updates = Analysis.of(program).updates
    other = next(old for old, new in rows.renaming if new == loop.index)
    other_loop = next(
        found for found in loops_around(program.program, second) if found.index == other
    )
    scores = tuple(dict.fromkeys(a.name for a in accesses_in(rows.score)))
    shown = [
        evidence(
            "guarded-update",
            *(before_fact("guard_text", p, value=_guard(program, p)) for p in (first, second)),
        ),
        evidence(
            "not-floating",
            before_fact("dtype_of", m, value=rows.maximum.dtype),
            before_fact("dtype_of", z, value=rows.total.dtype),
        ),
        evidence(
            "several-reduction-loops",
            *(
                before_fact("reduction_loops", p, value=updates[p].reduction_loops)
                for p in (first, second)
            ),
            *_single(program, first, loop.index),
            *_single(program, second, other),
        ),
        evidence(
            "rows-overlap",
            before_fact("write_texts", first, m, value=(_target(program, first),)),
            before_fact("write_texts", second, z, value=(_target(program, second),)),
        ),
        evidence(
            "reduction-loop-not-serial",
            before_fact("loop_kind", first, loop.index, value=loop.kind),
            before_fact("loop_kind", second, other, value=other_loop.kind),
        ),
        evidence(
            "scores-differ",
            before_fact("value_text", first, value=_value(program, first, ())),
            before_fact(
                "renamed_value", second, rows.renaming, value=_value(program, second, rows.renaming)
            ),
        ),
        evidence(
            "loops-differ",
            before_fact("trip_count", first, value=_trips(program, first)),
            before_fact("trip_count", second, value=_trips(program, second)),
        ),
        evidence("start-not-identity", *_starts(program, rows)),
        evidence("written-elsewhere", *(_writers(program, name) for name in (m, z))),
        evidence(
            "sum-private-elsewhere",
            before_fact("scope_of", z, value=rows.total.scope),
            *(() if rows.total.scope == "g" else (_writers(program, z), _writers(program, m))),
        ),
        evidence(
            "scores-change",
            *(_writers(program, name) for name in scores),
            *(() if scores else (before_fact("reads", first, value=(m,)),)),
        ),
        evidence("read-too-early", *(_readers(program, name) for name in (m, z))),
        evidence(
            "no-normalisation",
            *(
                before_fact("value_text", path, value=_value(program, path, ()))
                for path in rows.uses[:1]
            ),
        ),
    ]
    if site.text("form") == "rolling":
        header = loops_text(loops_around(program.program, first))
        shown.append(evidence("state-not-private", before_fact("header_text", first, value=header)))
    return tuple(shown)


def _single(program: SignedProgram, path: Path, row: str) -> tuple[Fact, ...]:
    """The extents of reduction loops other than the one over a row, where there are any."""
    extents = {loop.index: loop.extent for loop in loops_around(program.program, path)}
    loops = Analysis.of(program).updates[path].reduction_loops
    return tuple(
        before_fact("loop_extent", path, name, value=extents[name]) for name in loops if name != row
    )


def _starts(program: SignedProgram, rows: Rows) -> tuple[Fact, ...]:
    updates = Analysis.of(program).updates
    return (
        *(
            before_fact("update_init", p, value=updates[p].init or "")
            for p in (rows.max_path, rows.sum_path)
        ),
        *(quoted("before", program, p) for p in rows.inits),
    )


def _decision(
    before: SignedProgram, after: SignedProgram, rows: Rows, site: Site
) -> tuple[Fact, ...]:
    """The new tensors with the types and scopes that the rewriting gave them."""
    names = new_tensor_names(before, 3 if site.text("form") == "rolling" else 2)
    accesses = {
        access.name: access
        for located in equations(after.program)
        for access in (located.equation.target,)
    }
    return (
        before_fact(
            "loop_extent", rows.max_path, rows.reduction.name, value=rows.reduction.loop.extent
        ),
        pair("new_tensors", value=names),
        *(after_fact("dtype_of", name, value=accesses[name].dtype) for name in names),
        *(after_fact("scope_of", name, value=accesses[name].scope) for name in names),
    )


def _recurrence(before: SignedProgram, after: SignedProgram, site: Site) -> tuple[Fact, ...]:
    """The equations of the running maximum and sum in the result."""
    names = new_tensor_names(before, 3 if site.text("form") == "rolling" else 2)
    recurrences = (
        after_fact("update_kind", located.path, value="recurrence")
        for located in equations(after.program)
        if located.equation.target.name in names
        and located.equation.target.name in {a.name for a in accesses_in(located.equation.value)}
    )
    return (*recurrences, pair("same_signature", value=before.signature == after.signature))


def _value(program: SignedProgram, path: Path, renaming: tuple[tuple[str, str], ...]) -> str:
    by: dict[str, Expr] = {old: Index(new) for old, new in renaming}
    return expr_text(substitute(equation_at(program.program, path).value, by))


def _guard(program: SignedProgram, path: Path) -> str:
    guard = equation_at(program.program, path).guard
    return "" if guard is None else expr_text(guard)


def _target(program: SignedProgram, path: Path) -> str:
    return expr_text(equation_at(program.program, path).target)


def _trips(program: SignedProgram, path: Path) -> int:
    return prod(loop.extent for loop in loops_around(program.program, path))


def _writers(program: SignedProgram, name: str) -> Fact:
    return before_fact("writers_of", name, value=_paths(program, name, write=True))


def _readers(program: SignedProgram, name: str) -> Fact:
    return before_fact("readers_of", name, value=_paths(program, name, write=False))


def _paths(program: SignedProgram, name: str, *, write: bool) -> tuple[Path, ...]:
    uses = Analysis.of(program).accesses.by_tensor.get(name, [])
    return tuple(dict.fromkeys(use.statement.path for use in uses if use.write == write))
