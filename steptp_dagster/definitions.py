"""What Dagster sees: assets, checks, the job, its schedule, resources.

Environment: ``STEPTP_PROFILE`` (name or path of a profile), ``STEPTP_DATA`` (data folder),
``STEPTP_STORAGE`` (where stage files lie, if not there), ``STEPTP_WORKERS`` (processes, 0: one per
core), ``STEPTP_USER_PROGRAMS`` (folder of users' programs), ``STEPTP_EXECUTOR``
(``resources.executors``). The sensor
``program_folder`` keeps the partitions those of the profile, new files of users included.
"""

import os

import dagster as dg

from assets.automation import build_job, due, nightly, program_folder, programs_job
from assets.checks import zoo_rejected
from assets.comparison import drift, strategies_present
from assets.export import export
from assets.filtered_dataset import filtered_dataset
from assets.gpu_verification import gpu_verification
from assets.leir_programs import leir_programs
from assets.partitions import program_files, synchronise
from assets.report import report
from assets.source_programs import source_programs
from assets.statistics import statistics
from assets.transformed_steps import transformed_steps
from assets.warehouse import warehouse_asset
from resources.build import PROFILE_VARIABLE, WORKERS_VARIABLE, Build, number
from resources.executors import executor
from resources.store import ParquetStore
from resources.tokenizer import Tokenizer
from resources.tvm_executor import TvmExecutor
from resources.warehouse import Warehouse
from steptp_dagster import paths

settings = Build(
    profile_name=os.environ.get(PROFILE_VARIABLE, "default"),
    processes=number(WORKERS_VARIABLE),
)
verification = settings.profile.verification

__all__ = ["defs", "settings", "synchronise"]

defs = dg.Definitions(
    assets=dg.with_source_code_references(
        [
            program_files,
            source_programs,
            leir_programs,
            transformed_steps,
            gpu_verification,
            filtered_dataset,
            statistics,
            warehouse_asset,
            export,
            report,
        ]
    ),
    asset_checks=[zoo_rejected, strategies_present, drift],
    jobs=[build_job, programs_job],
    schedules=[nightly],
    sensors=[program_folder, due],
    resources={
        "build": settings,
        "store": ParquetStore(data=str(paths.data()), storage=paths.storage()),
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
    executor=executor(),
)
