"""Whether a Service leads to one revision's pods and to nothing else. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.resources.labels import REVISION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.reconcile.observation import Serving

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
_MIRROR = "endpointslicemirroring-controller.k8s.io"
FOREIGN_SLICES = f"{SERVICE_NAME},{MANAGED_BY} notin ({CONTROLLER},{_MIRROR})"
"""Selects the slices of Services that no controller of Kubernetes keeps; in most clusters there are none."""


@dataclass(frozen=True, kw_only=True)
class Stray:
    """What a Service leads to beside the revision's pods.

    Attributes:
        message: What was seen, and what to do.
        foreign: Whether somebody put it there, so that waiting does not help.
    """

    message: str
    foreign: bool = False


def stray(slices: Sequence[JsonObject], serving: Serving) -> Stray | None:
    """What keeps an answer of the Service from being one of the revision's; None if nothing does.

    Kubernetes' controller mends what others change in its own slices, so these need no closer look.

    Args:
        slices: The Service's EndpointSlices.
        serving: The serving side.
    """
    foreign = next((item for item in slices if item.get("endpoints") and _keeper(item) != CONTROLLER), None)
    if foreign:
        return Stray(message=_told(foreign), foreign=True)
    ready = {
        (endpoint.get("targetRef") or {}).get("uid")
        for item in slices
        for endpoint in item.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready", True)
    }
    mine = {
        pod["metadata"]["uid"]
        for pod in serving.pods
        if pod["metadata"].get("labels", {}).get(REVISION) == serving.revision
    }
    if not ready:
        return Stray(message="the Service has no ready endpoint yet")
    return Stray(message="the Service still holds pods of another revision") if ready - mine else None


def _keeper(item: JsonObject) -> str:
    return str((item["metadata"].get("labels") or {}).get(MANAGED_BY, ""))


def _told(item: JsonObject) -> str:
    metadata = item["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    addresses = [address for endpoint in item["endpoints"] for address in endpoint.get("addresses") or ()]
    return (
        f"EndpointSlice {name}, which Kubernetes does not keep ({MANAGED_BY}: {_keeper(item) or 'not set'}), leads "
        f"part of the Service's requests to {', '.join(addresses[:3]) or 'other addresses'}. Remedy: kubectl delete "
        f"endpointslice {name} -n {namespace}"
    )
