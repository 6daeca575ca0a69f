"""Seconds of a build that finds nothing to do, stage by stage.

    python benchmarks/bench_nochange.py [--steps 100000] [--keep FOLDER]
    python benchmarks/bench_nochange.py --data FOLDER --profile NAME [--dagster]

Without ``--data`` it makes a data folder of that many steps first (``--keep`` puts it where it can
be used again, with the same code). The stages themselves write a small one, but what they would
compute is copied from a template with other ids; then every row is repeated with other ids. Then
every stage, every description
that an asset shows, the warehouse, the export and the report are brought up to date in one
process, in a build's order; whatever would compute raises. ``--dagster`` runs the job itself
instead, and says what Dagster's part is. Figures are processor time; two runs, the second counts.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Final
from unittest import mock

import polars as pl

from steptp_dagster.dataset import parts
from steptp_dagster.dataset.config import Profile, load
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Unit
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of, translation_row
from steptp_dagster.dataset.schemas import TRANSFORMED_STEPS, Row
from steptp_dagster.dataset.seals import Part, Seals
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.stages import (
    judgements,
    leir,
    negatives,
    records,
    sources,
    steps,
    tokens,
    zoo,
)
from steptp_dagster.dataset.store import Store, write_aside
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import silent
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.verify.record import Verdict

HEADER: Final = (
    "# input A f32[16,64]\n# param W f32[64,32]\n# param C f32[32]\n# output D f32[16,32]\n"
)
TEXT: Final = """\
B^{16}_{tx=0}L^{32}_{a=0}L^{64}_{c=0}[M^{f32,g}_{tx,a}=M^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];
B^{16}_{tx=0}L^{32}_{a=0}[F^{f32,g}_{tx,a}=max(M^{f32,g}_{tx,a}*1.5+C^{f32,g}_{a},0.0);];
B^{16}_{tx=0}L^{32}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+exp(F^{f32,g}_{tx,a});];
B^{16}_{tx=0}L^{32}_{a=0}[D^{f32,g}_{tx,a}=exp(F^{f32,g}_{tx,a})/E^{f32,g}_{tx};];
"""
#: What takes another value in every copy.
MARK: Final = "1.5"
PROFILE: Final = """
name: synthetic
seed: 1
dtypes: [f16, f32]
programs: [{programs}]
steps: {{sites: 2, depth: 3, chains: 1, chain_sites: 1, trajectories: 1, negatives: 1}}
"""
DTYPES: Final = ("f16", "f32")
#: Programs of the library that it takes; more steps come from more samples of them.
PROGRAMS: Final = 100
#: Steps of the folder whose rows are repeated, tables that are not, columns that keep their ids.
SMALL: Final = 3000
FIXED: Final = ("runs", "zoo", "statistics", "balance", "leakage")
KEPT: Final = ("run_id", "code_hash")
#: Random bytes that a text gets when it is repeated: a build has 2 kB of files a step.
SALT: Final = 900
Tables = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Template:
    """The rows that each strategy gives on one program, and what was judged of a step."""

    program: Row
    by_strategy: Mapping[str, Tables]
    verdict: Verdict


@cache
def template() -> Template:
    """Surveyed and judged once."""
    from steptp_dagster.verify.verdict import verify

    signed = signed_of(HEADER, TEXT)
    program = row_of(signed)
    parent = steps.Parent(
        "0" * 32, program["leir_id"], None, 0, HEADER, TEXT, 1, (program["structural_hash"],)
    )
    found = {
        name: dict(steps._rows(steps.Task(parent, name, 2, 10**9, 1, "brief"), signed))
        for name in strategies()
    }
    made = next(rows["step_programs"][0] for rows in found.values() if rows["step_programs"])
    return Template(program, found, verify(signed, signed_of(made["signature"], made["text"])))


_numbers = count(2)


def copied(program: Row) -> Row:
    """A program with another number in it, and other ids."""
    number = next(_numbers)
    text = program["text"].replace(MARK, f"{number}.5")
    names = {name: digest(name, number) for name in ("leir_id", "structural_hash")}
    return {**program, "text": text, **names}


def copy_leir(unit: Unit) -> Made:
    """In place of ``leir.work``."""
    program = copied(template().program)
    told = translation_row(
        unit.payload[0], leir_id=program["leir_id"], fidelity=0.0, interpreted="program"
    )
    return Made(unit, {"translations": [told], "leir_programs": [program]}, 0.01)


def copy_steps(group: Sequence[Unit]) -> list[Made]:
    """In place of ``steps.work``."""
    return [Made(unit, _copied_steps(unit.payload), 0.01) for unit in group]


def _copied_steps(task: steps.Task) -> Tables:
    rows, parent = template().by_strategy[task.strategy], task.parent
    where = {
        "source_id": parent.source_id,
        "parent_leir_id": parent.leir_id,
        "parent_step_id": parent.step_id,
    }
    taken = rows["transformed_steps"][: task.sites]
    originals = {row["leir_id"]: row for row in rows["step_programs"]}
    made = [copied(originals[row["result_leir_id"]]) for row in taken]
    changed = [
        {
            **row,
            **where,
            "step_id": digest("step", program["leir_id"]),
            "result_leir_id": program["leir_id"],
            "step_depth": parent.depth,
        }
        for row, program in zip(taken, made, strict=True)
    ]
    name = digest("survey", *where.values(), task.strategy)
    survey = {**rows["surveys"][0], **where, "survey_id": name, "taken": len(taken)}
    return {"surveys": [survey], "transformed_steps": changed, "step_programs": made}


def copy_tokens(unit: Unit) -> Made:
    """In place of ``tokens.work``."""
    languages = ("tir_blocks", "tir_loops", "tir_exact", "tvm_file", "tvm_kernels")
    others = dict.fromkeys((*languages, "cuda_file", "cuda_kernels"))
    row = {"leir_id": unit.payload[0], "sampled": False, "leir": 100, "compact": 50, **others}
    return Made(unit, {"token_counts": [{**row, "refusals": []}]}, 0.01)


def copy_zoo(unit: Unit) -> Made:
    """In place of ``zoo.work``: one pair of each kind."""
    row = {"kind": "k", "reason": None, "published_rule": None}
    told = [{**row, "pair": str(w), "wrong": w, "accepted": not w} for w in (True, False)]
    return Made(unit, {"zoo": told}, 0.01)


class Judge:
    """In place of a verifier: says of every pair what was said of the template's."""

    workers = 1

    def verify_many(self, pairs: Iterable[Any]) -> Iterator[tuple[Unit, Verdict]]:
        """The same verdict for all."""
        return ((unit, replace(template().verdict)) for unit, *_ in pairs)


