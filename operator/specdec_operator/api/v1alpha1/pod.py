"""How the pods of a model are scheduled, exposed and replaced."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.affinity import Affinity
from specdec_operator.api.v1alpha1.quantity_rules import bounded
from specdec_operator.api.v1alpha1.scalars import (
    AnnotationValue,
    Bytes,
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

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.key) || self.operator == 'Exists'",
            message="without a key, which means every taint, operator must be Exists: name a key, or set operator",
            holds=lambda self: self.key is not None or self.operator == "Exists",
            field=".operator",
        ),
        Rule(
            expression="!has(self.value) || self.value == '' || self.operator == 'Equal'",
            message="the operator Exists takes no value: remove it, or set operator to Equal",
            holds=lambda self: not self.value or self.operator == "Equal",
            field=".value",
        ),
        Rule(
            expression="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            message="tolerationSeconds goes with the effect NoExecute: set effect to it, or remove tolerationSeconds",
            holds=lambda self: self.toleration_seconds is None or self.effect == "NoExecute",
            field=".tolerationSeconds",
        ),
    )


class EnvironmentVariable(ApiModel):
    """One environment variable of the server container."""

    name: Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.ENVIRONMENT_NAME.expression)]
    """Its name. Names that the operator sets itself are refused."""
    value: Annotated[str, Field(max_length=4096, pattern=patterns.ENVIRONMENT_VALUE.expression)] = ""
    """Its value, taken literally."""


class Resources(ApiModel):
    """CPU and memory of a container."""

    cpu: Quantity | None = None
    """CPU request."""
    memory: Bytes | None = None
    """Memory request and limit."""

    RULES: ClassVar[tuple[Rule, ...]] = (bounded("cpu", "cpu"), bounded("memory", "memory", least="16Mi"))


_JUDGED: Final = (
    "^((container[.](seccomp|apparmor)|seccomp)[.]security[.](alpha|beta)[.]kubernetes[.]io/"
    "|kubernetes[.]io/config[.]mirror$|scheduler[.]alpha[.]kubernetes[.]io/tolerations$"
    "|controller[.]kubernetes[.]io/pod-deletion-cost$)"
)
"""Annotations for which Kubernetes refuses a pod: ValidatePodSpecificAnnotations in pkg/apis/core/validation."""


class Pod(ApiModel):
    """How the pods of this model are scheduled and run."""

    node_selector: Annotated[dict[LabelKey, LabelValue], Field(max_length=32)] = {}
    """Node labels that every pod of this model needs."""
    tolerations: Annotated[list[Toleration], Field(max_length=32)] = []
    """Taints that the pods tolerate. The taint named like the GPU resource is always tolerated."""
    affinity: Affinity | None = None
    """Which nodes and neighbours the pods want, as in Kubernetes."""
    image_pull_secrets: Annotated[
        list[ObjectName],
        Field(max_length=16, json_schema_extra={"x-kubernetes-list-type": "set"}),
        AfterValidator(distinct),
    ] = []
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

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=f"!has(self.annotations) || self.annotations.all(key, !key.matches('{_JUDGED}'))",
            message="Kubernetes judges annotations of seccomp, AppArmor, mirror pods, tolerations and deletion costs: "
            "remove them",
            holds=lambda self: not any(re.match(_JUDGED, key) for key in self.annotations),
            field=".annotations",
            reason="FieldValueForbidden",
        ),
    )


_SOURCES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_NETWORKS: Final = "^ *[0-9a-fA-F.:]+/[0-9]+( *, *[0-9a-fA-F.:]+/[0-9]+)* *$"


class Service(ApiModel):
    """The Service in front of the pods."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """The Service's type."""
    annotations: Annotated[dict[LabelKey, AnnotationValue], Field(max_length=32)] = {}
    """Annotations of the Service, for load balancers and meshes."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=(
                f"!has(self.annotations) || !('{_SOURCES}' in self.annotations) || "
                f"(self.type == 'LoadBalancer' && self.annotations['{_SOURCES}'].matches('{_NETWORKS}'))"
            ),
            message=f"{_SOURCES} takes networks, as in 10.0.0.0/8, and goes with the type LoadBalancer",
            holds=lambda self: (
                _SOURCES not in self.annotations
                or (self.type == "LoadBalancer" and re.fullmatch(_NETWORKS, self.annotations[_SOURCES]) is not None)
            ),
            field=".annotations",
        ),
    )


class Update(ApiModel):
    """How a changed revision replaces the serving one."""

    strategy: Literal["Replace", "Surge"] = "Replace"
    """Replace: an old pod goes before its new one starts, no spare GPU needed. Surge: new pods start beside the old."""
    startup_minutes: Annotated[int, Field(ge=1, le=720)] = 60
    """How long a new pod may take to load and answer before the revision counts as failed."""
