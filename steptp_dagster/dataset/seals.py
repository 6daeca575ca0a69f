"""Seals: what a finished part was made from, and what it wrote.

A build that finds neither changed looks at no unit of it. A seal names everything that a stage
could depend on (all code and releases, the whole profile, plug-ins that are broken, the bytes of
the files read) and the bytes of every file written. That is too much rather than too little: where
anything differs, ``incremental`` looks unit by unit, as without a seal. A written file with other
bytes than its seal names counts as spoilt. A part with rows that are to be made again
(``Stage.again``) gets no seal.

    stages/<stage>.seal/<program>.json
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final, Self

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import Json, canonical_json, digest
from steptp_dagster.dataset.incremental import Report, Stage
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.dataset.versions import (
    GROUPS,
    ROOT,
    code_version,
    package_version,
    releases,
    steps_version,
)
from steptp_dagster.strategies.registry import faults
from steptp_dagster.users.files import Content, read
from steptp_dagster.verify.versions import gpu_here, nvrtc_available

#: Files of the library that hold code, or texts that it uses.
_KINDS: Final = (".py", ".sql", ".yaml")


@dataclass(frozen=True, slots=True)
class Part:
    """What is brought up to date together.

    Its stages, the folders they read, and those they write ``beside`` their tables. A ``whole``
    part reads the folders of all programs.
    """

    stages: tuple[Stage, ...]
    reads: Sequence[str] = ()
    beside: Sequence[str] = ()
    whole: bool = False

    @property
    def name(self) -> str:
        """The name of its first stage."""
        return self.stages[0].name

    @property
    def writes(self) -> tuple[str, ...]:
        """The folders of all files written."""
        tables = (name for s in self.stages for name in (*s.tables, *s.journals))
        return tuple(sorted({*tables, *self.beside}))


@dataclass(frozen=True, slots=True)
class Seal:
    """What a part was made from, digests of the files written by folder, and what it holds."""

    made_from: str
    files: Mapping[str, str | None] = field(default_factory=dict)
    units: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seals:
    """The seals of a store for builds of one profile; ``around`` digests all but stage files."""

    store: Store
    profile: Profile
    around: str

    @classmethod
    def of(cls, store: Store, profile: Profile) -> Self:
        """Digests code and settings, once for all parts."""
        settings = canonical_json(profile.settings())
        machine: list[Json] = [gpu_here(), nvrtc_available()]
        broken = [str(fault) for fault in faults()]
        known = (made_with(), steps_version(), settings, machine, broken)
        return cls(store, profile, digest("surroundings", *known))

    def update(self, part: Part, update: Callable[[], Report], program: str = WHOLE) -> Report:
        """What ``update`` does, unless the part is sealed and nothing changed since.

        Raises PartitionBusy, NotWritten, and whatever ``update`` raises.
        """
        with self.store.locked(f"{part.name}.seal", program):
            made_from, seal = (
                self._made_from(part, program),
                seal_of(self.store, part.name, program),
            )
            if seal is not None:
                written = self._written(part, program)
                if seal.made_from == made_from and seal.files == written:
                    return Report(0, seal.units, 0, seal.rows)
                # Whoever writes removes the seal first: these files were changed by somebody else,
                # or by a disk that fails, and nothing in them can be believed.
                for name, content in written.items():
                    if content is not None and content != seal.files.get(name, content):
                        self.store.remove(self.store.part(name, program))
            self.store.remove(_path(self.store, part.name, program))
            report = update()
            # Asked once more: what the part reads may have been written meanwhile.
            if self._settled(part, program) and made_from == self._made_from(part, program):
                units = report.new + report.kept
                seal = Seal(made_from, self._written(part, program), units, report.rows)
                self.store.write_bytes(_path(self.store, part.name, program), _text(seal))
            return report

    def _made_from(self, part: Part, program: str) -> str:
        programs = (*self.profile.program_names, WHOLE) if part.whole else (program,)
        names = [(f, p) for f in part.reads for p in programs]
        contents = zip(names, self.store.contents(names), strict=True)
        inputs: list[Json] = [[*name, content] for name, content in contents]
        return digest("seal", part.name, program, self.around, inputs, self._user_file(program))

    def _user_file(self, program: str) -> str | None:
        """What identifies the user's file that a partition stands for."""
        if (file := self.profile.user_file(program)) is None:
            return None
        content = read(file)
        return content.code_hash if isinstance(content, Content) else str(content)

    def _written(self, part: Part, program: str) -> dict[str, str | None]:
        contents = self.store.contents([(name, program) for name in part.writes])
        return dict(zip(part.writes, contents, strict=True))

    def _settled(self, part: Part, program: str) -> bool:
        """Whether no row waits to be made again."""
        for stage in part.stages:
            name, table = next(iter(stage.tables.items()))
            columns = ["unit", *stage.again.meta.root_names()]
            rows = self.store.read(table, program, name, columns=columns)
            if not rows.filter(stage.again).is_empty():
                return False
        return True


def made_with() -> str:
    """Digest of the library as it is on disk and as this process runs it, and of all releases.

    A file may be saved after the process has read it: rows are then marked with the older code.
    """
    own = {name: package_version(name) for name in ("steptp-dagster", "plotly")}
    running = {stage: code_version(stage) for stage in GROUPS}
    return digest("made with", library_digest(), running, releases(), own)


@cache
def library_digest() -> str:
    """Digest of all files of the library that hold code, or texts that it uses."""
    total = blake2b(digest_size=16)
    for file in sorted(f for f in ROOT.rglob("*") if f.suffix in _KINDS):
        total.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


def seal_of(store: Store, part: str, program: str) -> Seal | None:
    """The seal of a part, or None where there is none or it cannot be read."""
    path = _path(store, part, program)
    store.bring(path)
    try:
        return Seal(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _path(store: Store, part: str, program: str) -> Path:
    return store.root / f"{part}.seal" / f"{program}.json"


def _text(seal: Seal) -> bytes:
    told: dict[str, Json] = {
        "made_from": seal.made_from,
        "files": dict(seal.files),
        "units": seal.units,
        "rows": dict(seal.rows),
    }
    return f"{canonical_json(told)}\n".encode()