class Idle:
    """In place of whatever computes: there must be nothing to do."""

    workers = 1

    def verify_many(self, pairs: Iterable[Any]) -> Iterator[tuple[Unit, Verdict]]:
        """Refuse the first pair."""
        for pair in pairs:
            raise AssertionError(f"a verdict was asked for: {pair[0]}")
        return iter(())


def forbidden(*_: Any, **__: Any) -> Any:  # noqa: ANN401 - in place of anything
    """Refuse."""
    raise AssertionError("something was computed")


@dataclass(frozen=True, slots=True)
class Folder:
    """A data folder and its profile."""

    data: Path
    profile: Profile

    @property
    def store(self) -> Store:
        """Its stage files."""
        return Store(self.data / "stages")

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return self.store.read_all(TRANSFORMED_STEPS, self.profile.program_names).height


def stages(folder: Folder, verifier: Any) -> dict[str, Callable[[], Any]]:  # noqa: ANN401
    """Everything that a build calls, by asset, in order."""
    from assets.filtered_dataset import described
    from assets.gpu_verification import judged
    from assets.leir_programs import translated
    from assets.source_programs import brought
    from assets.statistics import summary
    from assets.transformed_steps import surveyed
    from steptp_dagster.dataset.exports import export_all
    from steptp_dagster.dataset.report import report_html
    from steptp_dagster.dataset.schemas import STATISTICS
    from steptp_dagster.dataset.store import WHOLE
    from steptp_dagster.dataset.warehouse import connect
    from steptp_dagster.dataset.warehouse import load as load_warehouse

    store, profile = folder.store, folder.profile
    names, alone = profile.program_names, Workers(None)

    def origin(stage: str) -> Origin:
        return Origin("synthetic", code_version(stage))

    def each(part: Part, update: Callable[[str], Any], describe: Callable[[Any], Any]) -> None:
        seals = Seals.of(store, profile)
        for name in names:
            seals.update(part, partial(update, name), name)
        describe(names)

    def exported() -> None:
        with connect(folder.data / "steptp.duckdb") as connection:
            export_all(connection, folder.data / "export")

    def reported() -> None:
        with connect(folder.data / "steptp.duckdb") as connection:
            report_html(connection)

    def filtered() -> None:
        update = partial(records.update_records, store, profile, origin("records"))
        Seals.of(store, profile).update(parts.RECORDS, update)
        described(store)

    def counted() -> None:
        update = partial(tokens.update_tokens, store, profile, alone, origin("tokens"), silent)
        Seals.of(store, profile).update(parts.TOKENS, update)
        records.update_statistics(store, profile)
        summary(store.read(STATISTICS, WHOLE))

    return {
        "source_programs": lambda: each(
            parts.SOURCES,
            lambda p: sources.update_sources(store, p, profile, origin("sources"), silent),
            lambda names: brought(store, names),
        ),
        "leir_programs": lambda: each(
            parts.LEIR,
            lambda p: leir.update_leir(store, p, alone, origin("leir"), silent),
            lambda names: translated(store, names),
        ),
        "transformed_steps": lambda: each(
            parts.STEPS,
            lambda p: steps.update_steps(store, p, profile, alone, origin("steps"), silent),
            lambda names: surveyed(store, names),
        ),
        "gpu_verification": lambda: each(
            parts.JUDGEMENTS,
            lambda p: judgements.update_judgements(
                store, p, profile, verifier, origin("verdicts"), silent
            ),
            lambda names: judged(store, names),
        ),
        "zoo_rejected": lambda: zoo.update_zoo(
            store, profile.verification.seed, alone, origin("zoo"), silent
        ),
        "filtered_dataset": filtered,
        "statistics": counted,
        "warehouse": lambda: load_warehouse(store, profile, folder.data / "steptp.duckdb"),
        "export": exported,
        "report": reported,
    }


