"""How the pods of a model are scheduled and run: those that serve, and its Jobs'."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from specdec_operator.api.v1alpha1.pod import Toleration

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.pod import Pod
    from specdec_operator.api.v1alpha1.source import PullPolicy
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"


class JobSettings(TypedDict):
    """The members of a ModelArtifactSpec that say how its Job runs, the same for every artifact of a model."""

    image: str
    image_pull_policy: PullPolicy
    pod: Pod


def job_settings(spec: SpeculativeModelSpec, resolution: Resolution) -> JobSettings:
    """How every Job of a model runs."""
    image = resolution.image
    return JobSettings(image=image.reference, image_pull_policy=image.pull_policy, pod=job_pod(spec, resolution))


def placed_pod(spec: SpeculativeModelSpec, resolution: Resolution) -> Pod:
    """The scheduling of every pod of a model, Jobs too: the first consumer of a volume binds it where the GPUs are.

    GPU nodes are often tainted with the resource's name, so that taint is tolerated.
    """
    resource = spec.placement.gpu.extended_resource or "nvidia.com/gpu"
    tolerations = list(spec.pod.tolerations)
    if not any(toleration.key == resource for toleration in tolerations):
        tolerations.append(Toleration(key=resource, operator="Exists"))
    product = {GPU_PRODUCT_LABEL: resolution.gpu_product} if resolution.gpu_product else {}
    return spec.pod.model_copy(
        update={"node_selector": {**spec.pod.node_selector, **product}, "tolerations": tolerations}
    )


def job_pod(spec: SpeculativeModelSpec, resolution: Resolution) -> Pod:
    """The part of a model's pod settings that its Jobs take: models that differ in the rest share artifacts."""
    only_serving = ("labels", "annotations", "environment", "server_resources")
    defaults = {name: type(spec.pod).model_fields[name].get_default(call_default_factory=True) for name in only_serving}
    return placed_pod(spec, resolution).model_copy(update=defaults)
