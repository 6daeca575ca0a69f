"""A built project with the UI open, and a page of a headless Chromium."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Server

ROOT = Path(__file__).parents[2]
#: A project folder of an earlier run (``data`` and ``.dagster`` in it), to save the build.
PROJECT_VARIABLE = "STEPTP_UI_PROJECT"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str:
    """The path of Chromium; the test is skipped with words where there is none."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip("no browser: install Chromium (Debian: apt-get install chromium) for UI tests")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    """The driver of the browser; skipped with words where it is not installed."""
    module = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install -c constraints.txt -e '.[ui]'"
    )
    browser()
    with module.sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def project(playwright: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny data set and the history of its build."""
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named)
    folder = tmp_path_factory.mktemp("project")
    command = "from steptp_dagster.cli.main import main; main()"
    arguments = ["build", "--profile", "tiny", "--data", str(folder / "data")]
    subprocess.run(
        [sys.executable, "-c", command, *arguments], cwd=ROOT, env=environment(folder), check=True
    )
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Ours, with the data and the Dagster home of the folder."""
    home = folder / ".dagster"
    home.mkdir(exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copy(ROOT / ".dagster" / "dagster.yaml", home)
    return os.environ | {
        "DAGSTER_HOME": str(home),
        "STEPTP_DATA": str(folder / "data"),
        "STEPTP_PROFILE": os.environ.get("STEPTP_PROFILE", "tiny"),
    }


@pytest.fixture(scope="session")
def server(project: Path) -> Iterator[Server]:
    """``dagster dev`` as ``make dev`` starts it, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    dev = ["-m", "dagster", "dev", "--host", "127.0.0.1", "--port", str(port)]
    log = (project / "dev.log").open("w")
    running = subprocess.Popen(
        [sys.executable, *dev],
        cwd=ROOT,
        env=environment(project),
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    found = Server(f"http://127.0.0.1:{port}")
    try:
        found.wait(
            "the code location", "{assetNodes{assetKey{path}}}", lambda t: len(t["assetNodes"]) > 8
        )
        yield found
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        log.close()


@pytest.fixture(scope="session")
def window(playwright: Any) -> Iterator[Any]:
    """One browser for all tests."""
    opened = playwright.chromium.launch(
        executable_path=browser(), args=["--no-sandbox", "--disable-dev-shm-usage"]
    )
    yield opened
    opened.close()


@pytest.fixture
def page(window: Any, server: Server) -> Iterator[Any]:
    """A page; hosts other than ours are not reached, and asking for one is a failure."""
    opened = window.new_page(viewport={"width": 1360, "height": 820}, base_url=server.url)
    opened.set_default_timeout(60_000)
    foreign: list[str] = []
    errors: list[str] = []
    opened.on(
        "request",
        lambda r: (
            foreign.append(r.url) if r.url.startswith("http") and server.url not in r.url else None
        ),
    )
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    opened.close()
    assert foreign == []
    assert errors == []
