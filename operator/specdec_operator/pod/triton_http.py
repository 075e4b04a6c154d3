"""The few HTTP requests that a probe sends to the Triton server of its own container.

A probe starts every few seconds: to import `http.client`, with `ssl` and `email`, would take longer than all the rest.
"""

import json
import re
import socket
from collections.abc import Mapping
from typing import Any

_HOST = "127.0.0.1"
_PIECE_BYTES = 64 * 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})\b")
_CONTENT_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_CHUNKED = re.compile(rb"^transfer-encoding: *chunked", re.IGNORECASE | re.MULTILINE)


class RequestFailed(Exception):  # noqa: N818 - a probe's answer, not a bug
    """The server didn't answer, or not with what was asked for."""


def get(port: int, path: str, *, timeout_seconds: float) -> str:
    """The body of a GET that ends with 200.

    Raises:
        RequestFailed: it doesn't.
    """
    return _request(port, "GET", path, body=None, timeout_seconds=timeout_seconds)


def generate(port: int, model: str, *, request: Mapping[str, Any], output: str, timeout_seconds: float) -> str:
    """The text that a model generates.

    Raises:
        RequestFailed: no answer in time, an error, or an answer without text.
    """
    path = f"/v2/models/{model}/generate"
    answer = _request(port, "POST", path, body=json.dumps(request), timeout_seconds=timeout_seconds)
    try:
        text = json.loads(answer)[output]
    except (ValueError, KeyError, TypeError) as error:
        raise RequestFailed(f"{path} answered without {output}: {answer[:200]}") from error
    if isinstance(text, list):
        text = "".join(str(part) for part in text)
    if not isinstance(text, str) or not text.strip():
        raise RequestFailed(f"{path} answered with an empty {output}")
    return text


def _request(port: int, method: str, path: str, *, body: str | None, timeout_seconds: float) -> str:
    try:
        answer = _exchange(port, _message(method, path, body), timeout_seconds=timeout_seconds)
    except OSError as error:
        raise RequestFailed(f"{method} {path}: {type(error).__name__}: {error}") from error
    head, _, content = answer.partition(b"\r\n\r\n")
    status, whole = _STATUS_LINE.match(head), _body(head, content)
    if status is None or whole is None:
        raise RequestFailed(f"{method} {path}: no whole HTTP answer: {answer[:80]!r}")
    text = whole.decode("utf-8", errors="replace")
    if status[1] != b"200":
        raise RequestFailed(f"{method} {path}: {status[1].decode()} {text[:300]}")
    return text


def _message(method: str, path: str, body: str | None) -> bytes:
    content = (body or "").encode()
    sent = [] if body is None else ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    lines = [f"{method} {path} HTTP/1.1", f"Host: {_HOST}", "Connection: close", *sent]
    return "\r\n".join([*lines, "", ""]).encode() + content


def _body(head: bytes, content: bytes) -> bytes | None:
    """An answer's body; None if it was cut off."""
    if _CHUNKED.search(head):
        return _joined(content)
    length = _CONTENT_LENGTH.search(head)
    return None if length is not None and len(content) < int(length[1]) else content


def _joined(chunks: bytes) -> bytes | None:
    body = b""
    while True:
        size, _, chunks = chunks.partition(b"\r\n")
        try:
            length = int(size.partition(b";")[0], 16)
        except ValueError:
            return None
        if length == 0:
            return body
        body, chunks = body + chunks[:length], chunks[length + 2 :]


def _exchange(port: int, message: bytes, *, timeout_seconds: float) -> bytes:
    with socket.create_connection((_HOST, port), timeout=timeout_seconds) as connection:
        connection.sendall(message)
        pieces: list[bytes] = []
        while piece := connection.recv(_PIECE_BYTES):
            pieces.append(piece)
    return b"".join(pieces)
