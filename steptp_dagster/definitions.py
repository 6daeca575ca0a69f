"""What Dagster sees: assets, checks, the job, its schedule, resources.

Environment: ``STEPTP_PROFILE`` (name or path of a profile), ``STEPTP_DATA`` (data folder),
``STEPTP_WORKERS`` (processes, 0: one per core), ``STEPTP_USER_PROGRAMS`` (folder of users'
programs), ``STEPTP_EXECUTOR`` (``in_process`` or ``multiprocess``). New files of users appear as
partitions when the code location is reloaded.
"""

import os

import dagster as dg

from assets.checks import zoo_rejected
from assets.export import export
from assets.filtered_dataset import filtered_dataset
from assets.gpu_verification import gpu_verification
from assets.leir_programs import leir_programs
from assets.source_programs import source_programs
from assets.statistics import statistics
from assets.transformed_steps import transformed_steps
from assets.warehouse import warehouse_asset
from resources.build import PROFILE_VARIABLE, WORKERS_VARIABLE, Build
from resources.store import ParquetStore
from resources.tokenizer import Tokenizer
from resources.tvm_executor import TvmExecutor
from resources.warehouse import Warehouse
from steptp_dagster import paths

#: Each stage uses processes of its own, so steps need none; the UI runs jobs in their own anyway.
EXECUTORS = {
    "in_process": dg.in_process_executor,
    "multiprocess": dg.multiprocess_executor.configured(
        {
            "max_concurrent": 1,
            "start_method": {"forkserver": {"preload_modules": ["steptp_dagster.preload"]}},
        }
    ),
}

settings = Build(
    profile_name=os.environ.get(PROFILE_VARIABLE, "default"),
    processes=int(os.environ.get(WORKERS_VARIABLE, "0")),
)
verification = settings.profile.verification
build = dg.define_asset_job("build", selection="*", description="Everything, from programs on.")
nightly = dg.ScheduleDefinition(
    name="nightly", job=build, cron_schedule="0 3 * * *", description="Stopped until started."
)

defs = dg.Definitions(
    assets=[
        source_programs,
        leir_programs,
        transformed_steps,
        gpu_verification,
        filtered_dataset,
        statistics,
        warehouse_asset,
        export,
    ],
    asset_checks=[zoo_rejected],
    jobs=[build],
    schedules=[nightly],
    resources={
        "build": settings,
        "store": ParquetStore(data=str(paths.data())),
        "warehouse": Warehouse(data=str(paths.data())),
        "tokenizer": Tokenizer(),
        "tvm": TvmExecutor(
            workers=settings.count,
            timeout_s=verification.timeout_s,
            memory_mb=verification.memory_mb,
            seed=verification.seed,
            target=verification.target,
        ),
    },
    executor=EXECUTORS[os.environ.get("STEPTP_EXECUTOR", "in_process")],
)
