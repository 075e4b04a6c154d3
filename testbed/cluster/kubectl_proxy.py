"""Reads from a cluster that the user already has, through one `kubectl proxy` in place of a kubectl for each."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from testbed.cluster.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testbed.cluster.existing import ExistingCluster

START_SECONDS = 20.0
POLL_SECONDS = 0.05
REQUEST_SECONDS = 30.0


@dataclass(frozen=True)
class ProxyReader:
    """Reads objects of a cluster through the Unix socket of a `kubectl proxy`.

    Attributes:
        path: the socket's.
    """

    path: Path

    def get(self, path: str) -> dict[str, Any]:
        """Return the object, or the list, at a path of the API server.

        Raises:
            CommandError: the proxy is not there, or the API server refused.
        """
        connection = _Connection(self.path)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            raise CommandError(f"kubectl proxy: {path}: {error}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise CommandError(f"kubectl proxy: {path}: {answer.status} {content.decode(errors='replace')}")
        found: dict[str, Any] = json.loads(content)
        return found


@contextmanager
def reading_through_proxy(cluster: ExistingCluster) -> Iterator[ExistingCluster]:
    """The cluster with a `kubectl proxy` for its reads, which ends with the body.

    Only who may enter the cluster's folder reaches it.

    Raises:
        CommandError: the proxy did not start; the message holds what it said.
    """
    path, log = cluster.directory / "kubectl-proxy.sock", cluster.directory / "kubectl-proxy.log"
    command = cluster.kubectl_command("proxy", f"--unix-socket={path}")
    with log.open("wb") as output:
        # In a session of its own: what a Ctrl-C leaves to do reads too.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    with process:
        try:
            _wait(process, path, log=log)
            yield replace(cluster, reader=ProxyReader(path))
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], path: Path, *, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _listens(path):
        if process.poll() is not None or time.monotonic() > deadline:
            raise CommandError(f"kubectl proxy did not start: {log.read_text(errors='replace').strip() or 'no word'}")
        time.sleep(POLL_SECONDS)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


class _Connection(HTTPConnection):
    def __init__(self, path: Path) -> None:
        # The proxy takes requests to no other host.
        super().__init__("localhost", timeout=REQUEST_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(REQUEST_SECONDS)
        self.sock.connect(str(self._path))
