"""The parts of a build that can be sealed: which stages they are, and which folders they read.

``tests/dataset/test_seals.py`` compares them with what the stages open.
"""

from typing import Final

from steptp_dagster.dataset.seals import Part
from steptp_dagster.dataset.stages import (
    negatives,
    records,
    renderings,
    steps,
    tokens,
    trajectories,
    user_leir,
    user_sources,
    verdicts,
)

_PROGRAMS: Final = ("leir_programs", "step_programs")

#: Of the library's programs and of users': the stages of these write one table more.
SOURCES: Final = Part((user_sources.STAGE,))
LEIR: Final = Part((user_leir.STAGE,), reads=("source_programs",))
STEPS: Final = Part((steps.STAGE,), reads=("leir_programs", "translations"))
JUDGEMENTS: Final = Part(
    (verdicts.STAGE, trajectories.STAGE, negatives.STAGE),
    reads=(*_PROGRAMS, "transformed_steps", "translations"),
    beside=("gpu_verification",),
)
TOKENS: Final = Part((tokens.STAGE,), reads=(*_PROGRAMS, "translations"), whole=True)
RENDERINGS: Final = Part((renderings.STAGE,), reads=(*_PROGRAMS, "negatives"), whole=True)
RECORDS: Final = Part(
    (records.STAGE,),
    reads=(*records.INPUTS, "renderings"),
    beside=tuple(str(table.name) for table in records.WITH_RECORDS),
    whole=True,
)
