"""The operator's own client on the testbed's control plane, and counted requests."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials
from specdec_operator.cluster.login import open_session
from specdec_operator.cluster.owners import live_owner_reference
from specdec_operator.cluster.resources import CONFIG_MAPS, ResourceType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from testbed.cluster import Cluster

NAMESPACES = ResourceType("", "v1", "namespaces", "Namespace", namespaced=False)
READS = frozenset({"get", "list"})


@dataclass
class Workplace:
    """A namespace of one test, an owner in it, and the operator's client.

    Attributes:
        api: the operator's client.
        stranger: the same client under another field manager.
        namespace: the test's own.
        owner: an object that may own others.
        requests: verb, plural and code of each request of ``api``.
    """

    api: HttpKubernetesApi
    stranger: HttpKubernetesApi
    namespace: str
    owner: dict[str, Any]
    requests: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def owner_uid(self) -> str:
        uid: str = self.owner["metadata"]["uid"]
        return uid

    def writes(self) -> Counter[str]:
        """Count the writes by verb since the last call."""
        counts = Counter(verb for verb, _plural, _code in self.requests if verb not in READS)
        self.requests.clear()
        return counts

    def body(self, resource: ResourceType, name: str, **rest: Any) -> dict[str, Any]:
        """Return an object of the owner."""
        metadata = {
            "namespace": self.namespace,
            "name": name,
            "ownerReferences": [live_owner_reference(self.owner) | {"controller": True}],
        }
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}


@contextlib.asynccontextmanager
async def workplace(cluster: Cluster, *, may_write: Callable[[], bool] = lambda: True) -> AsyncIterator[Workplace]:
    """Make a namespace with an owner in it; the namespace goes at the end."""
    credentials = kubeconfig_credentials(cluster.kubeconfig)
    namespace = f"cluster-{uuid.UUID(bytes=os.urandom(16))}"[:24]
    requests: list[tuple[str, str, str]] = []

    def observe(verb: str, plural: str, code: str) -> None:
        requests.append((verb, plural, code))

    async with open_session(credentials) as session:
        api = HttpKubernetesApi(session, credentials.server, may_write=may_write, observe=observe)
        stranger = HttpKubernetesApi(session, credentials.server, field_manager="stranger")
        metadata = {"name": namespace}
        await stranger.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        owner = await stranger.create(
            CONFIG_MAPS,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "owner"}},
        )
        try:
            yield Workplace(api, stranger, namespace, owner, requests)
        finally:
            await stranger.delete(NAMESPACES, namespace=None, name=namespace)
