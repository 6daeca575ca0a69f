"""Two hundred partitions by parallel runs, by one run, and by one process: are the rows the same?

    python benchmarks/partitions.py [--programs 200] [--runs 4] [--folder FOLDER]

The partitions are programs of the library; what takes long (translations, verdicts) is replaced by
something instant, so that runs collide as often as they can. Three folders are filled: by RUNS
processes at the same time, each with its stretch of the partitions, twice over (the second time
the stretches overlap by half); by one single-run backfill; and by the library alone. Every table
that is equal in every build must be equal in all three, and Dagster must know all partitions of
every asset to be there. Exit code 1 where anything differs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

import dagster as dg
import polars as pl

from assets.leir_programs import leir_programs
from assets.partitions import program_files, synchronise
from assets.source_programs import source_programs
from assets.transformed_steps import transformed_steps
from resources.build import Build
from resources.store import ParquetStore
from steptp_dagster.dataset.config import Profile, load
from steptp_dagster.dataset.incremental import Made, Origin, Unit
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of, translation_row
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.stages import leir, sources, steps
from steptp_dagster.dataset.store import Store
from steptp_dagster.progress import silent
from steptp_dagster.sources.registry import SOURCES

ASSETS: Final = (source_programs, leir_programs, transformed_steps)
#: Folders whose rows are equal in every build.
TABLES: Final = (
    *("source_programs", "translations", "leir_programs"),
    *("surveys", "transformed_steps", "step_programs"),
)
PROFILE: Final = """
name: partitions
seed: 1
dtypes: [f32]
programs: [{programs}]
strategies: [loop_split, reduction_factorization]
steps: {{sites: 1, depth: 0}}
"""
HEADER: Final = "# input A f32[4,{n}]\n# output D f32[4]\n"
BODY: Final = (
    "B^{{4}}_{{tx=0}}L^{{{n}}}_{{a=0}}"
    "[D^{{f32,g}}_{{tx}}=D^{{f32,g}}_{{tx}}+A^{{f32,g}}_{{tx,a}};];"
)
STRETCH: Final = "dagster/asset_partition_range_"


def instant(unit: Unit) -> Made:
    """In place of ``leir.work``: a sum, of another extent for every program."""
    source = unit.payload[0]
    n = 2 + sorted(SOURCES).index(source["program"])
    row = row_of(signed_of(HEADER.format(n=n), BODY.format(n=n)))
    told = translation_row(source, leir_id=row["leir_id"], fidelity=0.0)
    return Made(unit, {"translations": [told], "leir_programs": [row]}, 0.0)


@contextmanager
def quick() -> Iterator[None]:
    """Translations take no time."""
    with mock.patch.object(leir, "work", instant):
        yield


def profile_of(folder: Path) -> Profile:
    """The profile that lies in a folder."""
    return load(str(folder / "partitions.yaml"))


def prepared(folder: Path, count: int) -> Path:
    """A folder with the profile, and a Dagster home that knows its partitions."""
    folder.mkdir(parents=True)
    listed = ", ".join(f"{{name: {name}}}" for name in sorted(SOURCES)[:count])
    (folder / "partitions.yaml").write_text(PROFILE.format(programs=listed))
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        synchronise(instance, profile_of(folder))
    return folder


def run(folder: Path, first: str, last: str) -> bool:
    """One run of a stretch of the partitions, in this process."""
    definitions = dg.Definitions(
        assets=[program_files, *ASSETS],
        resources={
            "build": Build(profile_name=str(folder / "partitions.yaml"), processes=1),
            "store": ParquetStore(data=str(folder)),
        },
        executor=dg.in_process_executor,
    )
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with dg.DagsterInstance.from_config(str(folder / "home")) as instance, quick():
        result = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            tags={f"{STRETCH}start": first, f"{STRETCH}end": last},
            run_config=quiet,
            raise_on_error=False,
        )
    return result.success


def together(folder: Path, stretches: Sequence[tuple[str, str]]) -> bool:
    """Runs of several stretches at the same time, each in a process of its own."""
    command = [sys.executable, __file__, "--folder", str(folder), "--stretch"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    processes = [subprocess.Popen([*command, *s], env=environment) for s in stretches]
    codes = [process.wait() for process in processes]
    return not any(codes)


def alone(folder: Path) -> bool:
    """The library without Dagster."""
    store, profile, nobody = Store(folder / "stages"), profile_of(folder), Workers(None)
    with quick():
        for name in profile.program_names:
            sources.update_sources(store, name, profile, Origin(), silent)
            leir.update_leir(store, name, nobody, Origin(), silent)
            steps.update_steps(store, name, profile, nobody, Origin(), silent)
    return True


def cut(names: Sequence[str], parts: int, overlap: int = 0) -> list[tuple[str, str]]:
    """The names in stretches of neighbours, each longer by ``overlap`` than it had to be."""
    size = -(-len(names) // parts)
    own = [names[n : n + size + overlap] for n in range(0, len(names), size)]
    return [(stretch[0], stretch[-1]) for stretch in own]


def rows(folder: Path) -> dict[str, pl.DataFrame]:
    """All rows of the tables that are equal in every build."""
    store, found = Store(folder / "stages"), {}
    for table in TABLES:
        parts = [store.part(table, p) for p in profile_of(folder).program_names]
        frames = [pl.read_parquet(part, hive_partitioning=False) for part in parts]
        found[table] = pl.concat(frames)
    return found


def known(folder: Path) -> dict[str, int]:
    """Partitions of each asset that Dagster has a materialisation of."""
    with dg.DagsterInstance.from_config(str(folder / "home")) as instance:
        return {
            asset.key.to_user_string(): len(instance.get_materialized_partitions(asset.key))
            for asset in ASSETS
        }


def compare(scratch: Path, count: int, runs: int) -> bool:
    """Fill the three folders and say what they hold."""
    folders = {name: prepared(scratch / name, count) for name in ("parallel", "single", "alone")}
    names = profile_of(folders["alone"]).program_names
    timed: dict[str, Any] = {
        f"{runs} runs at a time": lambda: together(folders["parallel"], cut(names, runs)),
        f"{runs} runs that overlap": lambda: together(
            folders["parallel"], cut(names, runs, len(names) // runs // 2)
        ),
        "one run of all": lambda: together(folders["single"], cut(names, 1)),
        "one process without Dagster": lambda: alone(folders["alone"]),
    }
    fine = True
    for what, work in timed.items():
        start = time.perf_counter()
        done = work()
        seconds = time.perf_counter() - start
        print(f"{what}: {seconds:.1f} s{'' if done else ', FAILED'}", flush=True)
        fine &= done
    wanted = rows(folders["alone"])
    for name in ("parallel", "single"):
        found = rows(folders[name])
        equal = {table: found[table].equals(wanted[table]) for table in TABLES}
        there = known(folders[name])
        fine &= all(equal.values()) and set(there.values()) == {count}
        counted = ", ".join(f"{t} {found[t].height}/{wanted[t].height}" for t in TABLES)
        print(f"{name}: equal: {all(equal.values())}; rows {counted}; partitions {there}")
    return fine


def main() -> None:
    """Compare, or be one of the runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--stretch", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stretch:
        sys.exit(not run(options.folder, *options.stretch))
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(not compare(options.folder or Path(scratch), options.programs, options.runs))


if __name__ == "__main__":
    main()
