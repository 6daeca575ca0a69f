"""``steptp sources``, ``strategies`` and ``translate``: what there is, and programs as LEIR."""

import difflib
import random
from pathlib import Path
from typing import Any

import click

from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, table
from steptp_dagster.cli.users import chosen, files_of, listed, translated, users_option
from steptp_dagster.leir.fileform import write
from steptp_dagster.users.isolation import Limits


@click.command()
@click.option("--profile", help="List the users' programs of this profile too.")
@users_option
@json_option
def sources(profile: str | None, users: Path | None, as_json: bool) -> None:
    """List the source programs of the workload library, and those of users.

    Users' files are executed, in processes of their own. Exit code: 0, or 1 where one of them
    gives no program (the others are listed all the same).
    """
    from steptp_dagster.sources.registry import SOURCES

    chosen(users)
    own, broken = listed(files_of(profile))
    rows: list[dict[str, Any]] = [
        {
            "program": source.program,
            "workload_level": source.workload_level,
            "origin": source.origin,
            "family": source.family,
            "dtypes": list(source.dtypes),
            "extents": list(source.pools),
            "code_hash": source.code_hash,
        }
        for source in SOURCES.values()
    ] + own
    columns = ("program", "workload_level", "family", "origin")
    emit(rows, lambda: table(rows, columns), as_json=as_json)
    if broken:
        raise Failure("\n".join(broken), REJECTED)


@click.command(name="strategies")
@json_option
def strategies(as_json: bool) -> None:
    """List the strategies: name, level, origin, and what each does.

    Exit code: 0, or 2 where a plug-in gives no strategy (the others are listed all the same).
    """
    from steptp_dagster.strategies.registry import faults
    from steptp_dagster.strategies.registry import strategies as registered

    rows: list[dict[str, Any]] = [
        {
            "name": strategy.name,
            "strategy_level": strategy.level,
            "origin": strategy.origin,
            "version": strategy.version,
            "summary": strategy.summary,
        }
        for strategy in registered().values()
    ]
    columns = ("name", "strategy_level", "origin", "summary")
    emit(rows, lambda: table(rows, columns), as_json=as_json)
    if broken := faults():
        raise Failure("\n".join(map(str, broken)))


@click.command()
@click.argument("program")
@click.option("--program", "name", help="Which program of a file that has several.")
@click.option("--dtype", help="Precision (default: f32; of a file: as it is given).")
@click.option("--seed", default=0, show_default=True, help="Chooses a library program's shape.")
@click.option("--naive", is_flag=True, help="A nest for every view and step of an operator.")
@click.option("--timeout", default=60.0, show_default=True, help="Most seconds that a file gets.")
@click.option("--memory", default=4096, show_default=True, help="Most MiB that a file gets.")
@json_option
def translate(
    program: str,
    name: str | None,
    dtype: str | None,
    seed: int,
    naive: bool,
    timeout: float,
    memory: int,
    as_json: bool,
) -> None:
    """Translate PROGRAM to LEIR: a Python file, or a name that `steptp sources` lists.

    A file defines `program()`, which returns (module, inputs), or a class `Model` with
    `get_inputs()` and, where it takes arguments, `get_init_inputs()`, or several programs
    (docs/your-programs.md). It is executed, in a process of its own.

    Exit code: 0 translated, 1 refused (operator, source line and reason are printed), 2 the file
    cannot be read or gives no program.
    """
    if program.endswith(".py") or "/" in program or Path(program).is_file():
        limits = Limits(timeout, memory)
        data = translated(Path(program), name, dtype or "", limits, naive=naive)
    else:
        data = _library(program, dtype or "f32", seed, naive=naive)
    emit(data, str(data["leir"]).rstrip("\n"), as_json=as_json)


def _library(program: str, dtype: str, seed: int, *, naive: bool) -> dict[str, Any]:
    """What ``steptp translate`` tells about a program of the library. Fails in words."""
    from steptp_dagster.translate.translate import TranslationRefusal
    from steptp_dagster.translate.translate import translate as to_leir

    module, inputs, ranges = _sample(program, dtype, seed)
    result = to_leir(module, inputs, source=program, ranges=ranges, naive=naive)
    if isinstance(result, TranslationRefusal):
        raise Failure(f"{program} is not translated: {result}", REJECTED)
    return {
        "program": program,
        "leir": write(result.signed),
        "names": dict(result.names),
        "origins": [
            {"operator": o.operator, "nests": [o.first, o.last], "location": o.location}
            for o in result.origins
        ],
    }


def _sample(name: str, dtype: str, seed: int) -> tuple[Any, Any, Any]:
    from steptp_dagster.sources.base import SourceError
    from steptp_dagster.sources.registry import SOURCES

    if name not in SOURCES:
        close = difflib.get_close_matches(name, SOURCES, n=3, cutoff=0.4)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise Failure(f"{name} is neither a file nor a program of the library{hint}")
    source = SOURCES[name]
    try:
        (shape,) = source.sample(random.Random(seed), 1)
        built = source.build(shape, dtype, seed)
    except SourceError as error:
        raise Failure(str(error)) from error
    return built.module, built.example(seed), built.ranges
