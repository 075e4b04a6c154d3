"""The API server's wire, as far as the testbed itself needs it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.cluster.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REQUEST_SECONDS = 10.0

Json = dict[str, Any]


@dataclass(frozen=True)
class ApiClient:
    """Requests as one user.

    Attributes:
        server: URL of the API server.
        ca_file: PEM file of the authority that signed its certificate.
        token: bearer token of the user.
    """

    server: str
    ca_file: Path
    token: str

    def get(self, path: str) -> Json:
        """Return the object at a path."""
        return self._json("GET", path)

    def create(self, path: str, body: Json, *, content_type: str = "application/json") -> Json:
        """Create an object in the collection at a path."""
        return self._json("POST", path, body=body, content_type=content_type)

    def patch(self, path: str, operations: Sequence[Json]) -> Json:
        """Apply JSON patch operations to the object at a path."""
        return self._json("PATCH", path, body=list(operations), content_type="application/json-patch+json")

    def ready(self) -> bool:
        """Whether the API server answers and says that it is ready."""
        try:
            return self._send("GET", "/readyz") == b"ok"
        except ApiError:
            return False

    def exists(self, path: str) -> bool:
        """Whether there is an object at a path."""
        try:
            self._send("GET", path)
        except ApiError as error:
            if error.status in {0, 404}:
                return False
            raise
        return True

    def _json(self, method: str, path: str, *, body: object = None, content_type: str = "application/json") -> Json:
        answer: Json = json.loads(self._send(method, path, body=body, content_type=content_type))
        return answer

    def _send(self, method: str, path: str, *, body: object = None, content_type: str = "application/json") -> bytes:
        request = urllib.request.Request(  # noqa: S310 - the server's URL is our own and https
            f"{self.server}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type},
            method=method,
        )
        try:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
            with urllib.request.build_opener(*handlers).open(request, timeout=REQUEST_SECONDS) as response:
                content: bytes = response.read()
                return content
        except urllib.error.HTTPError as error:
            with error:
                detail = error.read().decode(errors="replace")
            raise ApiError(f"{method} {path}: {error.code} {detail}", status=error.code) from error
        except OSError as error:
            raise ApiError(f"{method} {path}: {error}", status=0) from error
