"""The resource types that the operator touches, and their paths on the API server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResourceType:
    """One resource type of the API.

    Attributes:
        group: API group; empty for the core group.
        version: version within the group.
        plural: name in paths, lower case.
        kind: name in objects.
        namespaced: whether its objects live in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What objects of this type carry as ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_name(self) -> str:
        """The name that RBAC and kubectl use, such as ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of one object, or of a collection when there is no name.

        Args:
            namespace: left out for collections over all namespaces and for cluster-wide types.
            name: name of the object.
            subresource: such as ``status``; needs a name.

        Raises:
            ValueError: the arguments don't name a path of this type.
        """
        if namespace is not None and not self.namespaced:
            raise ValueError(f"{self.kind} is not namespaced, but namespace {namespace!r} was given")
        if name is not None and namespace is None and self.namespaced:
            raise ValueError(f"{self.kind} {name!r} needs a namespace")
        if subresource is not None and name is None:
            raise ValueError(f"subresource {subresource!r} of {self.kind} needs a name")
        root = "apis" if self.group else "api"
        parts = [root, self.api_version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts += [self.plural, *(part for part in (name, subresource) if part is not None)]
        return "/" + "/".join(parts)


SPECULATIVE_MODELS = ResourceType("specdec.dev", "v1alpha1", "speculativemodels", "SpeculativeModel")
MODEL_ARTIFACTS = ResourceType("specdec.dev", "v1alpha1", "modelartifacts", "ModelArtifact")
NODES = ResourceType("", "v1", "nodes", "Node", namespaced=False)
PODS = ResourceType("", "v1", "pods", "Pod")
SERVICES = ResourceType("", "v1", "services", "Service")
CONFIG_MAPS = ResourceType("", "v1", "configmaps", "ConfigMap")
PERSISTENT_VOLUME_CLAIMS = ResourceType("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CORE_EVENTS = ResourceType("", "v1", "events", "Event")
EVENTS = ResourceType("events.k8s.io", "v1", "events", "Event")
DEPLOYMENTS = ResourceType("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = ResourceType("apps", "v1", "replicasets", "ReplicaSet")
CONTROLLER_REVISIONS = ResourceType("apps", "v1", "controllerrevisions", "ControllerRevision")
JOBS = ResourceType("batch", "v1", "jobs", "Job")
ENDPOINT_SLICES = ResourceType("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
LEASES = ResourceType("coordination.k8s.io", "v1", "leases", "Lease")
SELF_SUBJECT_REVIEWS = ResourceType(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
SELF_SUBJECT_RULES_REVIEWS = ResourceType(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS = ResourceType(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
REVIEWS = (SELF_SUBJECT_REVIEWS, SELF_SUBJECT_RULES_REVIEWS, SELF_SUBJECT_ACCESS_REVIEWS)
"""Questions about oneself: nothing is stored, and every account may ask them."""
DOCUMENTS = ResourceType("", "v1", "documents", "Document", namespaced=False)
"""What the API server says of itself: discovery and schemas, by paths of their own."""

ALL_RESOURCES = (
    SPECULATIVE_MODELS,
    MODEL_ARTIFACTS,
    NODES,
    PODS,
    SERVICES,
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    CORE_EVENTS,
    EVENTS,
    DEPLOYMENTS,
    REPLICA_SETS,
    CONTROLLER_REVISIONS,
    JOBS,
    ENDPOINT_SLICES,
    LEASES,
)


def resource_of(*, api_version: str, kind: str) -> ResourceType:
    """Return the resource type of an object by its ``apiVersion`` and ``kind``.

    Raises:
        ValueError: the operator touches no such type.
    """
    for resource in ALL_RESOURCES:
        if (resource.api_version, resource.kind) == (api_version, kind):
            return resource
    raise ValueError(f"{api_version} {kind} is none of the types that the operator touches")
