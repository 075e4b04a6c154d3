"""The routes of the OpenAI front end."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.openai_requests import answer, chunk, has_chat_template, parse_request

if TYPE_CHECKING:
    from testbed.runtime.simulator.openai_arguments import FrontEndArguments
    from testbed.runtime.simulator.openai_requests import OpenAIRequest
    from testbed.runtime.simulator.openai_triton import Triton


class OpenAIServer:
    """Serves OpenAI's routes in front of a server."""

    def __init__(self, arguments: FrontEndArguments, triton: Triton) -> None:
        """Take the command line and the server."""
        self.arguments = arguments
        self.triton = triton
        self.template = bool(arguments.tokenizer) and has_chat_template(Path(arguments.tokenizer or ""))

    def serve(self) -> None:
        """Listen and answer for ever."""
        routes = type("_Routes", (_Handler,), {"front_end": self})
        with ThreadingHTTPServer((self.arguments.host, self.arguments.port), routes) as server:
            server.daemon_threads = True
            server.serve_forever()

    def backend_of(self, model: str) -> str:
        """Return `vllm` or `tensorrtllm`, as the command line says or the model's configuration."""
        return self.arguments.backend or self.triton.backend_of(model)


class _Handler(BaseHTTPRequestHandler):
    front_end: ClassVar[OpenAIServer]

    def do_GET(self) -> None:
        triton = self.front_end.triton
        match self.path:
            case "/health/ready":
                self._reply(HTTPStatus.OK if triton.is_ready() else HTTPStatus.SERVICE_UNAVAILABLE, b"")
            case "/metrics":
                self._reply(HTTPStatus.OK, triton.metrics(), kind="text/plain")
            case "/v1/models":
                models = [
                    {"id": name, "object": "model", "owned_by": "Triton Inference Server"} for name in triton.models()
                ]
                self._json(HTTPStatus.OK, {"object": "list", "data": models})
            case _:
                self._refuse(HTTPStatus.NOT_FOUND, f"no such route: {self.path}")

    def do_POST(self) -> None:
        chats = {"/v1/completions": False, "/v1/chat/completions": True}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path not in chats:
            self._refuse(HTTPStatus.NOT_FOUND, f"no such route: {self.path}")
            return
        front_end = self.front_end
        try:
            request = parse_request(
                body, chat=chats[self.path], arguments=front_end.arguments, template=front_end.template
            )
            if request.model not in front_end.triton.models():
                self._refuse(HTTPStatus.NOT_FOUND, f"Unknown model: {request.model}")
                return
            self._complete(request)
        except RequestError as problem:
            self._refuse(HTTPStatus.BAD_REQUEST, str(problem))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: Triton's log is enough."""

    def _complete(self, request: OpenAIRequest) -> None:
        triton, tensors = self.front_end.triton, request.tensors(self.front_end.backend_of(request.model))
        if not request.stream:
            self._json(HTTPStatus.OK, answer(request, triton.generate(request.model, tensors)))
            return
        pieces = triton.generate_stream(request.model, tensors)
        first = next(pieces)  # an error comes before the headers are sent
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in (first, *pieces):
            self._event(json.dumps(chunk(request, piece)))
        self._event("[DONE]")

    def _event(self, text: str) -> None:
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._json(status, {"detail": message})

    def _json(self, status: HTTPStatus, document: dict[str, Any]) -> None:
        self._reply(status, json.dumps(document).encode(), kind="application/json")

    def _reply(self, status: HTTPStatus, body: bytes, *, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
