"""The real assets on a small profile, with translations by hand and a verifier that agrees."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dagster as dg
import pytest

from assets.filtered_dataset import filtered_dataset
from assets.gpu_verification import gpu_verification
from assets.leir_programs import leir_programs
from assets.partitions import program_files, synchronise
from assets.source_programs import source_programs
from assets.transformed_steps import transformed_steps
from resources.build import Build
from resources.store import ParquetStore
from resources.tokenizer import Tokenizer
from steptp_dagster.dataset.config import load
from steptp_dagster.dataset.incremental import Origin, Report
from steptp_dagster.dataset.stages import leir
from steptp_dagster.dataset.store import Store
from tests.support.small_build import Agreeable, translate

ASSETS = [source_programs, leir_programs, transformed_steps, gpu_verification, filtered_dataset]
PROFILE = """
name: light
seed: 3
dtypes: [f32]
programs: [{programs}]
strategies: [loop_split, reduction_factorization]
steps: {{sites: 1, depth: 0}}
splits: {{train: 1.0, validation: 0.0, test: 0.0}}
"""


class Light(Agreeable):
    """A verifier as the pool is used by the asset."""

    workers = 1

    def close(self) -> None:
        """Nothing is open."""


class LightTvm(dg.ConfigurableResource[Any]):
    """Stands in for the TVM executor."""

    @contextmanager
    def verifier(self, *, seed: int, target: str) -> Iterator[Light]:
        """A verifier that accepts everything."""
        yield Light()


def by_hand(store: Store, program: str, _: Any, origin: Origin, __: Any) -> Report:
    """In place of ``update_leir``, which loads PyTorch and TVM."""
    return translate(store, program, origin)


class Graph:
    """A folder with a profile and data, and an instance that remembers its runs."""

    def __init__(
        self, folder: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leir, "update_leir", by_hand)
        self.folder = folder
        self.instance = instance
        self.profile = folder / "light.yaml"
        self.store = Store(folder / "data" / "stages")
        self.choose("softmax", "GELU")

    def choose(self, *programs: str) -> tuple[str, ...]:
        """Give the profile these programs, and let Dagster know."""
        listed = ", ".join(f"{{name: {name}}}" for name in programs)
        self.profile.write_text(PROFILE.format(programs=listed))
        return synchronise(self.instance, load(str(self.profile)))

    @property
    def definitions(self) -> dg.Definitions:
        """The assets with their resources."""
        data = str(self.folder / "data")
        return dg.Definitions(
            assets=[program_files, *ASSETS],
            resources={
                "build": Build(profile_name=str(self.profile), processes=1),
                "store": ParquetStore(data=data),
                "tvm": LightTvm(),
                "tokenizer": Tokenizer(),
            },
            executor=dg.in_process_executor,
        )

    def run(
        self,
        programs: Sequence[str] = (),
        assets: Sequence[str] = (),
        *,
        succeeds: bool = True,
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> dg.ExecuteInProcessResult:
        """Materialise all assets, or some, for all programs, or a stretch of neighbours."""
        keys = list(programs) or self.instance.get_dynamic_partitions("programs")
        every = {
            **tags,
            "dagster/asset_partition_range_start": keys[0],
            "dagster/asset_partition_range_end": keys[-1],
        }
        job = self.definitions.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(
            instance=self.instance,
            tags=every,
            asset_selection=[dg.AssetKey(name) for name in assets] or None,
            raise_on_error=succeeds,
        )
        assert result.success is succeeds
        return result


def computed(result: dg.ExecuteInProcessResult) -> dict[str, int]:
    """Units computed by asset."""
    found: dict[str, int] = {}
    for event in result.get_asset_materialization_events():
        told = event.step_materialization_data.materialization
        if "units computed" in told.metadata:
            found[told.asset_key.to_user_string()] = int(told.metadata["units computed"].value)  # type: ignore[arg-type]
    return found
