"""Everything that can be refused from a spec alone, before anything is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1 import labels
from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning import choices, engine_rules, serving_rules, speculation_rules
from specdec_operator.planning.gpu_rules import gpu_refusals
from specdec_operator.planning.placement import place
from specdec_operator.planning.pods import GPU_PRODUCT_LABEL
from specdec_operator.planning.refusal import Refusal, Refused
from specdec_operator.planning.resolution import Resolution, needs_store, resolve
from specdec_operator.planning.token_rules import token_refusals
from specdec_operator.runtimes import environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, SpeculativeModelSpec
    from specdec_operator.planning.drivers import NodeLabels
    from specdec_operator.runtimes.table import CapabilityTable

MOST_DEVICES = 64
"""GPUs of one pod, as the API bounds device lists."""


def admit(
    model: SpeculativeModel,
    *,
    table: CapabilityTable,
    configuration: OperatorConfiguration,
    refresh: str = "",
    nodes: Sequence[NodeLabels] = (),
) -> Resolution:
    """Fill in a model's spec, with the pins that its status keeps.

    Args:
        refresh: The value of the annotation `specdec.dev/refresh`.
        nodes: The labels of the GPU nodes; empty where they are not read.

    Raises:
        Refused: With everything that the spec alone shows to be wrong.
    """
    try:
        resolution: Resolution | None = resolve(
            model.spec, table=table, configuration=configuration, pins=model.status.pins, refresh=refresh, nodes=nodes
        )
        found: list[Refusal] = []
    except Refused as refused:
        resolution, found = None, list(refused.refusals)
    found += _own_refusals(model.spec, configuration)
    if resolution is not None:
        found += _release_environment(model.spec, resolution)
        found += gpu_refusals(model.spec, resolution)
        found += engine_rules.engine_refusals(model.spec, resolution)
    if resolution is None or found:
        raise Refused(tuple(found))
    return resolution


def refusals(
    model: SpeculativeModel, *, table: CapabilityTable, configuration: OperatorConfiguration
) -> tuple[Refusal, ...]:
    """Everything that the spec alone shows to be wrong; empty for a spec that may be acquired."""
    try:
        admit(model, table=table, configuration=configuration)
    except Refused as refused:
        return refused.refusals
    return ()


def _own_refusals(spec: SpeculativeModelSpec, configuration: OperatorConfiguration) -> list[Refusal]:
    return [
        *_devices(spec),
        *choices.refusals(spec, default_backend(spec)),
        *serving_rules.refusals(spec, default_backend(spec)),
        *speculation_rules.refusals(spec, default_backend(spec)),
        *_environment(spec),
        *_owned("spec.pod.labels", spec.pod.labels),
        *_owned("spec.pod.annotations", spec.pod.annotations),
        *_owned("spec.service.annotations", spec.service.annotations),
        *_node_selector(spec, configuration),
        *_single_pod(spec, configuration),
        *token_refusals(spec, configuration),
    ]


def _devices(spec: SpeculativeModelSpec) -> list[Refusal]:
    gpus = place(spec, default_backend(spec)).gpus
    if gpus <= MOST_DEVICES:
        return []
    return [
        Refusal(
            reason="TooManyDevices",
            path="spec.target.parallelism.tensor",
            message=f"target and draft need {gpus} GPUs in one pod, and {MOST_DEVICES} is the most: lower "
            "target.parallelism or draft.parallelism",
        )
    ]


def _single_pod(spec: SpeculativeModelSpec, configuration: OperatorConfiguration) -> list[Refusal]:
    """More pods than the store's volume lets in."""
    storage = spec.storage or configuration.storage
    used = needs_store(spec, default_backend(spec)) and storage is not None and storage.claim is not None
    modes = storage.claim.access_modes if used and storage and storage.claim else []
    surges = spec.update.strategy == "Surge"
    if set(modes) != {"ReadWriteOncePod"} or (spec.replicas <= 1 and not surges):
        return []
    return [
        Refusal(
            reason="StoreForOnePod",
            path="spec.replicas" if spec.replicas > 1 else "spec.update.strategy",
            message="the store's volume is mounted by one pod at a time (ReadWriteOncePod), and more would wait for "
            "ever: ask for ReadWriteMany or ReadWriteOnce in storage.claim.accessModes, or serve by one pod at a time",
        )
    ]


def _environment(spec: SpeculativeModelSpec) -> list[Refusal]:
    return [
        Refusal(
            reason="EnvironmentOwned",
            path=f"spec.pod.environment[{index}].name",
            message=f"{variable.name} is set by the operator or decides what its containers run: remove it",
        )
        for index, variable in enumerate(spec.pod.environment)
        if environment.is_owned(variable.name)
    ]


def _release_environment(spec: SpeculativeModelSpec, resolution: Resolution) -> list[Refusal]:
    support = resolution.release.vllm if resolution.backend == "VLLM" else None
    needed = support.environment_for(spec.speculation.method) if support else {}
    return [
        Refusal(
            reason="EnvironmentOwned",
            path=f"spec.pod.environment[{index}].name",
            message=f"{variable.name} must be {needed[variable.name]} with release {resolution.release.name}, and the "
            "operator sets it: remove it",
        )
        for index, variable in enumerate(spec.pod.environment)
        if variable.name in needed
    ]


def _owned(path: str, keys: Iterable[str]) -> list[Refusal]:
    return [
        Refusal(reason="LabelOwned", path=f"{path}[{key}]", message="this key is the operator's: choose another")
        for key in keys
        if labels.is_owned(key)
    ]


def _node_selector(spec: SpeculativeModelSpec, configuration: OperatorConfiguration) -> list[Refusal]:
    product = spec.placement.gpu.product or configuration.gpu_product
    selected = spec.pod.node_selector.get(GPU_PRODUCT_LABEL)
    if product is None or selected in (None, product):
        return []
    return [
        Refusal(
            reason="GpuProductContradiction",
            path=f"spec.pod.nodeSelector[{GPU_PRODUCT_LABEL}]",
            message=f"{selected} contradicts the GPU product {product} of placement.gpu.product or the operator's "
            "default: name the product in placement.gpu.product alone",
        )
    ]
