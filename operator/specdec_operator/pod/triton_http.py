"""The few HTTP requests that a probe sends to the Triton server of its own container."""

import http.client
import json
from collections.abc import Mapping
from typing import Any

_HOST = "127.0.0.1"


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
    connection = http.client.HTTPConnection(_HOST, port, timeout=timeout_seconds)
    try:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise RequestFailed(f"{method} {path}: {type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise RequestFailed(f"{method} {path}: {response.status} {text[:300]}")
    return text
