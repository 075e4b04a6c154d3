"""The pods of the operator's release: what they log and count, whether they are ready, and their sudden end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from testbed.cluster.errors import CommandError
from testbed.operator.chart import NAME, NAMESPACE
from testbed.operator.errors import OperatorError
from testbed.operator.metrics import Requests, read_gauge, read_requests
from testbed.operator.pod_state import container_ids, is_ready, running_container, trouble, waits_in_vain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from testbed.cluster import ClusterAccess
    from testbed.cluster.node import RunningNode

Json = dict[str, Any]
PORT: Final = 8080
ANSWER_SECONDS: Final = 2.0


@dataclass
class OperatorPods:
    """The pods of a release.

    Attributes:
        cluster: they are in its namespace `specdec-system`.
        name: the release's, and its Deployment's.
    """

    cluster: ClusterAccess
    name: str
    _killed: set[str] = field(default_factory=set)
    _logs: dict[str, str] = field(default_factory=dict)

    def present(self) -> list[Json]:
        """Return those that are not being deleted."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/name={NAME}"
        found = self.cluster.client.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")
        return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]

    def read_log(self) -> str:
        """Return what all containers logged that were there when the log was read, now and before."""
        for pod in self.present():
            before, now = container_ids(pod)
            for container, arguments in ((before, ["--previous"]), (now, [])):
                if container:
                    # Its log may be gone already; what was read of it before stays.
                    with suppress(CommandError):
                        name = pod["metadata"]["name"]
                        self._logs[container] = self.cluster.kubectl(
                            "logs", name, f"--namespace={NAMESPACE}", *arguments
                        )
        return "".join(self._logs.values())

    def kill(self, node: RunningNode) -> None:
        """End the operator without the chance to do anything (SIGKILL); the kubelet starts it again.

        Raises:
            CommandError: a container can't be killed.
            OperatorError: none runs.
        """
        self.read_log()
        containers = [container for pod in self.present() if (container := running_container(pod))]
        if not containers:
            raise OperatorError(f"release {self.name} has no container that runs: {self.trouble() or 'it starts'}")
        for container in containers:
            self._killed.add(container)
            node.kill_container(container)

    def trouble(self) -> str:
        """Say why one of them does not run; empty if each does, or is about to."""
        return "; ".join(said for pod in self.present() if (said := trouble(pod)))

    def wait_in_vain(self) -> bool:
        """Whether one of them lacks its image, which nobody pulls."""
        return any(waits_in_vain(pod) for pod in self.present())

    async def missing(self) -> str:
        """Say what keeps the operator from being ready; empty if nothing does."""
        deployment, pods = await asyncio.to_thread(lambda: (self._deployment(), self.present()))
        wanted = deployment["spec"]["replicas"]
        if len(pods) != wanted:
            conditions = deployment.get("status", {}).get("conditions", [])
            refused = [c["message"] for c in conditions if c["type"] == "ReplicaFailure"]
            return " ".join([f"{len(pods)} of {wanted} pods are there", *refused])
        reasons = [trouble(pod) or await self._unready(pod) for pod in pods]
        return "; ".join(reason for reason in reasons if reason)

    async def requests(self) -> Requests:
        """Return their requests to the API server since they started."""
        counts: dict[tuple[str, str, str], int] = {}
        for url in self._urls():
            for key, count in (await read_requests(f"{url}/metrics")).counts.items():
                counts[key] = counts.get(key, 0) + count
        return Requests(counts)

    async def gauge(self, metric: str, labels: Mapping[str, str]) -> float | None:
        """Return what a gauge says for these labels; None if no pod says anything."""
        for url in self._urls():
            if (found := await read_gauge(f"{url}/metrics", metric, labels)) is not None:
                return found
        return None

    async def _unready(self, pod: Json) -> str:
        """Say why a pod is not ready, in its own words where this machine reaches it."""
        name = pod["metadata"]["name"]
        if running_container(pod) in {"", *self._killed}:
            return f"{name} has not started"
        try:
            timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
            async with aiohttp.ClientSession(timeout=timeout) as session, session.get(f"{_url(pod)}/readyz") as answer:
                return "" if answer.status == 200 else f"{name}: {await answer.text()}"
        except (aiohttp.ClientError, TimeoutError):
            return "" if is_ready(pod) else f"{name} does not answer yet"

    def _urls(self) -> Sequence[str]:
        return [_url(pod) for pod in self.present()]

    def _deployment(self) -> Json:
        return self.cluster.client.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{self.name}")


def _url(pod: Json) -> str:
    return f"http://{pod['status'].get('podIP', '')}:{PORT}"
