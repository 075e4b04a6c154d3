"""Where pods run and as whom: the parts of a pod's spec that Jobs and serving share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specdec_operator.api.v1alpha1.pod import Pod
    from specdec_operator.resources.template import JsonObject

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPU_CLAIM = "gpus"
"""The name under which a pod's containers share one resource claim."""


def gpu_claims(template: str | None) -> JsonObject:
    """The pod's claim of GPUs (dynamic resource allocation), where a template is named."""
    if template is None:
        return {}
    return {"resourceClaims": [{"name": GPU_CLAIM, "resourceClaimTemplateName": template}]}


def scheduling(pod: Pod) -> JsonObject:
    """Node selector, tolerations, affinity and classes of a pod; only what is set."""
    parts: JsonObject = {
        "nodeSelector": pod.node_selector,
        "tolerations": [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in pod.tolerations],
        "affinity": pod.affinity.model_dump(by_alias=True, exclude_none=True) if pod.affinity else None,
        "imagePullSecrets": [{"name": name} for name in pod.image_pull_secrets],
        "priorityClassName": pod.priority_class_name,
        "schedulerName": pod.scheduler_name,
        "runtimeClassName": pod.runtime_class_name,
        "serviceAccountName": pod.service_account_name,
    }
    return {key: value for key, value in parts.items() if value}


def on_node(parts: JsonObject, node: str) -> JsonObject:
    """The same scheduling, held to one node: a volume that one node mounts at a time is used where it is.

    An affinity that is not shaped as Kubernetes' own is left as it is: the API server refuses it in its own words.
    """
    if not _is_shaped(parts.get("affinity") or {}):
        return parts
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = dict(parts.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    required = dict(node_affinity.get(_REQUIRED) or {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": [*term.get("matchFields", []), here]} for term in terms]
    node_affinity[_REQUIRED] = required
    return {**parts, "affinity": {**affinity, "nodeAffinity": node_affinity}}


def together(parts: JsonObject, labels: Sequence[str]) -> JsonObject:
    """The same scheduling, on the node of the pods that carry the labels: one node mounts their volume at a time.

    The first such pod goes where it likes: Kubernetes lets a pod that matches its own affinity be the first. An
    affinity that is not shaped as Kubernetes' own is left as it is: the API server refuses it in its own words.
    """
    affinity = dict(parts.get("affinity") or {})
    pod_affinity = affinity.get("podAffinity") or {}
    required = pod_affinity.get(_REQUIRED) or [] if isinstance(pod_affinity, dict) else None
    if not labels or not isinstance(required, list):
        return parts
    beside = [
        {
            "labelSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]},
            "topologyKey": "kubernetes.io/hostname",
        }
        for label in labels
    ]
    return {**parts, "affinity": {**affinity, "podAffinity": {**pod_affinity, _REQUIRED: [*required, *beside]}}}


def _is_shaped(affinity: JsonObject) -> bool:
    node_affinity = affinity.get("nodeAffinity") or {}
    required = isinstance(node_affinity, dict) and (node_affinity.get(_REQUIRED) or {})
    terms = isinstance(required, dict) and (required.get("nodeSelectorTerms") or [])
    return isinstance(terms, list) and all(
        isinstance(term, dict) and isinstance(term.get("matchFields", []), list) for term in terms
    )


def pod_security(pod: Pod) -> JsonObject:
    """The pod's security context: no root, the runtime's default seccomp profile, volumes owned by the group."""
    return {
        "runAsNonRoot": True,
        "runAsUser": pod.run_as_user,
        "runAsGroup": pod.run_as_group,
        "fsGroup": pod.fs_group,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> JsonObject:
    """A container's security context: no capability, no way to gain one."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
