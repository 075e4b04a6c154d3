"""On which GPUs the pair is placed."""

from __future__ import annotations

from typing import ClassVar

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1.scalars import DeviceIds, LabelValue, ResourceName


class Gpu(ApiModel):
    """Which GPUs."""

    resource_name: ResourceName = "nvidia.com/gpu"
    """The extended resource that pods ask for."""
    product: LabelValue | None = None
    """The node label `nvidia.com/gpu.product` that builds and serving need. Required on TensorRTEngine, whose engines
    are bound to a GPU product, unless the operator has a default."""


class Placement(ApiModel):
    """GPUs per model. Device ids count inside one pod, from 0."""

    gpu: Gpu = Gpu()
    """Which GPUs."""
    draft_devices: DeviceIds | None = None
    """The draft's GPUs, one per rank. Left out: the first ones."""
    target_devices: DeviceIds | None = None
    """The target's GPUs, one per rank. Left out: those after the draft's."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=(
                "!has(self.draftDevices) || !has(self.targetDevices) || "
                "!self.draftDevices.exists(d, d in self.targetDevices)"
            ),
            message="draft and target have GPUs of their own with fast logits: no device may be in both lists",
            holds=lambda self: not set(self.draft_devices or ()) & set(self.target_devices or ()),
            field=".draftDevices",
        ),
        Rule(
            expression="has(self.draftDevices) ? has(self.targetDevices) : true",
            message="draftDevices and targetDevices together tell the placement: give both or neither",
            holds=lambda self: self.draft_devices is None or self.target_devices is not None,
            field=".targetDevices",
            reason="FieldValueRequired",
        ),
        Rule(
            expression=(
                "!has(self.targetDevices) || self.targetDevices.all(d, d < size(self.targetDevices) + "
                "(has(self.draftDevices) ? size(self.draftDevices) : 0))"
            ),
            message="draftDevices and targetDevices together must be 0, 1, … without a gap",
            holds=lambda self: _without_gap(self, self.target_devices),
            field=".targetDevices",
        ),
        Rule(
            expression=(
                "!has(self.draftDevices) || !has(self.targetDevices) || self.draftDevices.all(d, "
                "d < size(self.targetDevices) + size(self.draftDevices))"
            ),
            message="draftDevices and targetDevices together must be 0, 1, … without a gap",
            holds=lambda self: self.target_devices is None or _without_gap(self, self.draft_devices),
            field=".draftDevices",
        ),
    )


def _without_gap(placement: Placement, devices: list[int] | None) -> bool:
    total = len(placement.draft_devices or ()) + len(placement.target_devices or ())
    return all(device < total for device in devices or ())
