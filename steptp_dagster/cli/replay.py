"""``replay ID``: a record or step made again from its source, and compared."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steptp_dagster.cli.ids import Found, find
from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, table
from steptp_dagster.cli.users import chosen, replayed, users_option
from steptp_dagster.cli.warehouse import data_option, fetch, opened
from steptp_dagster.users.files import PREFIX

if TYPE_CHECKING:
    import duckdb

    from steptp_dagster.dataset.small_chains import SmallChains
    from steptp_dagster.leir.signature import SignedProgram
    from steptp_dagster.verify.record import Verdict


@dataclass(frozen=True, slots=True)
class Compared:
    """One thing made again: what it is, what is stored, what came out now."""

    what: str
    stored: str
    now: str

    @property
    def same(self) -> bool:
        """Whether it came out as stored."""
        return self.stored == self.now


@click.command()
@click.argument("id_", metavar="ID")
@data_option
@users_option
@json_option
def replay(id_: str, data: Path | None, users: Path | None, as_json: bool) -> None:
    """Make a record, step, trajectory or negative again: translate, apply the steps, verify each.

    Of a trajectory the verdict on both ends is made again too, of a wrong candidate its rejection.
    For a user's program --user-programs names the folder of its file. Exit code 1 where anything
    comes out other than it is stored.
    """
    chosen(users)
    with opened(data) as connection:
        found = find(connection, id_)
        chains = [chain(connection, step) for step in last_steps(found)]
        pairs = whole_pairs(connection, found)
    outcome = again(*chains[0])
    for source, steps in chains[1:]:
        # The source was compared with the first.
        outcome += again(source, steps)[2:]
    outcome += judged_again(pairs)
    rows = [
        {"what": c.what, "same": "yes" if c.same else "NO", "stored": c.stored, "now": c.now}
        for c in outcome
    ]
    emit(rows, lambda: table(rows), as_json=as_json)
    if not all(c.same for c in outcome):
        raise Failure("the replay differs from what is stored", REJECTED)


def last_steps(found: Found) -> list[str]:
    """The steps that lead to what is replayed; those before them follow from the tables."""
    if found.noun == "step":
        return [found.id]
    if found.noun == "record":
        steps: list[str] = found.row["step_ids"]
        return steps if found.row["task"] == "multi" else steps[-1:]
    if found.noun == "trajectory":
        return [found.row["step_ids"][-1]]
    if found.noun == "negative":
        return [found.row["step_id"]]
    raise Failure(
        f"{found.id} is a {found.noun}: what is made of steps is replayed, no other thing"
    )


def whole_pairs(connection: "duckdb.DuckDBPyConnection", found: Found) -> list[dict[str, Any]]:
    """The pair that a trajectory or wrong candidate, or that of a record, was judged as.

    A pair that siblings stand for is not judged again: its steps are.
    """
    ids = {name: found.row.get(name) for name in ("trajectory_id", "negative_id")}
    trajectories = fetch(
        connection,
        "select 'trajectory' as what, t.equality, t.target, t.seeds, b.signature, "
        "b.text as before, a.text as after from trajectories t "
        "join leir_programs b on b.leir_id = t.first_leir_id "
        "join leir_programs a on a.leir_id = t.last_leir_id "
        "where t.trajectory_id = ? and t.evidence <> 'sibling'",
        [ids["trajectory_id"]],
    )
    negatives = fetch(
        connection,
        "select 'wrong candidate' as what, n.reason as equality, n.target, n.seeds, b.signature, "
        "b.text as before, n.candidate as after "
        "from negatives n join leir_programs b on b.leir_id = n.parent_leir_id "
        "where n.negative_id = ?",
        [ids["negative_id"]],
    )
    return [*trajectories, *negatives]


def judged_again(pairs: list[dict[str, Any]]) -> list[Compared]:
    """The verdict on each pair: its label, of a rejection the reason."""
    from steptp_dagster.dataset.signed import signed_of
    from steptp_dagster.verify.verdict import verify

    outcome = []
    for row in pairs:
        before, after = (signed_of(row["signature"], row[name]) for name in ("before", "after"))
        verdict = verify(before, after, seed=_seed(row), target=row["target"])
        outcome.append(Compared(row["what"], row["equality"], verdict.reason or verdict.equality))
    return outcome


def chain(
    connection: "duckdb.DuckDBPyConnection", step: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The source row, and the rows of all steps up to one, the first step first."""
    steps: list[dict[str, Any]] = []
    while step is not None:
        (row,) = fetch(
            connection,
            "select s.*, v.equality, v.evidence, v.target, v.seeds, v.bitwise, v.reason, v.static, "
            "v.numeric, v.margins, p.text as result_text "
            "from transformed_steps s join gpu_verification v using (step_id) "
            "join leir_programs p on p.leir_id = s.result_leir_id "
            "where step_id = ? order by v.target <> 'llvm', v.target limit 1",
            [step],
        )
        steps.insert(0, row)
        step = row["parent_step_id"]
    (source,) = fetch(
        connection,
        "select s.*, t.leir_id, t.siblings from source_programs s "
        "join translations t using (source_id) where source_id = ?",
        [steps[0]["source_id"]],
    )
    for sibling in source["siblings"]:
        query = "select signature, text from leir_programs where leir_id = ?"
        sibling.update(fetch(connection, query, [sibling["leir_id"]])[0])
    return source, steps


