"""Where the steps of a run are executed: in the run's process, in processes, or on a cluster.

The same assets run on all of them; ``STEPTP_EXECUTOR`` chooses (``docs/scale.md``).
"""

import os
from collections.abc import Callable, Mapping
from typing import Final

import dagster as dg

from steptp_dagster.paths import WrongSetting

EXECUTOR_VARIABLE: Final = "STEPTP_EXECUTOR"
#: Steps that may run at a time; each uses processes of its own, so one by default.
CONCURRENT_VARIABLE: Final = "STEPTP_MAX_CONCURRENT"
#: Address of a Dask scheduler; without it a cluster of processes is started on this machine.
DASK_VARIABLE: Final = "STEPTP_DASK"
#: Environment variables with the URLs of Celery's broker and result backend.
BROKER_VARIABLE: Final = "STEPTP_BROKER"
BACKEND_VARIABLE: Final = "STEPTP_BACKEND"

Environment = Mapping[str, str]


class BadExecutor(WrongSetting):
    """An executor that is not known, or that lacks its package or a setting."""


def executor(environment: Environment = os.environ) -> dg.ExecutorDefinition:
    """The executor that the environment asks for; in the run's process by default.

    Raises BadExecutor.
    """
    kind = environment.get(EXECUTOR_VARIABLE, "in_process")
    if kind not in KINDS:
        raise BadExecutor(f"{EXECUTOR_VARIABLE}={kind!r}: one of {', '.join(KINDS)}")
    try:
        return KINDS[kind](environment)
    except ModuleNotFoundError as error:
        wanted = f"pip install 'steptp-dagster[{kind}]'"
        raise BadExecutor(f"{EXECUTOR_VARIABLE}={kind} needs {error.name}: {wanted}") from error


def concurrent(environment: Environment) -> int:
    """How many steps may run at a time. Raises BadExecutor."""
    text = environment.get(CONCURRENT_VARIABLE, "1")
    if not text.isdigit() or int(text) < 1:
        raise BadExecutor(f"{CONCURRENT_VARIABLE}={text!r} is not a number from 1 on")
    return int(text)


def _in_process(_: Environment) -> dg.ExecutorDefinition:
    return dg.in_process_executor


def _multiprocess(environment: Environment) -> dg.ExecutorDefinition:
    return dg.multiprocess_executor.configured(
        {
            "max_concurrent": concurrent(environment),
            "start_method": {"forkserver": {"preload_modules": ["steptp_dagster.preload"]}},
        }
    )


def _dask(environment: Environment) -> dg.ExecutorDefinition:
    from dagster_dask import dask_executor

    address = environment.get(DASK_VARIABLE)
    local = {"n_workers": concurrent(environment), "threads_per_worker": 1}
    cluster = {"existing": {"address": address}} if address else {"local": local}
    found: dg.ExecutorDefinition = dask_executor.configured({"cluster": cluster})
    return found


def _celery(environment: Environment) -> dg.ExecutorDefinition:
    from dagster_celery import celery_executor

    lacking = [v for v in (BROKER_VARIABLE, BACKEND_VARIABLE) if not environment.get(v)]
    if lacking:
        raise BadExecutor(f"{EXECUTOR_VARIABLE}=celery needs {' and '.join(lacking)}")
    settings = {"broker": {"env": BROKER_VARIABLE}, "backend": {"env": BACKEND_VARIABLE}}
    found: dg.ExecutorDefinition = celery_executor.configured(settings)
    return found


def _k8s(environment: Environment) -> dg.ExecutorDefinition:
    from dagster_k8s import k8s_job_executor

    settings = {"max_concurrent": concurrent(environment)}
    found: dg.ExecutorDefinition = k8s_job_executor.configured(settings)
    return found


KINDS: Final[dict[str, Callable[[Environment], dg.ExecutorDefinition]]] = {
    "in_process": _in_process,
    "multiprocess": _multiprocess,
    "dask": _dask,
    "celery": _celery,
    "k8s": _k8s,
}
