from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from specdec_operator.installation import NotInstalled, check, main, wait

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATORS_METRICS = 'leader_election_master_status{name="specdec-operator"} 1.0\n'
WAITING = 'rest_client_requests_total{code="200",resource="leases",verb="get"} 3.0\n'


class Operator(ThreadingHTTPServer):
    """Answers as an operator's health and metrics server does."""

    ready = (200, "ok")
    metrics = OPERATORS_METRICS
    asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Operator)
        self.server.asked += 1
        status, text = self.server.ready if self.path == "/readyz" else (200, self.server.metrics)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def operator() -> Iterator[Operator]:
    with Operator(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("metrics", [OPERATORS_METRICS, WAITING], ids=["leads", "waits for the lease"])
def test_an_operator_that_is_ready_is_installed(operator: Operator, metrics: str) -> None:
    operator.metrics = metrics
    assert main([operator.url]) == 0


def test_what_the_operator_still_waits_for_is_said(operator: Operator) -> None:
    operator.ready = (503, "the API server does not serve speculativemodels.specdec.dev")
    with pytest.raises(NotInstalled, match=r"does not serve speculativemodels\.specdec\.dev"):
        check(operator.url)


def test_another_server_behind_the_service_is_no_operator(operator: Operator) -> None:
    operator.metrics = "go_goroutines 7\n"
    with pytest.raises(NotInstalled, match="not the operator's metrics"):
        check(operator.url)


def test_an_address_at_which_nobody_answers_is_said() -> None:
    with pytest.raises(NotInstalled, match="are the operator's pods running"):
        check("http://127.0.0.1:1")


def test_an_operator_that_is_not_ready_within_the_time_fails_the_test_with_its_words(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    operator.ready = (503, "starting")
    assert main([operator.url, "--seconds=0"]) == 1
    assert "starting" in capsys.readouterr().err


def test_an_operator_that_becomes_ready_in_time_is_installed(operator: Operator) -> None:
    operator.ready = (503, "starting")

    def become_ready(_seconds: float) -> None:
        operator.ready = (200, "ok")

    wait(operator.url, seconds=60, sleep=become_ready)
    assert operator.asked == 3
