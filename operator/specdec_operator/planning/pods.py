"""How the pods of a model are scheduled and run: those that serve, and its Jobs'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from specdec_operator.api.v1alpha1.pod import Pod, Toleration

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import RuntimeImage
    from specdec_operator.api.v1alpha1.source import PullPolicy
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
_ONLY_SERVING = ("labels", "annotations", "environment", "server_resources")


class JobSettings(TypedDict):
    """The members of a ModelArtifactSpec that say how its Job runs, the same for every artifact of a model."""

    image: str
    image_pull_policy: PullPolicy
    pod: Pod


def job_settings(spec: SpeculativeModelSpec, *, image: RuntimeImage, gpu_product: str | None) -> JobSettings:
    """How every Job of a model runs.

    Args:
        gpu_product: The node label of the GPUs, or None for any.
    """
    pod = job_pod(spec, gpu_product)
    return JobSettings(image=image.reference, image_pull_policy=image.pull_policy, pod=pod)


def placed_pod(spec: SpeculativeModelSpec, gpu_product: str | None) -> Pod:
    """The scheduling of every pod of a model, Jobs too: the first consumer of a volume binds it where the GPUs are.

    Args:
        gpu_product: The node label of the GPUs, or None for any.
    """
    return spec.pod.model_copy(update=_placed(spec, gpu_product))


def job_pod(spec: SpeculativeModelSpec, gpu_product: str | None) -> Pod:
    """The part of a model's pod settings that its Jobs take: models that differ in the rest share artifacts.

    Args:
        gpu_product: The node label of the GPUs, or None for any.
    """
    plain = Pod()
    only_serving = {name: getattr(plain, name) for name in _ONLY_SERVING}
    return spec.pod.model_copy(update=only_serving | _placed(spec, gpu_product))


def _placed(spec: SpeculativeModelSpec, gpu_product: str | None) -> dict[str, Any]:
    """The settings that a model's GPUs decide: their nodes, which are often tainted with the resource's name."""
    resource = spec.placement.gpu.extended_resource or "nvidia.com/gpu"
    tolerations = list(spec.pod.tolerations)
    if not any(toleration.key == resource for toleration in tolerations):
        tolerations.append(Toleration(key=resource, operator="Exists"))
    product = {GPU_PRODUCT_LABEL: gpu_product} if gpu_product else {}
    return {"node_selector": {**spec.pod.node_selector, **product}, "tolerations": tolerations}
