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

    from steptp_dagster.leir.signature import SignedProgram


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
    """Make a record or step again: translate its source, apply its steps, verify each.

    For a user's program --user-programs names the folder of its file. Exit code 1 where anything
    comes out other than it is stored.
    """
    chosen(users)
    with opened(data) as connection:
        found = find(connection, id_)
        source, steps = chain(connection, found)
    outcome = again(source, steps)
    rows = [
        {"what": c.what, "same": "yes" if c.same else "NO", "stored": c.stored, "now": c.now}
        for c in outcome
    ]
    emit(rows, lambda: table(rows), as_json=as_json)
    if not all(c.same for c in outcome):
        raise Failure("the replay differs from what is stored", REJECTED)


def chain(
    connection: "duckdb.DuckDBPyConnection", found: Found
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The source row, and the rows of all steps up to ``found``, the first step first."""
    if found.noun == "record":
        step: str | None = found.row["step_ids"][-1]
    elif found.noun == "step":
        step = found.id
    else:
        raise Failure(f"{found.id} is a {found.noun}: only records and steps are replayed")
    steps: list[dict[str, Any]] = []
    while step is not None:
        (row,) = fetch(
            connection,
            "select s.*, v.equality, v.target, v.seeds, p.text as result_text "
            "from transformed_steps s join gpu_verification v using (step_id) "
            "join leir_programs p on p.leir_id = s.result_leir_id "
            "where step_id = ? order by v.target <> 'llvm', v.target limit 1",
            [step],
        )
        steps.insert(0, row)
        step = row["parent_step_id"]
    (source,) = fetch(
        connection,
        "select s.*, t.leir_id from source_programs s join translations t using (source_id) "
        "where source_id = ?",
        [steps[0]["source_id"]],
    )
    return source, steps


def again(source: dict[str, Any], steps: list[dict[str, Any]]) -> list[Compared]:
    """Everything made again, compared with what is stored; stops where a step cannot be taken."""
    from steptp_dagster.dataset.ids import canonical_json
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
        verdict = verify(program, step.after, seed=_seed(row), target=row["target"])
        outcome += [
            Compared(name, row["result_leir_id"], leir_id(step.after)),
            Compared(f"reasoning {number}", "as stored", told),
            Compared(f"verdict {number}", row["equality"], verdict.equality),
        ]
        program = step.after
    return outcome


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
