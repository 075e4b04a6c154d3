"""The way to a Service that this machine does not reach: `kubectl port-forward`."""

from __future__ import annotations

import re
import select
import subprocess
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from specdec_operator.resources.labels import serving_name
from testbed.cluster.control_plane import LOOPBACK
from testbed.demo.errors import DemoError
from testbed.demo.prompt import HTTP_PORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.cluster import ExistingCluster
    from testbed.demo.answers import Route
    from testbed.demo.models import Json

START_SECONDS = 20.0
LISTENING = re.compile(r"Forwarding from [\d.]+:(\d+) ->")


def through_port_forward(cluster: ExistingCluster, *, namespace: str) -> Route:
    """Return the way through a port of this machine that kubectl forwards to the Service."""

    @contextmanager
    def route(model: Json) -> Iterator[tuple[str, int]]:
        service = f"service/{serving_name(model['metadata']['name'])}"
        command = cluster.kubectl_command(
            "port-forward", f"--namespace={namespace}", f"--address={LOOPBACK}", service, f":{HTTP_PORT}"
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield LOOPBACK, _listening_port(process, service=service)
            finally:
                process.kill()

    return route


def _listening_port(process: subprocess.Popen[str], *, service: str) -> int:
    output = _pipe(process.stdout)
    said = output.readline() if select.select([output], [], [], START_SECONDS)[0] else ""
    if found := LISTENING.match(said):
        return int(found[1])
    process.kill()
    raise DemoError(f"kubectl port-forward {service} did not begin: {_pipe(process.stderr).read().strip() or said}")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise DemoError("kubectl port-forward was started without pipes")
    return pipe
