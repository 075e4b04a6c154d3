"""The front end's side of the server: readiness, models, answers and metrics over KServe's HTTP."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from testbed.runtime.simulator.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_POLL_SECONDS: Final = 0.3
_GLANCE_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 600.0
_OWN_BACKENDS: Final = {"vllm": "vllm", "tensorrtllm": "tensorrtllm"}


@dataclass(frozen=True)
class Triton:
    """A server on this machine."""

    http_port: int
    metrics_port: int

    def wait_until_ready(self, alive: Callable[[], bool]) -> None:
        """Wait for the server.

        Raises:
            InterruptedError: `alive` said no.
        """
        while alive():
            if self.is_ready():
                return
            time.sleep(_POLL_SECONDS)
        raise InterruptedError

    def is_ready(self) -> bool:
        """Whether the server and all its models are ready."""
        try:
            with _get(f"{self._url}/v2/health/ready"):
                return True
        except OSError:
            return False

    def models(self) -> list[str]:
        """Return the names of all models that are ready."""
        found = self._post("/v2/repository/index", {"ready": True})
        return [str(each["name"]) for each in found]

    def backend_of(self, model: str) -> str:
        """Return what kind of requests a model takes: those of `vllm`, or else those of TensorRT-LLM's ensemble."""
        with _get(f"{self._url}/v2/models/{model}/config") as answered:
            return _OWN_BACKENDS.get(str(json.load(answered).get("backend")), "tensorrtllm")

    def generate(self, model: str, tensors: dict[str, Any]) -> dict[str, Any]:
        """Ask a model once.

        Raises:
            RequestError: the model answered with an error.
        """
        return dict(self._post(f"/v2/models/{model}/generate", tensors))

    def generate_stream(self, model: str, tensors: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Ask a model for pieces; raises what `generate` raises."""
        with self._open(f"/v2/models/{model}/generate_stream", tensors) as answered:
            for line in answered:
                text = line.decode().strip()
                if text.startswith("data: "):
                    yield _checked(json.loads(text.removeprefix("data: ")))

    def metrics(self) -> bytes:
        """Return the server's metrics as they are."""
        with _get(f"http://127.0.0.1:{self.metrics_port}/metrics") as answered:
            return bytes(answered.read())

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        with self._open(path, body) as answered:
            return _checked(json.load(answered))

    def _open(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{self._url}{path}", data=json.dumps(body).encode(), method="POST")  # noqa: S310 - the URL is ours
        try:
            return urllib.request.urlopen(request, timeout=_ANSWER_SECONDS)  # noqa: S310 - the URL is ours
        except urllib.error.HTTPError as refused:
            with refused:
                raise RequestError(refused.read().decode()) from refused
        except OSError as problem:
            raise RequestError(f"the server does not answer: {problem}") from problem


def _get(url: str) -> Any:
    return urllib.request.urlopen(url, timeout=_GLANCE_SECONDS)  # noqa: S310 - the URL is ours


def _checked(answered: Any) -> Any:
    if isinstance(answered, dict) and "error" in answered:
        raise RequestError(str(answered["error"]))
    return answered
