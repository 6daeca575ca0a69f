"""The same assets on other executors; what is not installed is skipped with words."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from resources.executors import BadExecutor, concurrent, executor
from steptp_dagster import paths


def test_the_default_is_this_process() -> None:
    assert executor({}) is dg.in_process_executor


def test_processes() -> None:
    found = executor({"STEPTP_EXECUTOR": "multiprocess", "STEPTP_MAX_CONCURRENT": "3"})
    assert found.name == "multiprocess"


@pytest.mark.parametrize("text", ["0", "-1", "many", ""])
def test_a_wrong_number_is_said(text: str) -> None:
    with pytest.raises(BadExecutor, match="is not a number from 1 on"):
        concurrent({"STEPTP_MAX_CONCURRENT": text})


def test_an_unknown_executor_lists_the_known_ones() -> None:
    with pytest.raises(BadExecutor, match="in_process, multiprocess, dask, celery, k8s"):
        executor({"STEPTP_EXECUTOR": "mainframe"})


@pytest.mark.parametrize("kind", ["dask", "celery", "k8s"])
def test_a_missing_package_is_said(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"dagster_{kind}", None)
    with pytest.raises(BadExecutor, match=rf"pip install 'steptp-dagster\[{kind}\]'"):
        executor({"STEPTP_EXECUTOR": kind})


def test_celery_needs_its_urls() -> None:
    pytest.importorskip("dagster_celery")
    with pytest.raises(BadExecutor, match="needs STEPTP_BROKER and STEPTP_BACKEND"):
        executor({"STEPTP_EXECUTOR": "celery"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "settings",
    [
        {"STEPTP_EXECUTOR": "dask"},
        {"STEPTP_EXECUTOR": "dask", "STEPTP_DASK": "tcp://127.0.0.1:8786"},
        {
            "STEPTP_EXECUTOR": "celery",
            "STEPTP_BROKER": "pyamqp://guest@127.0.0.1//",
            "STEPTP_BACKEND": "rpc://",
        },
        {"STEPTP_EXECUTOR": "k8s", "STEPTP_MAX_CONCURRENT": "8"},
    ],
    ids=lambda settings: " ".join(settings.values()),
)
def test_a_cluster_s_configuration_loads(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor's schema accepts what we give it, and a job can be made with it."""
    kind = settings["STEPTP_EXECUTOR"]
    pytest.importorskip(f"dagster_{kind}", reason=f"extra {kind!r} is not installed")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    @dg.asset
    def one() -> None: ...

    defs = dg.Definitions(assets=[one], executor=executor(settings))
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.executor_def.name in ("dask", "celery", "k8s")
    defs.validate_loadable(defs)


COUNTED = """
import dagster as dg
from pathlib import Path
from resources.executors import executor

FOLDER = Path({folder!r})
PARTS = dg.StaticPartitionsDefinition([f"p{{n:03d}}" for n in range(20)])

@dg.asset(partitions_def=PARTS, backfill_policy=dg.BackfillPolicy.single_run())
def made(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    for key in context.partition_keys:
        (FOLDER / key).write_text(key)
    return dg.MaterializeResult(metadata={{"rows": len(context.partition_keys)}})

@dg.asset(deps=[made])
def counted() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={{"files": len(list(FOLDER.iterdir()))}})

defs = dg.Definitions(assets=[made, counted], executor=executor())
"""


@pytest.mark.slow
def test_a_run_on_a_local_dask_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All partitions in one step on a Dask worker, then a step that sees what it wrote."""
    pytest.importorskip("dagster_dask", reason="extra 'dask' is not installed")
    made, home = tmp_path / "made", tmp_path / "home"
    made.mkdir()
    home.mkdir()
    (home / "dagster.yaml").write_text(paths.SETTINGS)
    (tmp_path / "clustered.py").write_text(COUNTED.format(folder=str(made)))
    places = [str(tmp_path), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(p for p in places if p))
    monkeypatch.setenv("STEPTP_EXECUTOR", "dask")
    monkeypatch.setenv("STEPTP_MAX_CONCURRENT", "2")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    for selected in (["made", "--partition-range", "p000...p019"], ["counted"]):
        command = ["-m", "dagster", "asset", "materialize", "-m", "clustered", "--select"]
        subprocess.run([sys.executable, *command, *selected], check=True, timeout=400)
    with dg.DagsterInstance.get() as instance:
        (record,) = instance.fetch_materializations(dg.AssetKey("counted"), limit=1).records
        event = record.asset_materialization
        assert event is not None
        assert event.metadata["files"].value == 20
