from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from testbed.demo.errors import DemoError
from testbed.demo.prompt import ask, logged_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

BLS = {
    "backend": "TensorRTEngine",
    "endpoint": {"modelName": "bls", "requestParameters": {"num_draft_tokens": "4", "stream": "false"}},
}
LLM = {"backend": "LLMAPI", "endpoint": {"modelName": "llm"}}


class Triton(HTTPServer):
    """Answers what it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.answer: dict[str, Any] = {"text_output": "A prompt and its end."}
        self.asked: tuple[str, dict[str, Any]] = ("", {})


class Handler(BaseHTTPRequestHandler):
    server: Triton

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked = (self.path, body)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.answer).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def triton() -> Iterator[Triton]:
    with Triton() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_published_parameters_are_sent_with_the_prompt(triton: Triton) -> None:
    ask("127.0.0.1", BLS, "A prompt", port=triton.server_port)
    path, body = triton.asked
    assert path == "/v2/models/bls/generate"
    assert body == {"text_input": "A prompt", "max_tokens": 64, "num_draft_tokens": 4, "stream": False}


def test_the_prompt_is_no_part_of_the_answer(triton: Triton) -> None:
    assert triton.answer["text_output"].startswith("A prompt")
    assert ask("127.0.0.1", BLS, "A prompt", port=triton.server_port).text == "and its end."


def test_counts_that_come_as_text_are_read(triton: Triton) -> None:
    triton.answer = {"text_output": "x", "total_draft_tokens": "24.0", "total_accepted_draft_tokens": "18"}
    answer = ask("127.0.0.1", LLM, "A prompt", port=triton.server_port)
    assert (answer.drafted, answer.accepted) == (24, 18)


def test_a_refusal_is_an_error_with_the_servers_words(triton: Triton) -> None:
    triton.status, triton.answer = 400, {"error": "stream is missing"}
    with pytest.raises(DemoError, match=r"400.*stream is missing"):
        ask("127.0.0.1", BLS, "A prompt", port=triton.server_port)


def test_a_closed_port_is_an_error_with_the_url() -> None:
    with pytest.raises(DemoError, match=r"http://127\.0\.0\.1:1/v2/models/llm/generate did not answer"):
        ask("127.0.0.1", LLM, "A prompt", port=1)


def test_the_simulators_counts_are_read_per_model() -> None:
    log = """[simulator] tensorrt_llm: drafted=0 accepted=0
I1121 other lines
[simulator] tensorrt_llm_bls: target_calls=6 drafted=24 accepted=20
"""
    assert logged_counts(log, model="tensorrt_llm_bls") == [(24, 20)]
    assert logged_counts(log, model="tensorrt_llm") == [(0, 0)]
