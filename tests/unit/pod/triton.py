"""A small HTTP server that answers probes as Triton does."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self


class TritonStandIn:
    """Serves readiness, metrics and one model's generate on one port."""

    def __init__(self) -> None:
        self.ready = True
        self.answer: dict[str, object] = {"text_output": "Paris"}
        self.delay_seconds = 0.0
        self.status = 200
        self.metrics = ""
        self.requests: list[dict[str, object]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def load(self, *, answered: int, pending: int) -> None:
        """Set the metrics."""
        self.metrics = (
            "# HELP nv_inference_request_success Number of successful inference requests\n"
            f'nv_inference_request_success{{model="m",version="1"}} {answered}\n'
            'nv_inference_request_failure{model="m",reason="OTHER",version="1"} 0\n'
            f'nv_inference_pending_request_count{{model="m",version="1"}} {pending}\n'
            'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5\n'
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._send(200, stand_in.metrics)
                else:
                    self._send(200 if stand_in.ready else 400, "")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                stand_in.requests.append(json.loads(body))
                time.sleep(stand_in.delay_seconds)
                self._send(stand_in.status, json.dumps(stand_in.answer))

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

            def _send(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):
                    self.wfile.write(text.encode())

        return Handler


def running() -> Iterator[TritonStandIn]:
    """A stand-in for one test."""
    with TritonStandIn() as stand_in:
        yield stand_in
