"""Deployment, Service and store claim of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.quantities import canonical
from specdec_operator.api.v1alpha1.labels import MANAGED_BY
from specdec_operator.resources.labels import (
    OPERATOR,
    model_labels,
    owner_reference,
    serving_name,
    serving_selector,
)
from specdec_operator.runtimes.serving import OPEN_AI_PORT

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.api.v1alpha1.storage import StorageClaim
    from specdec_operator.resources.serving import Revision
    from specdec_operator.resources.template import JsonObject, Templates

_ROLLING_UPDATES = {
    "Replace": {"maxSurge": 0, "maxUnavailable": 1},
    "Surge": {"maxSurge": 1, "maxUnavailable": 0},
}


def deployment(model: SpeculativeModel, revision: Revision, *, templates: Templates) -> JsonObject:
    """The Deployment of a revision. A suspended model keeps it, without pods."""
    spec = model.spec
    return templates.fill(
        "deployment.yaml.j2",
        name=serving_name(model.metadata.name),
        namespace=model.metadata.namespace,
        labels=model_labels(model.metadata.name, "server"),
        owner=owner_reference("SpeculativeModel", model.metadata),
        replicas=0 if spec.suspend else spec.replicas,
        # Longer than a pod may take to start, so that a slow load is not called a failure.
        progress_deadline=spec.update.startup_minutes * 60 + 120,
        selector=serving_selector(model.metadata.name),
        rolling_update=_ROLLING_UPDATES[spec.update.strategy],
        template=_with_twins(revision.template),
    )


def _with_twins(template: JsonObject) -> JsonObject:
    """A pod template with the older spelling of its service account, which the API server fills in from the newer.

    Who owns one of the two alone can't remove it: the other is left, and both come back from it.
    """
    spec = template["spec"]
    if "serviceAccountName" not in spec:
        return template
    return {**template, "spec": {**spec, "serviceAccount": spec["serviceAccountName"]}}


def service(model: SpeculativeModel, *, templates: Templates) -> JsonObject:
    """The Service: ready pods of any revision."""
    return templates.fill(
        "service.yaml.j2",
        name=serving_name(model.metadata.name),
        namespace=model.metadata.namespace,
        labels=model_labels(model.metadata.name, "server"),
        annotations=model.spec.service.annotations,
        owner=owner_reference("SpeculativeModel", model.metadata),
        type=model.spec.service.type,
        open_ai_port=OPEN_AI_PORT if model.spec.serving.open_ai_front_end else None,
        selector=serving_selector(model.metadata.name),
    )


def store_claim(claim: StorageClaim, *, namespace: str) -> JsonObject:
    """The store's claim. It has no owner: downloaded models and built engines outlive the models that use them."""
    spec: JsonObject = {
        "accessModes": list(claim.access_modes),
        "resources": {"requests": {"storage": canonical(claim.size)}},
    }
    if claim.storage_class_name is not None:
        spec["storageClassName"] = claim.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim.claim_name, "namespace": namespace, "labels": {MANAGED_BY: OPERATOR}},
        "spec": spec,
    }
