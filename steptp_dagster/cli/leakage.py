"""``leakage``: what of the training split is, or is nearly, what something is evaluated on."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steptp_dagster.cli.output import REJECTED, Failure, NamedPath, emit, json_option, say, table
from steptp_dagster.cli.warehouse import data_option, fetch, opened

if TYPE_CHECKING:
    import duckdb

    from steptp_dagster.dataset.leakage import Workload
    from steptp_dagster.leir.signature import SignedProgram

#: Structures of all programs that records of the training split show, with their workloads.
_SHOWN = """
select distinct program, structural_hash from (
    select r.program, unnest([s.parent_leir_id, s.result_leir_id]) as leir_id
    from (select program, unnest(step_ids) as step_id from filtered_dataset where split = 'train') r
    join transformed_steps s using (step_id)
) join leir_programs using (leir_id) order by all
"""
_SOURCES = """
select distinct s.program, s.family, l.signature, l.text
from source_programs s join translations t using (source_id) join leir_programs l using (leir_id)
where s.program in (select program from filtered_dataset where split = 'train') order by all
"""


@click.command()
@click.option(
    "--against",
    type=NamedPath(exists=True, file_okay=False),
    help="Folder with problems from outside: .py (as in --user-programs) and .leir files.",
)
@click.option(
    "--near",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    help="Share of nests that makes a near copy (default: the profile's).",
)
@data_option
@json_option
def leakage(against: Path | None, near: float | None, data: Path | None, as_json: bool) -> None:
    """Compare the training split with the other splits, or with problems from outside.

    A workload is there if a program of it has the structure of one that training records show, and
    nearly there if sources of both share enough of their nests, numbers and names aside.

    Exit code: 0 nothing leaks, 1 something does, 2 a problem cannot be read.
    """
    unread: list[str] = []
    with opened(data) as connection:
        if against is None:
            rows = fetch(connection, "select * from leakage order by program")
        else:
            limit = _near(connection) if near is None else near
            rows = _outside(connection, against, limit, unread)
    if against is None and near is not None:
        rows = [{**row, "near": row["likeness"] >= near} for row in rows]
    leaks = [row for row in rows if row["near"] or row["shared"]]
    shown = [{**row, "likeness": round(row["likeness"], 3)} for row in rows]
    emit(rows, lambda: table(shown) if shown else "nothing to compare", as_json=as_json)
    for problem in unread:
        say(f"steptp: {problem}")
    if leaks:
        what = "workloads outside training" if against is None else "problems"
        raise Failure(f"{len(leaks)} of {len(rows)} {what} are in the training split", REJECTED)
    if unread:
        raise Failure(f"{len(unread)} problems were not compared")
    say(f"none of {len(rows)} is in the training split")


def _near(connection: "duckdb.DuckDBPyConnection") -> float:
    from steptp_dagster.dataset.warehouse import profile_of

    return profile_of(connection).splits.near


def training(connection: "duckdb.DuckDBPyConnection") -> "tuple[Workload, ...]":
    """The workloads of the training split, by name."""
    from steptp_dagster.dataset.leakage import Workload
    from steptp_dagster.dataset.likeness import nest_forms
    from steptp_dagster.dataset.signed import signed_of

    structures: dict[str, set[str]] = {}
    for row in fetch(connection, _SHOWN):
        structures.setdefault(row["program"], set()).add(row["structural_hash"])
    sources: dict[str, list[dict[str, Any]]] = {}
    for row in fetch(connection, _SOURCES):
        sources.setdefault(row["program"], []).append(row)
    return tuple(
        Workload(
            name,
            own[0]["family"],
            frozenset(structures.get(name, ())),
            tuple(nest_forms(signed_of(row["signature"], row["text"])) for row in own),
        )
        for name, own in sources.items()
    )


def _outside(
    connection: "duckdb.DuckDBPyConnection", folder: Path, near: float, unread: list[str]
) -> list[dict[str, Any]]:
    """One row for each problem of a folder; what cannot be read goes to ``unread``."""
    from steptp_dagster.dataset.leakage import compared

    known = training(connection)
    rows = []
    for name, problem in problems(folder, unread):
        match = compared(problem, known, near)
        found = match.nearest
        rows.append(
            {
                "problem": name,
                "shared": len(match.same),
                "nearest": match.same[0] if match.same else found.name if found else None,
                "likeness": 1.0 if match.same else found.share if found else 0.0,
                "near": match.near,
            }
        )
    return rows


def problems(folder: Path, unread: list[str]) -> "Iterator[tuple[str, SignedProgram]]":
    """The programs of a folder by file name; a message for each file that gives none."""
    from steptp_dagster.leir.compact_parser import read_either
    from steptp_dagster.leir.texterror import TextError

    files = sorted(p for p in folder.iterdir() if p.suffix in (".py", ".leir"))
    if not files:
        raise Failure(f"{folder} has no .py and no .leir file")
    for path in files:
        try:
            if path.suffix == ".py":
                yield from _translated(path)
            else:
                text = path.read_text(encoding="utf-8")
                yield path.name, read_either(text, base=folder).signed
        except (TextError, OSError, UnicodeDecodeError) as error:
            unread.append(f"{path.name}: {' '.join(str(error).split())}")
        except Failure as error:
            unread.append(error.message)


def _translated(path: Path) -> "Iterator[tuple[str, SignedProgram]]":
    """The LEIR of all programs of a user's file, as ``steptp translate`` gives it.

    Raises Failure.
    """
    from steptp_dagster.cli.users import translated
    from steptp_dagster.dataset.user_bench import bench
    from steptp_dagster.leir.fileform import read as read_leir
    from steptp_dagster.users.files import file_of, read
    from steptp_dagster.users.isolation import Limits
    from steptp_dagster.users.refusal import UserRefusal

    file = file_of(path)
    content = read(file)
    if isinstance(content, UserRefusal):
        raise Failure(str(content))
    programs = bench(Limits()).programs(file, content.text)
    if isinstance(programs, UserRefusal):
        raise Failure(str(programs))
    for program in programs:
        told = translated(path, program.name, "", Limits(), naive=False)
        shown = f"{path.name}: {program.name}" if program.name else path.name
        yield shown, read_leir(told["leir"]).signed
