"""What both stages that translate share: the library's programs and users' have the same tables."""

from collections.abc import Sequence
from typing import Any

from steptp_dagster.dataset.incremental import Stage
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, TRANSLATIONS, Row

#: Tables of translations.
TABLES = {"translations": TRANSLATIONS, "leir_programs": LEIR_PROGRAMS}
ORDER = {"translations": ("source_id",), "leir_programs": ("leir_id", "unit")}
STAGE = Stage("leir", TABLES, ORDER)


def with_twins(rows: Sequence[Row]) -> list[tuple[Row, bool]]:
    """Every source with whether the composed form of the same sample is a source too."""
    composed = {_sample(row) for row in rows if row["form"] == "composed"}
    return [(row, row["form"] == "naive" and _sample(row) in composed) for row in rows]


def _sample(row: Row) -> tuple[Any, ...]:
    """What the forms of one sample have in common."""
    return tuple(row[name] for name in ("program", "code_hash", "dtype", "shapes", "seed"))
