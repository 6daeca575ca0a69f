"""Verdicts from a server of TVM's RPC: the same as here, alone and behind a tracker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from json import dumps, loads
from typing import Final

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.verify import reasons
from steptp_dagster.verify.batch import verify_batch
from steptp_dagster.verify.pool import Verifier
from steptp_dagster.verify.record import Verdict
from steptp_dagster.verify.rpc import RemoteFailure, RemoteVerifier, verdict_of
from steptp_dagster.verify.verdict import verify

needs_rpc = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("tornado", "psutil", "cloudpickle")),
    reason="the extra `rpc` is not installed",
)

SUM = """# input A f32[6,8]
# output D f32[6]
B^{6}_{bx=0}L^{8}_{a=0}[D^{f32,g}_{bx}=D^{f32,g}_{bx}+A^{f32,g}_{bx,a};];
"""
ORIGINAL = read(SUM).signed
BODIES: Final = {
    "same": "B^{3}_{bx=0}L^{2}_{c=0}L^{8}_{a=0}"
    "[D^{f32,g}_{bx*2+c}=D^{f32,g}_{bx*2+c}+A^{f32,g}_{bx*2+c,a};];",
    "wrong": "B^{6}_{bx=0}L^{7}_{a=0}[D^{f32,g}_{bx}=D^{f32,g}_{bx}+A^{f32,g}_{bx,a};];",
    "invalid": "B^{6}_{bx=0}L^{9}_{a=0}[D^{f32,g}_{bx}=D^{f32,g}_{bx}+A^{f32,g}_{bx,a};];",
}
CANDIDATES = {name: read(text, inherit=ORIGINAL.signature).signed for name, text in BODIES.items()}
PAIRS = [(name, ORIGINAL, candidate) for name, candidate in CANDIDATES.items()]


@pytest.mark.parametrize("name", sorted(CANDIDATES))
def test_verdicts_travel_as_json(name: str) -> None:
    verdict = verify(ORIGINAL, CANDIDATES[name])
    assert verdict_of(loads(dumps(verdict.to_json()))) == verdict


def test_infinite_figures_travel() -> None:
    verdict = verify(ORIGINAL, CANDIDATES["same"])
    far = Verdict(False, "rejected", False, reasons.MATHEMATICS, margins=(("zeros", float("inf")),))
    told = loads(dumps({**far.to_json(), "families": verdict.to_json()["families"]}))
    assert verdict_of(told).margins == (("zeros", float("inf")),)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:", ":9190"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(RemoteFailure, match="HOST:PORT"):
        RemoteVerifier(address)


def placeless(verdict: Verdict) -> Verdict:
    """Positions in texts do not travel."""
    return replace(verdict, static=tuple(replace(v, pos=-1) for v in verdict.static))


@contextmanager
def started(module: str, *arguments: str, word: str) -> Iterator[str]:
    """A process of the command line in a group of its own, from its first word on; then ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = next((told for told in process.stdout if word in told), "")
        assert line, f"{module} did not start"
        yield line
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@needs_rpc
@pytest.mark.slow
def test_a_server_says_what_is_said_here() -> None:
    local = [placeless(v) for v in verify_batch([(o, c) for _, o, c in PAIRS])]
    command = ("--port", "9390", "--port-end", "9420")
    with started("steptp_dagster.verify.rpc_server", *command, word="serving at") as line:
        address = line.split()[2]
        with RemoteVerifier(address, tracker=False) as verifier:
            found = dict(verifier.verify_many(PAIRS))
            again = dict(verifier.verify_many(PAIRS))
    assert [found[name] for name, _, _ in PAIRS] == local
    assert found == again


@needs_rpc
@pytest.mark.slow
def test_a_tracker_hands_out_servers() -> None:
    tracker = ("--host", "127.0.0.1", "--port", "9490", "--port-end", "9499")
    with started("tvm.exec.rpc_tracker", *tracker, word="bind to") as line:
        place = f"127.0.0.1:{line.rsplit(':', 1)[1].strip()}"
        command = ("--port", "9500", "--port-end", "9530", "--tracker", place, "--key", "lab")
        server = "steptp_dagster.verify.rpc_server"
        with (
            started(server, *command, word="serving at"),
            RemoteVerifier(place, "lab") as remote,
            Verifier(1) as local,
        ):
            here = {name: placeless(v) for name, v in local.verify_many(PAIRS)}
            assert dict(remote.verify_many(PAIRS)) == here


@needs_rpc
def test_nobody_at_the_address_is_said_in_words() -> None:
    with pytest.raises(RemoteFailure, match="does not answer"):
        RemoteVerifier("127.0.0.1:9", tracker=False)
