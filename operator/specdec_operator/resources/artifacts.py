"""A planned artifact as a ModelArtifact object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1 import API_VERSION
from specdec_operator.api.v1alpha1.labels import MANAGED_BY
from specdec_operator.resources.labels import OPERATOR, owner_reference

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.resources.template import JsonObject


def model_artifact(request: ArtifactRequest, *, owner: SpeculativeModel) -> JsonObject:
    """The object of an artifact, with its first owner. Owners share it, so none is its controller."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelArtifact",
        "metadata": {
            "name": request.name,
            "namespace": owner.metadata.namespace,
            "labels": {MANAGED_BY: OPERATOR},
            "ownerReferences": [owner_reference("SpeculativeModel", owner.metadata, controller=False)],
        },
        "spec": request.spec.model_dump(by_alias=True, exclude_none=True, mode="json"),
    }
