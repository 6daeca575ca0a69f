"""Rewording: what a model may change, what it may not, and a service that misbehaves."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from steptp_dagster.reasoning.render import render_text
from steptp_dagster.reasoning.rewording import Endpoint, EndpointError, objections
from steptp_dagster.strategies.registry import strategy
from tests.support.strategy_steps import step_named

STEP = step_named("loop_split", "example")
CHOSEN = strategy("loop_split")
TEXT = render_text(CHOSEN, STEP.site, STEP.explanation)


def kinds(text: str) -> set[str]:
    return {m.kind for m in objections(CHOSEN, STEP, TEXT, text)}


def test_other_words_around_the_same_facts_are_kept() -> None:
    assert kinds(TEXT.replace("The values are", "In short: The values are")) == set()
    assert kinds(TEXT.replace("otherwise", "or else")) == set()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda t: t.replace("extent 6", "extent 7"), "free-number"),
        (lambda t: t.replace("extent 6", "that extent"), "dropped-number"),
        (lambda t: t + " It runs 31.5 times as fast.", "free-number"),
        (lambda t: t + " Mind `Q^{f32,g}_{a}`.", "free-code"),
        (lambda t: t.replace("`loop_split`", "the strategy"), "dropped-code"),
        (lambda t: t.replace("equal bit for bit", "equal up to rounding"), "equality-changed"),
        (lambda t: t.replace("The values are equal bit for bit.", ""), "equality-changed"),
        (lambda t: t + " and so on and on" * 200, "too-long"),
        (lambda t: t + " See statement 9.", "free-statement"),
    ],
)
def test_what_changes_a_fact_is_refused(change: Callable[[str], str], kind: str) -> None:
    assert kind in kinds(change(TEXT))


@pytest.fixture
def served() -> Iterator[Callable[..., Endpoint]]:
    """Starts a service on this machine that answers with a status and a body."""
    servers: list[HTTPServer] = []

    def serve(status: int, body: str) -> Endpoint:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert asked["model"] == "some-model"
                assert self.headers["Authorization"] == "Bearer secret"
                told = body.replace("ECHO", json.dumps(asked["messages"][1]["content"])[1:-1])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(told.encode())

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return Endpoint(f"http://127.0.0.1:{server.server_port}/v1", "some-model", "secret", 5.0)

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_answer_of_a_service(served: Callable[..., Endpoint]) -> None:
    endpoint = served(200, '{"choices": [{"message": {"content": " ECHO "}}]}')
    assert endpoint.ask(TEXT) == TEXT


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, "{}", "401"),
        (200, "no json", "Expecting value"),
        (200, "{}", "no choices"),
        (200, '{"choices": [{"message": {"content": "  "}}]}', "empty"),
    ],
)
def test_a_service_that_gives_no_text(
    served: Callable[..., Endpoint], status: int, body: str, words: str
) -> None:
    with pytest.raises(EndpointError, match=words):
        served(status, body).ask(TEXT)


def test_no_service_and_no_url() -> None:
    with pytest.raises(EndpointError, match="refused"):
        Endpoint("http://127.0.0.1:9", "m", timeout_s=2.0).ask(TEXT)
    with pytest.raises(EndpointError, match="not an http"):
        Endpoint("file:///etc/passwd", "m").ask(TEXT)
