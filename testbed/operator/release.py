"""The operator as its users run it: a pod of its own image, installed by its own chart with real Helm."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from testbed.operator.chart import CHART, NAME, NAMESPACE
from testbed.operator.errors import OperatorError
from testbed.operator.log_text import log_lines
from testbed.operator.pods import OperatorPods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from specdec_operator.api.configuration import OperatorConfiguration
    from testbed.cluster import ClusterAccess
    from testbed.cluster.helm import Helm
    from testbed.cluster.node import RunningNode
    from testbed.operator.metrics import Requests

Json = dict[str, Any]
RESTRICTED: Final = {"pod-security.kubernetes.io/enforce": "restricted"}
# A killed leader's Lease must end first, and a loaded machine is slow to start a container.
START_SECONDS: Final = 120.0
HELM_SECONDS: Final = 180
POLL_SECONDS: Final = 0.25


@dataclass
class OperatorRelease:
    """A Helm release of the operator's chart.

    Attributes:
        cluster: where it is installed; its nodes run pods, and hold the image.
        helm: works on that cluster.
        image: the operator's image, `REPOSITORY:TAG`; it is never pulled.
        configuration: the operator's; `instance` follows from the release's name.
        directory: for the values.
        values: further values of the chart.
        node: the node that runs the pods, for those who kill the operator.
        name: of the release; one that holds the chart's name is the name of its objects too.
        pods: its pods.
    """

    cluster: ClusterAccess
    helm: Helm
    image: str
    configuration: OperatorConfiguration
    directory: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    node: RunningNode | None = None
    name: str = NAME
    pods: OperatorPods = field(init=False)

    def __post_init__(self) -> None:
        self.pods = OperatorPods(self.cluster, self.name)

    @property
    def instance(self) -> str:
        """The operator as status.controller and its Lease name it."""
        return f"{NAMESPACE}/{self.name}"

    @property
    def log(self) -> str:
        """What its pods' containers logged, those that ended among them, as far as the cluster still has it."""
        return self.pods.read_log()

    def install(self) -> str:
        """Install it in a namespace that enforces the restricted Pod Security Standard; it is not ready yet.

        Returns:
            What Helm said.

        Raises:
            CommandError: Helm or the cluster refused; the message is theirs.
        """
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}}
        self.cluster.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(namespace))
        return self._helm("install", self.name, str(CHART), "--create-namespace", self._values())

    def upgrade(
        self,
        *,
        chart: Path = CHART,
        configuration: OperatorConfiguration | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> str:
        """Upgrade to a chart, a configuration or further values, and wait until its pods are ready.

        Returns:
            What Helm said.

        Raises:
            CommandError: Helm or the cluster refused, or the new pods were not ready in time.
        """
        self.pods.read_log()
        self.configuration = configuration or self.configuration
        self.values = self.values if values is None else values
        return self._helm("upgrade", self.name, str(chart), self._values(), *_wait())

    def rollback(self, revision: int) -> str:
        """Go back to an earlier revision of the release, and wait until its pods are ready.

        `configuration` and `values` stay those of the last upgrade.

        Returns:
            What Helm said.

        Raises:
            CommandError: there is no such revision, or its pods were not ready in time.
        """
        self.pods.read_log()
        return self._helm("rollback", self.name, str(revision), *_wait())

    def test(self) -> str:
        """Run the chart's own test.

        Returns:
            What Helm said.

        Raises:
            CommandError: the test failed.
        """
        return self._helm("test", self.name, f"--timeout={HELM_SECONDS}s")

    def uninstall(self) -> str:
        """Remove the release, if it is there, and wait until its objects are gone; the namespace stays.

        Returns:
            What Helm said remains.

        Raises:
            CommandError: Helm or the cluster refused.
        """
        self.pods.read_log()
        return self._helm("uninstall", self.name, "--ignore-not-found", *_wait())

    def kill(self) -> None:
        """End it without the chance to do anything (SIGKILL); the kubelet starts it again.

        Raises:
            CommandError: its container can't be killed.
            OperatorError: its pods run on no node of this machine, or none runs.
        """
        if self.node is None:
            raise OperatorError("the operator's node is not of this machine: nobody here can kill its process")
        self.pods.kill(self.node)

    async def ready(self, *, seconds: float = START_SECONDS) -> None:
        """Wait until each of its pods is ready.

        Raises:
            OperatorError: they are not in time, or their image is missing; the message says why, and holds the end of
                the log.
        """
        started = time.monotonic()
        while reason := await self.pods.missing():
            waited = time.monotonic() - started
            if waited > seconds or await asyncio.to_thread(self.pods.wait_in_vain):
                raise OperatorError(
                    f"release {self.name} is not ready after {waited:.0f} s: {reason}\n"
                    f"look at: kubectl -n {NAMESPACE} describe pods; "
                    f"kubectl -n {NAMESPACE} logs deployment/{self.name}\n{log_lines(self.log)}"
                )
            await asyncio.sleep(POLL_SECONDS)

    def trouble(self) -> str:
        """Say why one of its pods does not run; empty if each does, or is about to."""
        return self.pods.trouble()

    async def requests(self) -> Requests:
        """Return its pods' requests to the API server since they started."""
        return await self.pods.requests()

    async def gauge(self, metric: str, **labels: str) -> float | None:
        """Return what one of its gauges says for these labels; None if no pod says anything."""
        return await self.pods.gauge(metric, labels)

    def _values(self) -> str:
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / f"{self.name}-values.yaml"
        content = {**chart_values(self.configuration, image=self.image), **self.values}
        file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        return f"--values={file}"

    def _helm(self, *arguments: str) -> str:
        return self.helm.run(*arguments, f"--namespace={NAMESPACE}")


def chart_values(configuration: OperatorConfiguration, *, image: str) -> Json:
    """Return the chart's values for a configuration and an image that the nodes hold."""
    repository, _, tag = image.rpartition(":")
    set_by_chart = {"instance", "namespaces", "read_nodes"}
    config = configuration.model_dump(
        by_alias=True, exclude_none=True, exclude_defaults=True, exclude=set_by_chart, mode="json"
    )
    return {
        "namespaces": list(configuration.namespaces),
        "config": config,
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
    }


def chart_version(chart: Path = CHART) -> str:
    """Return a chart's name and version, such as `specdec-operator 0.1.0`."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    return f"{about['name']} {about['version']}"


def _wait() -> Sequence[str]:
    return ("--wait", f"--timeout={HELM_SECONDS}s")
