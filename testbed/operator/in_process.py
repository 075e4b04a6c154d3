"""The operator in this process, under the service account that it ships with.

It gets a thread and an event loop of its own: when kopf ends, it cancels what else was started in its loop since.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp

from specdec_operator.app import Surroundings, run_operator
from specdec_operator.cluster.login import load_credentials
from testbed.cluster.control_plane import LOOPBACK
from testbed.cluster.ports import free_ports
from testbed.event_loop import PatientLoop
from testbed.operator.errors import OperatorError
from testbed.operator.install import operator_kubeconfig
from testbed.operator.metrics import Requests, read_requests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.triton.proof import Prover
    from testbed.cluster import Cluster

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.1


@dataclass
class InProcessOperator:
    """An operator that runs in a thread of this process.

    Attributes:
        configuration: its configuration.
        kubeconfig: its credentials.
        prover: proves Services in place of the real prover.
    """

    configuration: OperatorConfiguration
    kubeconfig: Path
    prover: Prover
    port: int = field(default_factory=lambda: free_ports(1, address=LOOPBACK)[0])
    _thread: threading.Thread | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _stop: asyncio.Event | None = None
    _failure: Exception | None = None

    @property
    def url(self) -> str:
        """URL of its health and metrics server."""
        return f"http://{LOOPBACK}:{self.port}"

    async def requests(self) -> Requests:
        """Return its requests to the API server so far."""
        return await read_requests(f"{self.url}/metrics")

    async def is_ready(self) -> bool:
        """Whether it leads and watches."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.url}/readyz") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def start(self) -> None:
        """Start it and wait until it is ready.

        Raises:
            OperatorError: it ended, or is not ready in time.
        """
        self._thread = threading.Thread(target=self._run, name="operator", daemon=True)
        self._thread.start()
        async with asyncio.timeout(START_SECONDS):
            while not await self.is_ready():
                if not self._thread.is_alive():
                    raise OperatorError(f"the operator ended while it started: {self._failure}")
                await asyncio.sleep(POLL_SECONDS)

    async def stop(self) -> None:
        """End it in good order.

        Raises:
            OperatorError: it failed before, or does not end.
        """
        if self._thread is None:
            return
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, STOP_SECONDS)
        if self._thread.is_alive():
            raise OperatorError(f"the operator did not stop within {STOP_SECONDS:g} s")
        if self._failure is not None:
            raise OperatorError(f"the operator failed: {self._failure}") from self._failure

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=PatientLoop) as runner:
                runner.run(self._operate())
        except Exception as error:  # noqa: BLE001 - the thread's end: whoever stops it gets to know
            self._failure = error

    async def _operate(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await run_operator(
            Surroundings(
                credentials=load_credentials(environ={}, kubeconfig=self.kubeconfig),
                configuration=self.configuration,
                stop=self._stop,
                host=LOOPBACK,
                port=self.port,
                prover=self.prover,
            )
        )


@asynccontextmanager
async def operator_in_process(
    cluster: Cluster, configuration: OperatorConfiguration, *, prover: Prover, kubeconfig: Path | None = None
) -> AsyncIterator[InProcessOperator]:
    """Run the operator until the body ends; :func:`testbed.operator.install` comes first.

    Args:
        kubeconfig: its credentials; those of the shipped account if None.

    Raises:
        OperatorError: it did not become ready, failed or did not stop.
    """
    if kubeconfig is None:
        kubeconfig = await asyncio.to_thread(operator_kubeconfig, cluster)
    operator = InProcessOperator(configuration, kubeconfig, prover)
    try:
        await operator.start()
        yield operator
    finally:
        await operator.stop()
