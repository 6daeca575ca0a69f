"""Source programs: which shapes and dtypes of a workload the profile asks for."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import canonical_json, digest, rank, source_id
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.schemas import SOURCE_PROGRAMS, Row
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress
from steptp_dagster.sources.base import Source
from steptp_dagster.sources.registry import SOURCES

STAGE = Stage("sources", {"source_programs": SOURCE_PROGRAMS}, {"source_programs": ("source_id",)})


class UnknownProgram(ValueError):
    """The profile names a program that the library lacks."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One shape sample of a program in one dtype and form; ``seed`` decides its parameters."""

    program: str
    shape: Mapping[str, int]
    dtype: str
    seed: int
    form: str


def source_of(program: str) -> Source:
    """The library's program of that name. Raises UnknownProgram."""
    if program not in SOURCES:
        raise UnknownProgram(f"no source program {program!r}; `steptp sources` lists them")
    return SOURCES[program]


def samples(program: str, profile: Profile) -> list[Sample]:
    """The samples of a program: the same shapes in every dtype that it has, in every form."""
    source = source_of(program)
    rng = random.Random(rank(profile.seed, "shapes", program))
    plan = profile.plan(program)
    sample = partial(source.sample, rng, usual=profile.shapes == "usual")
    shapes = sample(plan.samples)
    if plan.large:
        shapes += tuple(s for s in sample(plan.large, "large") if s not in shapes)
    dtypes = [d for d in profile.dtypes if d in source.dtypes]
    return [
        Sample(program, shape, dtype, profile.seed, form)
        for shape in shapes
        for dtype in dtypes
        for form in profile.forms_of(program)
    ]


def update_sources(
    store: Store, program: str, profile: Profile, origin: Origin, progress: Progress[Made]
) -> Report:
    """Bring the source programs of one workload up to date."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        made = (timed(unit, partial(_rows, unit.payload)) for unit in missing)
        return progress(f"sources of {program}", len(missing), made)

    wanted = [
        Unit(
            digest(
                "unit",
                "sources",
                code_version("sources"),
                program,
                s.shape,
                s.dtype,
                s.seed,
                s.form,
            ),
            s,
        )
        for s in samples(program, profile)
    ]
    return update(store, STAGE, program, wanted, compute, origin=origin)


def _rows(sample: Sample) -> dict[str, list[Row]]:
    source = source_of(sample.program)
    inputs = [asdict(i) for i in source.describe(sample.shape, sample.dtype)]
    arguments = {name: sample.shape[name] for name in source.arguments}
    row: Row = {
        "source_id": source_id(
            sample.program, source.code_hash, sample.dtype, sample.shape, sample.seed, sample.form
        ),
        "program": sample.program,
        "workload_level": source.workload_level,
        "family": source.family,
        "code": source.code,
        "code_hash": source.code_hash,
        "inputs": canonical_json(inputs),
        "params": canonical_json(arguments),
        "dtype": sample.dtype,
        "shapes": canonical_json(dict(sample.shape)),
        "seed": sample.seed,
        "form": sample.form,
    }
    return {"source_programs": [row]}
