"""The other end of ``rpc``: ``python -m steptp_dagster.verify.rpc_server --key KEY ...``.

TVM's own RPC server with one function more, which judges pairs in worker processes as
``pool.Verifier`` does, so that neither a crash nor an endless loop of a pair costs the session.
Whoever reaches the port of an RPC server can run code on its machine: it belongs into a network
that only trusted people reach.
"""

import argparse
import sys
from json import dumps, loads
from multiprocessing.util import Finalize
from typing import Final

from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.pool import Verifier
from steptp_dagster.verify.worker import quieten_tvm

#: The function's name on the server.
FUNCTION: Final = "steptp.verify"

_pools: dict[str, Verifier] = {}


def judge(request: str) -> str:
    """Verdicts for pairs: a request of ``rpc``, the answer as JSON. Pools live with the session."""
    asked = loads(request)
    key = dumps(asked["settings"], sort_keys=True)
    if key not in _pools:
        _pools[key] = pool = Verifier(1, **asked["settings"])
        Finalize(None, pool.close, exitpriority=100)
    programs = []
    for number, (original, candidate) in enumerate(asked["pairs"]):
        first = read(original).signed
        programs.append((number, first, read(candidate).signed))
    verdicts = [v for _, v in _pools[key].verify_many(programs, target=asked["target"])]
    return dumps([verdict.to_json() for verdict in verdicts])


def register() -> None:
    """Make the function known to TVM, in the process that serves."""
    quieten_tvm()
    import tvm_ffi

    tvm_ffi.register_global_func(FUNCTION, judge, override=True)


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="Judge pairs for other machines.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--port-end", type=int, default=9199, help="first port not to try")
    parser.add_argument("--tracker", default="", help="HOST:PORT of a tracker to report to")
    parser.add_argument("--key", default="steptp", help="what clients ask the tracker for")
    chosen = parser.parse_args()
    quieten_tvm()
    from tvm import rpc

    host, _, port = chosen.tracker.rpartition(":")
    server = rpc.Server(
        chosen.host,
        chosen.port,
        chosen.port_end,
        tracker_addr=(host, int(port)) if host else None,
        key=chosen.key,
        server_init_callback=register,
    )
    sys.stdout.write(f"serving at {chosen.host}:{server.port} for {chosen.key}\n")
    sys.stdout.flush()
    try:
        server.proc.join()
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
