"""On which GPUs the pair is placed."""

from __future__ import annotations

from typing import ClassVar

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1.quantity_rules import bounded
from specdec_operator.api.v1alpha1.scalars import Bytes, DeviceIds, LabelValue, ObjectName, ResourceName


class Gpu(ApiModel):
    """Which GPUs."""

    resource_name: ResourceName | None = None
    """The extended resource that pods ask for; MIG and other device plugins' names work as well. Left out:
    nvidia.com/gpu, unless resourceClaimTemplate is given."""
    resource_claim_template: ObjectName | None = None
    """A ResourceClaimTemplate of the namespace (dynamic resource allocation) in place of an extended resource. What it
    claims must give each pod as many GPUs as status.placement.gpusPerReplica says."""
    build_resource_claim_template: ObjectName | None = None
    """A ResourceClaimTemplate of the namespace that gives one GPU, for the builds of engines. Left out, builds claim
    what resourceClaimTemplate gives, which may be more GPUs than they use."""
    product: LabelValue | None = None
    """The node label `nvidia.com/gpu.product` that builds and serving need. Required on TensorRTEngine, whose engines
    are bound to a GPU product, unless the operator has a default."""
    memory: Bytes | None = None
    """The memory of one GPU, against which the pair is checked. Left out: known from product for common GPUs, else not
    checked."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="!has(self.resourceName) || !has(self.resourceClaimTemplate)",
            message="give resourceName (an extended resource) or resourceClaimTemplate, not both",
            holds=lambda self: self.resource_name is None or self.resource_claim_template is None,
            field=".resourceClaimTemplate",
            reason="FieldValueForbidden",
        ),
        Rule(
            expression="!has(self.buildResourceClaimTemplate) || has(self.resourceClaimTemplate)",
            message="buildResourceClaimTemplate goes with resourceClaimTemplate: give both, or remove it (a build asks "
            "for one of resourceName)",
            holds=lambda self: self.build_resource_claim_template is None or self.resource_claim_template is not None,
            field=".resourceClaimTemplate",
            reason="FieldValueRequired",
        ),
        bounded("memory", "memory", least="1Mi"),
        Rule(
            expression=(
                "!has(self.resourceName) || !self.resourceName.matches('^(requests[.]|([^/]*[.])?kubernetes[.]io/)')"
            ),
            message="resourceName must be a device plugin's, as in nvidia.com/gpu: Kubernetes keeps kubernetes.io and "
            "requests. for itself",
            holds=lambda self: self.resource_name is None or not _of_kubernetes(self.resource_name),
            field=".resourceName",
        ),
    )

    @property
    def extended_resource(self) -> str | None:
        """The extended resource that pods ask for; None where a resource claim gives the GPUs."""
        return None if self.resource_claim_template else self.resource_name or "nvidia.com/gpu"


def _of_kubernetes(resource: str) -> bool:
    domain = resource.partition("/")[0]
    return domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or domain.startswith("requests.")


class Placement(ApiModel):
    """GPUs per model. Device ids count inside one pod, from 0."""

    gpu: Gpu = Gpu()
    """Which GPUs."""
    draft_devices: DeviceIds | None = None
    """The draft's GPUs, one per rank. Left out: the first ones."""
    target_devices: DeviceIds | None = None
    """The target's GPUs, one per rank. Left out: those after the draft's. A pair shares GPUs where both lists name
    them."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.draftDevices) ? has(self.targetDevices) : true",
            message="draftDevices and targetDevices together tell the placement: give both or neither",
            holds=lambda self: self.draft_devices is None or self.target_devices is not None,
            field=".targetDevices",
            reason="FieldValueRequired",
        ),
        Rule(
            expression=(
                "!has(self.targetDevices) || self.targetDevices.all(d, d == 0 || (d - 1) in self.targetDevices || "
                "(has(self.draftDevices) && (d - 1) in self.draftDevices))"
            ),
            message="draftDevices and targetDevices together must be 0, 1, … without a gap",
            holds=lambda self: _without_gap(self, self.target_devices),
            field=".targetDevices",
        ),
        Rule(
            expression=(
                "!has(self.draftDevices) || !has(self.targetDevices) || self.draftDevices.all(d, d == 0 || "
                "(d - 1) in self.draftDevices || (d - 1) in self.targetDevices)"
            ),
            message="draftDevices and targetDevices together must be 0, 1, … without a gap",
            holds=lambda self: self.target_devices is None or _without_gap(self, self.draft_devices),
            field=".draftDevices",
        ),
    )

    @property
    def shared(self) -> bool:
        """Whether draft and target are declared on a common device."""
        return bool(set(self.draft_devices or ()) & set(self.target_devices or ()))


def _without_gap(placement: Placement, devices: list[int] | None) -> bool:
    used = {*(placement.draft_devices or ()), *(placement.target_devices or ())}
    return all(device == 0 or device - 1 in used for device in devices or ())
