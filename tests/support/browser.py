"""The web server of the UI as tests see it, and screenshots."""

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Folder for screenshots; none are kept without it.
SHOTS_VARIABLE = "STEPTP_UI_SHOTS"
SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Server:
    """The web server of the UI."""

    url: str

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data of a GraphQL answer."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"{self.url}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            told = json.load(answer)
        assert "errors" not in told, told["errors"]
        found: dict[str, Any] = told["data"]
        return found

    def wait(
        self,
        what: str,
        query: str,
        holds: Callable[[dict[str, Any]], bool],
        seconds: float = SECONDS,
    ) -> dict[str, Any]:
        """Ask until the answer is as wanted."""
        deadline = time.monotonic() + seconds
        last: object = None
        while time.monotonic() < deadline:
            try:
                last = told = self.ask(query)
                if holds(told):
                    return told
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                last = error
            time.sleep(1)
        raise AssertionError(f"{what}: not within {SECONDS:.0f} s; last: {last}")


def shot(page: Any, name: str) -> None:
    """Keep a screenshot, where they are asked for."""
    if folder := os.environ.get(SHOTS_VARIABLE):
        page.wait_for_timeout(1500)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))
