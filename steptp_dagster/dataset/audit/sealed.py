"""Finished files that somebody changed after the stage that wrote them had sealed them."""

from collections.abc import Iterator

from steptp_dagster.dataset import parts
from steptp_dagster.dataset.audit.defects import Defect
from steptp_dagster.dataset.audit.stage_files import programs_in
from steptp_dagster.dataset.seals import Part, seal_of
from steptp_dagster.dataset.store import SpoiltFile, Store


def known_parts() -> tuple[Part, ...]:
    """All parts of a build that are sealed."""
    return tuple(part for part in vars(parts).values() if isinstance(part, Part))


def changed(store: Store) -> Iterator[Defect]:
    """Files with other bytes than their seal names; a file that is gone is told elsewhere."""
    for part in known_parts():
        for program in programs_in(store):
            seal = seal_of(store, part.name, program)
            for folder, known in seal.files.items() if seal is not None else ():
                try:
                    content = store.content(folder, program)
                except SpoiltFile:  # a finding of its own
                    continue
                if content is not None and content != known:
                    where = str(store.part(folder, program).relative_to(store.root))
                    said = f"other bytes than the stage {part.name} wrote"
                    yield Defect("changed-file", where, "", said)
