"""How the pods of a model are scheduled, exposed and replaced."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import (
    AnnotationValue,
    LabelKey,
    LabelValue,
    ObjectName,
    Quantity,
    distinct,
)


class Toleration(ApiModel):
    """A tolerated taint, as in Kubernetes."""

    key: LabelKey | None = None
    """The taint's key; every key if left out."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """Whether the value counts."""
    value: LabelValue | None = None
    """The taint's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect; every effect if left out."""
    toleration_seconds: Annotated[int, Field(ge=0, le=2147483647)] | None = None
    """For NoExecute: how long the pod stays."""


class EnvironmentVariable(ApiModel):
    """One environment variable of the server container."""

    name: Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.ENVIRONMENT_NAME.expression)]
    """Its name. Names that the operator sets itself are refused."""
    value: Annotated[str, Field(max_length=4096)] = ""
    """Its value, taken literally."""


class Resources(ApiModel):
    """CPU and memory of a container."""

    cpu: Quantity | None = None
    """CPU request."""
    memory: Quantity | None = None
    """Memory request and limit."""


PassedThrough = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
"""An object of Kubernetes' own API, which judges it once a pod is made of it."""


class Affinity(ApiModel):
    """Which nodes and neighbours the pods want, as in Kubernetes."""

    node_affinity: PassedThrough | None = None
    """Kubernetes nodeAffinity."""
    pod_affinity: PassedThrough | None = None
    """Kubernetes podAffinity."""
    pod_anti_affinity: PassedThrough | None = None
    """Kubernetes podAntiAffinity."""


class Pod(ApiModel):
    """How the pods of this model are scheduled and run."""

    node_selector: Annotated[dict[LabelKey, LabelValue], Field(max_length=32)] = {}
    """Node labels that every pod of this model needs."""
    tolerations: Annotated[list[Toleration], Field(max_length=32)] = []
    """Taints that the pods tolerate. The taint named like the GPU resource is always tolerated."""
    affinity: Affinity | None = None
    """Kubernetes affinity, passed through."""
    image_pull_secrets: Annotated[list[ObjectName], Field(max_length=16)] = []
    """Secrets for the image's registry."""
    priority_class_name: ObjectName | None = None
    """Priority of the serving pods."""
    scheduler_name: ObjectName | None = None
    """Another scheduler."""
    runtime_class_name: ObjectName | None = None
    """The runtime class, such as `nvidia`."""
    service_account_name: ObjectName | None = None
    """The service account; its token is never mounted."""
    run_as_user: Annotated[int, Field(ge=1, le=2147483647)] = 1000
    """The user id of every container."""
    run_as_group: Annotated[int, Field(ge=1, le=2147483647)] = 1000
    """The group id of every container."""
    fs_group: Annotated[int, Field(ge=1, le=2147483647)] = 1000
    """The group that owns mounted volumes."""
    labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=32)] = {}
    """Extra labels of the serving pods."""
    annotations: Annotated[dict[LabelKey, AnnotationValue], Field(max_length=32)] = {}
    """Extra annotations of the serving pods."""
    environment: Annotated[
        list[EnvironmentVariable],
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
        AfterValidator(distinct),
    ] = []
    """Extra environment of the server container."""
    server_resources: Resources = Resources()
    """CPU and memory of the server container; derived if left out."""
    job_resources: Resources = Resources()
    """CPU and memory of download and build Jobs; derived if left out."""


class Service(ApiModel):
    """The Service in front of the pods."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """The Service's type."""
    annotations: Annotated[dict[LabelKey, AnnotationValue], Field(max_length=32)] = {}
    """Annotations of the Service, for load balancers and meshes."""


class Update(ApiModel):
    """How a changed revision replaces the serving one."""

    strategy: Literal["Replace", "Surge"] = "Replace"
    """Replace: an old pod goes before its new one starts, no spare GPU needed. Surge: new pods start beside the old."""
    startup_minutes: Annotated[int, Field(ge=1, le=720)] = 60
    """How long a new pod may take to load and answer before the revision counts as failed."""