def again(source: dict[str, Any], steps: list[dict[str, Any]]) -> list[Compared]:
    """Everything made again, compared with what is stored; stops where a step cannot be taken."""
    from steptp_dagster.dataset.ids import canonical_json
    from steptp_dagster.dataset.stages.judging import judged
    from steptp_dagster.dataset.stages.steps import parameters
    from steptp_dagster.leir.canonical import leir_id
    from steptp_dagster.reasoning.render import render_text
    from steptp_dagster.reasoning.style import STYLES
    from steptp_dagster.strategies.alternatives import compared, surveyed
    from steptp_dagster.strategies.base import Refusal
    from steptp_dagster.strategies.registry import strategies
    from steptp_dagster.strategies.step import take
    from steptp_dagster.verify.verdict import verify

    program, code_hash = translated(source)
    smaller = _siblings(source, steps)
    outcome = [
        Compared("code", source["code_hash"], code_hash),
        Compared("translation", source["leir_id"], leir_id(program)),
    ]
    for number, row in enumerate(steps, 1):
        name = f"step {number} ({row['strategy']})"
        chosen = strategies().get(row["strategy"])
        sites = surveyed(chosen, program).sites if chosen else ()
        wanted = (row["site"], row["parameters"])
        site = next(
            (
                s
                for s in sites
                if (canonical_json(list(s.path)), canonical_json(parameters(s))) == wanted
            ),
            None,
        )
        if chosen is None or site is None:
            outcome.append(Compared(name, row["result_leir_id"], "no such site any more"))
            return outcome
        step = take(chosen, program, site)
        if isinstance(step, Refusal):
            outcome.append(Compared(name, row["result_leir_id"], f"refused: {step.reason}"))
            return outcome
        explained = compared(chosen, step).explanation
        texts = [render_text(chosen, site, explained, style) for style in STYLES.values()]
        told = "as stored" if row["reasoning_text"] in texts else "differs"
        if row["evidence"] == "sibling":
            verdict = _on_siblings(smaller, row, program, step.after)
        else:
            verdict = verify(program, step.after, seed=_seed(row), target=row["target"])
        outcome += [
            Compared(name, row["result_leir_id"], leir_id(step.after)),
            Compared(f"reasoning {number}", "as stored", told),
            Compared(f"verdict {number}", row["equality"], verdict.equality),
            Compared(f"evidence {number}", evidence(row), evidence(judged(verdict))),
        ]
        program = step.after
    return outcome


def evidence(row: dict[str, Any]) -> str:
    """A digest of all that a verdict rests on, to the last bit of every figure."""
    from steptp_dagster.dataset.ids import digest

    names = ("bitwise", "reason", "static", "numeric", "margins")
    return digest("evidence", *(str(row[name]) for name in names))


def _siblings(source: dict[str, Any], steps: list[dict[str, Any]]) -> "SmallChains":
    """The stored siblings of a source, and the steps to repeat on them."""
    from steptp_dagster.dataset.signed import signed_of
    from steptp_dagster.dataset.small_chains import SmallChains

    stored = source["siblings"]
    return SmallChains(
        {source["source_id"]: {s["leir_id"]: s["shapes"] for s in stored}},
        {step["step_id"]: step for step in steps},
        {(step["parent_leir_id"], step["result_leir_id"]): [step["step_id"]] for step in steps},
        {s["leir_id"]: signed_of(s["signature"], s["text"]) for s in stored},
    )


def _on_siblings(
    smaller: "SmallChains", row: dict[str, Any], before: "SignedProgram", after: "SignedProgram"
) -> "Verdict":
    """The verdict on a step that is too large to run, from its siblings, made again."""
    from steptp_dagster.dataset.siblings import on_siblings
    from steptp_dagster.verify.reasons import TOO_LARGE
    from steptp_dagster.verify.record import rejection
    from steptp_dagster.verify.verdict import verify

    pair = row["parent_leir_id"], row["result_leir_id"]
    smaller.programs = {**smaller.programs, **dict(zip(pair, (before, after), strict=True))}
    found = smaller.pairs(*pair)
    if isinstance(found, str):
        return rejection(TOO_LARGE, found)
    seed, target = _seed(row), row["target"]
    small = [verify(p.before, p.after, seed=seed, target=target) for p in found]
    return on_siblings(small, [(p.name, p.told) for p in found])


def _seed(row: dict[str, Any]) -> int:
    import json

    return int(json.loads(row["seeds"])[0])


def translated(source: dict[str, Any]) -> "tuple[SignedProgram, str]":
    """The LEIR of a source row made anew, and the digest of its code today."""
    from steptp_dagster.dataset.stages.sources import source_of
    from steptp_dagster.dataset.translations import subject
    from steptp_dagster.translate.translate import TranslationRefusal

    if source["program"].startswith(PREFIX):
        return replayed(source)
    found = subject(source).translated(source["form"])
    if isinstance(found, TranslationRefusal):
        raise Failure(f"the source is refused now: {found}", REJECTED)
    return found.signed, source_of(source["program"]).code_hash
