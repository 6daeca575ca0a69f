import numpy as np
import pytest

from resources.tvm_executor import TvmExecutor
from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.rpc import RemoteFailure
from steptp_dagster.verify.zoo import originals


def test_runs_and_judges() -> None:
    executor = TvmExecutor(workers=1, seed=7)
    signed = read(originals.SCALE_ADD).signed
    data = {"A": np.arange(20.0, dtype=np.float32), "C": np.ones(20, np.float32)}
    assert np.array_equal(executor.run(signed, data)["D"], data["A"] * 2.5 - 1)
    with executor.verifier() as verifier:
        [(key, verdict)] = verifier.verify_many([("same", signed, signed)])
    assert key == "same"
    assert verdict.accepted
    assert verdict.equality == "exact"
    assert verdict.seeds == (7,)


def test_a_tracker_that_is_no_address_is_refused_at_the_start() -> None:
    with (
        pytest.raises(RemoteFailure, match="an address is HOST:PORT, not 'nowhere'"),
        TvmExecutor(rpc_tracker="nowhere").verifier(),
    ):
        pass