def multiplied(folder: Folder, times: int) -> None:
    """Repeat the rows of all tables that grow with the number of steps, each with other ids."""
    for path in sorted(folder.store.root.glob("*/program=*/part.parquet")):
        name = path.parent.parent.name
        if name.removeprefix("lineage-").removeprefix("timings-") not in FIXED:
            rows = pl.read_parquet(path, hive_partitioning=False)
            write_aside(path, pl.concat([renamed(rows, n) for n in range(times)]))
    # Else the files would count as spoilt: they are not what was sealed.
    for path in folder.store.root.glob("*.seal/*.json"):
        path.unlink()


def renamed(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """The rows with other ids, and with texts that compress no better than those of a build."""
    prefix = f"{number:03x}"
    own = [c for c in rows.columns if c.endswith(("_id", "_hash", "unit")) and c not in KEPT]
    lists = [c for c in rows.columns if c == "step_ids"]
    return rows.with_columns(
        *(pl.concat_str(pl.lit(prefix), pl.col(c).str.slice(3)).alias(c) for c in own),
        *(
            pl.col(c).list.eval(pl.concat_str(pl.lit(prefix), pl.element().str.slice(3)))
            for c in lists
        ),
        *(
            pl.col(c) + pl.Series([random.randbytes(SALT).hex() for _ in range(rows.height)])
            for c in rows.columns
            if c in ("text", "reasoning_text")
        ),
    )


def synthetic(folder: Path, wanted: int) -> Folder:
    """A data folder of about so many steps."""
    made = small(folder, min(wanted, SMALL))
    times = max(1, round(wanted / made.steps))
    if times > 1:
        multiplied(made, times)
        done = mock.Mock(return_value=Report(0, 1, 0))
        with (
            mock.patch.object(sources, "update_sources", done),
            mock.patch.object(leir, "update_leir", done),
            mock.patch.object(steps, "update_steps", done),
            mock.patch.object(judgements, "update_judgements", done),
            mock.patch.object(records, "update_records", done),
            mock.patch.object(tokens, "update_tokens", done),
        ):
            for name, work in stages(made, Judge()).items():
                start = time.process_time()
                work()
                print(f"  {name} sealed in {time.process_time() - start:.1f} s", flush=True)
    return made


def small(folder: Path, wanted: int) -> Folder:
    """A data folder that stages wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "synthetic.yaml"
    per_source = 0
    for rows in template().by_strategy.values():
        taken = len(rows["transformed_steps"])
        per_source += min(taken, 2) + 3 * min(taken, 1)
    samples = max(1, round(wanted / per_source / len(DTYPES) / PROGRAMS))
    count_ = max(1, round(wanted / per_source / len(DTYPES) / samples))
    names = [n for n in sorted(SOURCES) if {*DTYPES} <= {*SOURCES[n].dtypes}][:count_]
    listed = ", ".join(f"{{name: {name}, samples: {samples}}}" for name in names)
    file.write_text(PROFILE.format(programs=listed))
    made = Folder(folder, load(str(file)))
    with (
        mock.patch.object(leir, "work", copy_leir),
        mock.patch.object(steps, "work", copy_steps),
        mock.patch.object(tokens, "work", copy_tokens),
        mock.patch.object(zoo, "work", copy_zoo),
        mock.patch("steptp_dagster.dataset.records.count", lambda text: len(text) // 4 + 1),
    ):
        for name, work in stages(made, Judge()).items():
            start = time.process_time()
            work()
            print(f"  {name} made in {time.process_time() - start:.1f} s", flush=True)
    return made


def measured(folder: Folder) -> dict[str, float]:
    """Seconds by asset of the second of two runs."""
    found: dict[str, float] = {}
    with (
        mock.patch.object(leir, "work", forbidden),
        mock.patch.object(steps, "work", forbidden),
        mock.patch.object(tokens, "work", forbidden),
        mock.patch.object(zoo, "work", forbidden),
        mock.patch.object(negatives, "spoilt", forbidden),
        mock.patch.object(records, "filtered", forbidden),
    ):
        for _ in range(2):
            for name, work in stages(folder, Idle()).items():
                start = time.process_time()
                work()
                found[name] = time.process_time() - start
    return found


def job(folder: Folder, profile: str) -> None:
    """The job itself, as ``steptp build`` runs it, with the seconds of every step."""
    import os

    before = time.process_time(), time.perf_counter()
    os.environ |= {"STEPTP_DATA": str(folder.data), "STEPTP_PROFILE": profile}
    os.environ["DAGSTER_HOME"] = str(folder.data / "dagster-home")
    os.environ["STEPTP_WORKERS"] = "1"
    from steptp_dagster import paths
    from steptp_dagster.cli.build import run

    paths.dagster_home()
    for turn in ("first", "second"):
        result = run()
        if not result.success:
            sys.exit("the run failed")
        after = time.process_time(), time.perf_counter()
        used, passed = (b - a for a, b in zip(before, after, strict=True))
        for event in result.all_events:
            if event.event_type_value == "STEP_SUCCESS":
                seconds = event.step_success_data.duration_ms / 1000
                print(f"  {event.step_key:40} {seconds:6.2f} s wall")
        print(f"{turn} run: {used:.2f} s of processor time, {passed:.2f} s wall")
        before = after


def main() -> None:
    """Make or take a folder, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="folder of the synthetic data")
    parser.add_argument("--data", type=Path, help="folder of a build")
    parser.add_argument("--profile", default="default")
    parser.add_argument("--dagster", action="store_true", help="run the job itself")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kept = options.keep or Path(scratch)
        if options.data:
            folder = Folder(options.data.resolve(), load(options.profile))
        elif (kept / "synthetic.yaml").exists():
            folder = Folder(kept.resolve(), load(str(kept / "synthetic.yaml")))
        else:
            folder = synthetic(kept.resolve(), options.steps)
        size = sum(f.stat().st_size for f in folder.store.root.rglob("*.parquet")) / 1e6
        programs = len(folder.profile.program_names)
        print(f"{folder.steps} steps of {programs} programs, {size:.0f} MB of stage files")
        if options.dagster:
            job(folder, options.profile)
            return
        found = measured(folder)
        for name, seconds in found.items():
            print(f"  {name:20} {seconds:6.2f} s")
        print(f"  {'together':20} {sum(found.values()):6.2f} s")


if __name__ == "__main__":
    main()
