"""`python -m specdec_operator` as a process of its own, to be stopped, killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp
import yaml

from testbed.cluster.control_plane import LOOPBACK
from testbed.cluster.ports import free_ports
from testbed.cluster.processes import OWNER_VARIABLE
from testbed.operator.chart import ROOT
from testbed.operator.errors import OperatorError
from testbed.operator.install import operator_kubeconfig
from testbed.operator.metrics import Requests, read_gauge, read_requests

if TYPE_CHECKING:
    from pathlib import Path

    from specdec_operator.api.configuration import OperatorConfiguration
    from testbed.cluster import ClusterAccess

# A killed leader's Lease must end first.
START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.1


@dataclass
class OperatorProcess:
    """The operator's process under the service account that it ships with.

    Attributes:
        cluster: where it works; :func:`testbed.operator.install` comes first.
        configuration: its configuration file's content.
        directory: for its configuration and log.
        python: the interpreter.
        source: the folder that holds its package.
    """

    cluster: ClusterAccess
    configuration: OperatorConfiguration
    directory: Path
    python: str = sys.executable
    source: Path = ROOT / "operator"
    port: int = field(default_factory=lambda: free_ports(1, address=LOOPBACK)[0])
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """The file that holds what it logged, of all its lives."""
        return self.directory / "operator.log"

    @property
    def url(self) -> str:
        """URL of its health and metrics server."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def exit_code(self) -> int | None:
        """With what its last life ended; None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it; it is not ready yet."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "configuration.yaml"
        document = self.configuration.model_dump(by_alias=True, exclude_none=True, mode="json")
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
        argv = [
            *(self.python, "-m", "specdec_operator", f"--config={config}"),
            f"--kubeconfig={operator_kubeconfig(self.cluster)}",
            *(f"--host={LOOPBACK}", f"--port={self.port}"),
        ]
        # The mark by which a sweep finds all that belongs to a dead cluster.
        mark = {OWNER_VARIABLE: str(self.cluster.directory)}
        environment = {**os.environ, **mark, "PYTHONPATH": str(self.source)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                argv, stdout=log, stderr=log, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
            )

    async def ready(self, *, seconds: float = START_SECONDS) -> None:
        """Wait until it leads and watches.

        Raises:
            OperatorError: it ended, or is not ready in time.
        """
        deadline = time.monotonic() + seconds
        while not await self._answers():
            if self._process is None or self._process.poll() is not None:
                raise OperatorError(f"the operator is not running; its log is {self.log}")
            if time.monotonic() > deadline:
                raise OperatorError(f"the operator is not ready after {seconds:g} s; its log is {self.log}")
            await asyncio.sleep(POLL_SECONDS)

    async def requests(self) -> Requests:
        """Return its requests to the API server since it started."""
        return await read_requests(f"{self.url}/metrics")

    async def gauge(self, metric: str, **labels: str) -> float | None:
        """Return what one of its gauges says for these labels; None if it says nothing."""
        return await read_gauge(f"{self.url}/metrics", metric, labels)

    def kill(self) -> None:
        """End it without the chance to do anything (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int | None:
        """End it in good order (SIGTERM).

        Returns:
            Its exit code; None if it never started.

        Raises:
            OperatorError: it did not end in time, and was killed.
        """
        if self._process is None:
            return None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise OperatorError(f"the operator did not end after SIGTERM; its log is {self.log}") from error

    async def _answers(self) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.url}/readyz") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False
