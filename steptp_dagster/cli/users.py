"""Users' files on the command line: their programs listed, one of them translated."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steptp_dagster import paths
from steptp_dagster.cli.output import REJECTED, Failure, NamedPath, say
from steptp_dagster.leir.fileform import write
from steptp_dagster.users.files import UserFile, file_of, files_in, read
from steptp_dagster.users.isolation import Limits
from steptp_dagster.users.programs import Untranslated, UserTranslation, Workbench
from steptp_dagster.users.refusal import UserRefusal

if TYPE_CHECKING:
    from steptp_dagster.leir.signature import SignedProgram


def users_option(command: Any) -> Any:  # noqa: ANN401 - a decorator
    """Add ``--user-programs FOLDER`` (parameter ``users``: a path, or None) to a command."""
    return click.option(
        "--user-programs",
        "users",
        type=NamedPath(file_okay=False),
        help="Folder with users' .py files (default: the profile's).",
    )(command)


def chosen(users: Path | None) -> None:
    """Let ``config.load`` take this folder in place of the profile's."""
    if users is not None:
        os.environ[paths.USERS_VARIABLE] = str(users.resolve())


def files_of(profile: str | None) -> tuple[UserFile, ...]:
    """The files of a profile, or of the folder that the environment names. Fails in words."""
    from steptp_dagster.dataset.config import ProfileError, load

    folder = os.environ.get(paths.USERS_VARIABLE)
    try:
        if profile is not None:
            plan = load(profile).user_programs
            return plan.found if plan is not None else ()
        return files_in(Path(folder)) if folder else ()
    except ProfileError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{folder}: {error.strerror}") from error


def listed(files: tuple[UserFile, ...]) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of ``steptp sources`` for the programs of users, and one line per broken file."""
    from steptp_dagster.dataset.user_bench import bench

    isolated = bench(Limits())
    rows: list[dict[str, Any]] = []
    broken: list[str] = []
    for file in files:
        content = read(file)
        if isinstance(content, UserRefusal):
            broken.append(str(content))
            continue
        programs = isolated.programs(file, content.text)
        if isinstance(programs, UserRefusal):
            broken.append(str(programs))
            continue
        rows += [
            {
                "program": file.program(program.name),
                "workload_level": 0,
                "origin": f"user: {file.name}",
                "family": file.partition,
                "dtypes": [],
                "extents": [],
                "code_hash": content.code_hash,
            }
            for program in programs
        ]
    return rows, broken


def translated(
    path: Path, program: str | None, dtype: str, limits: Limits, *, naive: bool
) -> dict[str, Any]:
    """What ``steptp translate`` tells about a user's file. Fails in words."""
    from steptp_dagster.dataset.user_bench import bench

    file = file_of(path)
    content = read(file)
    if isinstance(content, UserRefusal):
        raise Failure(str(content))
    isolated = bench(limits, echo=True)
    name = _one(isolated, file, content.text, program)
    found = isolated.translation(
        file, content.text, name, {}, dtype, form="naive" if naive else "composed"
    )
    if isinstance(found, UserRefusal):
        raise Failure(str(found))
    if isinstance(found, Untranslated):
        raise Failure(f"{file.name} is not translated: {found.message}", REJECTED)
    if found.objection is not None and found.objection[0] == "unfaithful":
        message = "the translation is wrong, please report it"
        raise Failure(f"{file.name}: {message}: {found.objection[1]}", REJECTED)
    say(_compared(found, lambda: _smaller(isolated, file, content.text, name, dtype)))
    return {
        "program": file.program(name),
        "leir": write(found.signed),
        "names": dict(found.names),
        "origins": [dict(origin) for origin in found.origins],
        "fidelity": found.fidelity,
        "objection": found.objection,
        "unexecuted": found.unexecuted or None,
    }


def _one(bench: Workbench, file: UserFile, text: str, wanted: str | None) -> str:
    """The name of the wanted program in the file, or of the only one."""
    programs = bench.programs(file, text)
    if isinstance(programs, UserRefusal):
        raise Failure(str(programs))
    names = [program.name for program in programs]
    if wanted is not None and wanted in names:
        return wanted
    if wanted is None and len(names) == 1:
        return names[0]
    shown = ", ".join(repr(name) for name in names)
    problem = f"has no program {wanted!r}" if wanted is not None else "has several programs"
    raise Failure(f"{file.name} {problem}; choose one with --program: {shown}")


def _compared(found: UserTranslation, smaller: Callable[[], str]) -> str:
    if found.objection is not None:
        return f"not for the data set: {found.objection[0]}: {found.objection[1]}"
    if found.figures is None:
        return f"not executed: {found.unexecuted}{smaller()}"
    families = len({c["family"] for c in found.figures["comparisons"] if c["usable"]})
    return (
        f"compared with PyTorch in float64 on {families} families of data: "
        f"difference {found.fidelity:.1e}"
    )


def _smaller(bench: Workbench, file: UserFile, text: str, name: str, dtype: str) -> str:
    """How the same file compares with PyTorch where its numbers are smaller, in words."""
    samples = bench.samples(file, text, name, [dtype or "f32"], 1)
    for sample in samples.samples if not isinstance(samples, UserRefusal) else ():
        if sample.shape:
            found = bench.translation(file, sample.text, name, sample.shape, dtype)
            if isinstance(found, UserTranslation) and found.fidelity is not None:
                extents = ", ".join(f"{n}={v}" for n, v in sample.shape.items())
                return f"; with {extents} it differs from PyTorch by {found.fidelity:.1e}"
    return ""


def replayed(source: dict[str, Any]) -> "tuple[SignedProgram, str]":
    """The LEIR of a source row of a user made anew, and the digest of its file today."""
    from steptp_dagster.dataset.user_bench import bench

    told = json.loads(source["params"])
    folder = os.environ.get(paths.USERS_VARIABLE)
    if folder is None:
        raise Failure(f"{told['file']} is a user's: name its folder with --user-programs")
    file = file_of(Path(folder) / told["file"])
    content = read(file)
    if isinstance(content, UserRefusal):
        raise Failure(str(content))
    isolated = bench(Limits(), source["seed"])
    shape, dtype = json.loads(source["shapes"]), source["dtype"] if told["cast"] else ""
    text = source["code"] if content.code_hash == source["code_hash"] else content.text
    found = isolated.translation(file, text, told["name"], shape, dtype, form=source["form"])
    if isinstance(found, UserTranslation):
        return found.signed, content.code_hash
    why = found.message if isinstance(found, Untranslated) else str(found)
    raise Failure(f"the source is refused now: {why}", REJECTED)
