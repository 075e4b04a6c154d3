"""The API server's wire, as far as the testbed itself needs it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import urllib3

from testbed.cluster.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REQUEST_SECONDS = 10.0
# One for each thread that asks at the same time; a TLS handshake costs either side more than most requests.
CONNECTIONS = 4
# A request that changes nothing is sent again when the connection broke, was refused or gave no answer in time: a
# server under load does all three, and one that starts again is back within seconds.
RETRIES = urllib3.Retry(
    total=5, connect=5, read=5, redirect=0, status=0, other=0, allowed_methods=["GET"], backoff_factor=0.1
)
UNREPEATED = urllib3.Retry(total=0, connect=0, read=0, redirect=0, status=0, other=0)
"""For writes, which may have been done all the same, and for whoever asks whether anybody is there."""

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

    def apply(self, path: str, body: Json, *, field_manager: str, dry_run: bool = False) -> Json:
        """Apply an object server-side to a path, taking over what others own; unknown and repeated fields are errors.

        Args:
            dry_run: Whether the API server only says what it would make of it.
        """
        query = {"fieldManager": field_manager, "fieldValidation": "Strict", "force": "true"}
        query |= {"dryRun": "All"} if dry_run else {}
        # JSON is YAML: the server takes it under the one content type that every supported release knows.
        content_type = "application/apply-patch+yaml"
        return self._json("PATCH", f"{path}?{urlencode(query)}", body=body, content_type=content_type)

    def ready(self) -> bool:
        """Whether the API server answers and says that it is ready."""
        try:
            return self._send("GET", "/readyz", retries=UNREPEATED) == b"ok"
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

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        retries: urllib3.Retry = RETRIES,
    ) -> bytes:
        try:
            response = self._connections.request(
                method,
                f"{self.server}{path}",
                body=None if body is None else json.dumps(body),
                headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type},
                timeout=REQUEST_SECONDS,
                retries=retries if method == "GET" else UNREPEATED,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiError(f"{method} {path}: {error}", status=0) from error
        if response.status >= 300:
            said = response.data.decode(errors="replace")
            raise ApiError(f"{method} {path}: {response.status} {said}", status=response.status)
        return response.data

    @cached_property
    def _connections(self) -> urllib3.PoolManager:
        return urllib3.PoolManager(maxsize=CONNECTIONS, ca_certs=str(self.ca_file))
