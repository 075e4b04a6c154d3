"""What the operator may ask of the API server: the one source of the roles in the chart and in the manifests.

A request that is not covered here is refused on every cluster, and a right that no request uses is one too many: the
integration tests hold both against what the operators asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    JOBS,
    LEASES,
    MODEL_ARTIFACTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    SPECULATIVE_MODELS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.cluster.resources import ResourceType


@dataclass(frozen=True, kw_only=True)
class Right:
    """Verbs that the operator uses on one resource type.

    Attributes:
        verbs: as RBAC names them; a server-side apply is a patch, and of an object that is not there a create too.
        subresource: such as ``status``; empty for the object itself.
        names: the objects' names; any if empty.
        optional: those of the verbs without which all work is done, and less is said: they hold up no rollout.
    """

    resource: ResourceType
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def rule(self) -> dict[str, Any]:
        """The right as a rule of a Role or ClusterRole."""
        plural = self.resource.plural
        rule: dict[str, Any] = {
            "apiGroups": [self.resource.group],
            "resources": [f"{plural}/{self.subresource}" if self.subresource else plural],
        }
        if self.names:
            rule["resourceNames"] = list(self.names)
        return {**rule, "verbs": list(self.verbs)}


WATCHED: Final[tuple[Right, ...]] = (
    Right(resource=SPECULATIVE_MODELS, verbs=("get", "list", "watch")),
    Right(resource=SPECULATIVE_MODELS, subresource="status", verbs=("patch",)),
    Right(resource=MODEL_ARTIFACTS, verbs=("get", "list", "watch", "create", "patch", "delete")),
    Right(resource=MODEL_ARTIFACTS, subresource="status", verbs=("patch",)),
    # None is created: the API server is asked whether it would take one, before a pod that serves goes for it.
    Right(resource=PODS, verbs=("list", "watch", "create"), optional=("create",)),
    Right(resource=SERVICES, verbs=("get", "list", "watch", "create", "patch")),
    Right(resource=CONFIG_MAPS, verbs=("get", "list", "watch", "create", "patch")),
    Right(resource=PERSISTENT_VOLUME_CLAIMS, verbs=("get", "create")),
    Right(resource=DEPLOYMENTS, verbs=("get", "list", "watch", "create", "patch")),
    Right(resource=REPLICA_SETS, verbs=("list",)),
    Right(resource=CONTROLLER_REVISIONS, verbs=("get", "list", "watch", "create", "patch", "delete")),
    Right(resource=JOBS, verbs=("get", "list", "watch", "create", "patch", "delete")),
    Right(resource=ENDPOINT_SLICES, verbs=("list", "watch"), optional=("watch",)),
    Right(resource=EVENTS, verbs=("list", "create", "patch"), optional=("create", "patch")),
    # Whether another operator that wrote a model's status is alive.
    Right(resource=LEASES, verbs=("get",), optional=("get",)),
)
"""What is needed wherever models are watched: in the whole cluster, or in each namespace that is listed."""


NODE_LABELS: Final[tuple[Right, ...]] = (Right(resource=NODES, verbs=("list",), optional=("list",)),)
"""What is used besides where all namespaces are watched and the configuration says `readNodes`."""


def own(instance: str) -> tuple[Right, ...]:
    """What is needed in the operator's own namespace: its Lease. A create can't be bound to a name.

    Args:
        instance: the operator's name there.
    """
    return (
        Right(resource=LEASES, verbs=("create",)),
        Right(resource=LEASES, names=(instance,), verbs=("get", "update")),
    )


def rules(rights: Sequence[Right]) -> list[dict[str, Any]]:
    """Rights as the rules of a Role or ClusterRole, in their order."""
    return [right.rule() for right in rights]
