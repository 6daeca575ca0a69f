from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest

from resources.tvm_executor import TvmExecutor, WrongSettings
from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.zoo import originals


def test_runs_and_judges() -> None:
    executor = TvmExecutor(workers=1, seed=7)
    signed = read(originals.SCALE_ADD).signed
    data = {"A": np.arange(20.0, dtype=np.float32), "C": np.ones(20, np.float32)}
    assert np.array_equal(executor.run(signed, data)["D"], data["A"] * 2.5 - 1)
    with executor.verifier(seed=7, target="llvm") as verifier:
        [(key, verdict)] = verifier.verify_many([("same", signed, signed)])
    assert key == "same"
    assert verdict.accepted
    assert verdict.equality == "exact"
    assert verdict.seeds == (7,)


def test_verdicts_are_never_of_another_seed_or_target_than_the_profiles() -> None:
    executor = TvmExecutor(workers=1, seed=7, target="cuda:sm_90")
    with (
        pytest.raises(WrongSettings) as raised,
        executor.verifier(seed=0, target="llvm"),
    ):
        pass
    assert str(raised.value).splitlines() == [
        "seed is 7 here and 0 in the profile: they must be the same",
        "target is 'cuda:sm_90' here and 'llvm' in the profile: they must be the same",
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"workers": 0}, "workers must be between 1 and 1024, not 0"),
        ({"timeout_s": -1.0}, "timeout_s must be between 0.1 and 86400.0, not -1.0"),
        ({"timeout_s": float("nan")}, "timeout_s must be between 0.1 and 86400.0, not nan"),
        ({"memory_mb": 1}, "memory_mb must be between 256 and 1048576, not 1"),
        ({"seed": -1}, "seed must be between 0 and 2147483647, not -1"),
        ({"target": "cpu"}, "target must be one of llvm, cuda:sm_80, cuda:sm_90, not 'cpu'"),
        ({"rpc_tracker": "nowhere"}, "rpc_tracker must be empty, or HOST:PORT .*, not 'nowhere'"),
        ({"rpc_tracker": "host:99999"}, "rpc_tracker must be empty, .*, not 'host:99999'"),
        ({"rpc_tracker": "host:9190", "rpc_key": ""}, "rpc_key must not be empty"),
        ({"cache_dir": "/no/such/folder"}, "cache_dir must be .*, not '/no/such/folder'"),
    ],
)
def test_wrong_settings_are_told_when_it_is_made(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(WrongSettings, match=f"^{told}"):
        TvmExecutor(**settings)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(WrongSettings) as raised:
        TvmExecutor(workers=-2, target="gpu")
    assert [line.split()[0] for line in str(raised.value).splitlines()] == ["workers", "target"]


def test_settings_from_the_environment_are_judged_when_they_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dg.asset
    def used(tvm: TvmExecutor) -> int:
        return tvm.workers

    late = TvmExecutor(workers=dg.EnvVar.int("WORKERS_OF_A_TEST"))
    monkeypatch.setenv("WORKERS_OF_A_TEST", "3")
    assert dg.materialize([used], resources={"tvm": late}).output_for_node("used") == 3
    monkeypatch.setenv("WORKERS_OF_A_TEST", "0")
    with pytest.raises(dg.DagsterError) as raised:  # before the asset starts
        dg.materialize([used], resources={"tvm": late})
    assert str(raised.value.__cause__) == "workers must be between 1 and 1024, not 0"


def test_workers_share_in_the_folder_named(tmp_path: Path) -> None:
    signed = read(originals.SCALE_ADD).signed
    executor = TvmExecutor(workers=1, cache_dir=str(tmp_path))
    with executor.verifier(seed=0, target="llvm") as verifier:
        assert [v.accepted for _, v in verifier.verify_many([(0, signed, signed)])] == [True]
        assert [p.is_dir() for p in tmp_path.iterdir()] == [True]
    assert list(tmp_path.iterdir()) == []
