"""Labels, annotations and names that the operator puts on its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1 import API_VERSION
from specdec_operator.api.v1alpha1.labels import COMPONENT, MANAGED_BY
from specdec_operator.planning.keys import content_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.metadata import ObjectMeta
    from specdec_operator.resources.template import JsonObject

OPERATOR = "specdec-operator"
MODEL = "specdec.dev/model"
ARTIFACT = "specdec.dev/artifact"
REVISION = "specdec.dev/revision"

RETRY = "specdec.dev/retry"
REFRESH = "specdec.dev/refresh"
RESTART = "specdec.dev/restart"
PLACEHOLDER = "specdec.dev/placeholder"
"""Says of a rendered object what was not known and stands in it as zeros; the operator's own objects have none."""
RETRY_BY = "retry.specdec.dev/"
"""On a ModelArtifact: the prefix under which each model that uses it leaves its own `specdec.dev/retry`."""

DOUBTED_AT = "specdec.dev/doubted-at"
"""On a ModelArtifact: when a serving pod last did not find the content that is said to be there."""

FAILED_WAYS = "specdec.dev/failed-ways"
"""On a ModelArtifact: hashes of the specs that failed before this one, so that each is tried once."""

CLAIM_PREFIX = "claim.specdec.dev/"
"""On a serving pod: the prefix of a label per claim whose volume one node mounts at a time."""

SELECTOR = f"{MANAGED_BY}={OPERATOR}"
"""The label selector of everything that the operator makes."""

NO_MESH_LABELS = {"sidecar.istio.io/inject": "false"}
NO_MESH_ANNOTATIONS = {"linkerd.io/inject": "disabled"}


def retry_by(model: str) -> str:
    """The annotation of an artifact that holds a model's request to try again."""
    return f"{RETRY_BY}{model}"


def retries(annotations: Mapping[str, str]) -> str:
    """One word for all requests to try again that an artifact holds; another one when any changed."""
    asked = {key: value for key, value in annotations.items() if key.startswith(RETRY_BY)}
    return content_key(asked)[:16] if asked else ""


def claim_label(claim: str) -> str:
    """The label of pods that mount a claim whose volume one node mounts at a time."""
    return f"{CLAIM_PREFIX}{content_key({'claim': claim})[:16]}"


def model_labels(model: str, component: str) -> dict[str, str]:
    """Labels of an object that belongs to a SpeculativeModel."""
    return {MANAGED_BY: OPERATOR, MODEL: model, COMPONENT: component}


def artifact_labels(artifact: str) -> dict[str, str]:
    """Labels of an object that belongs to a ModelArtifact."""
    return {MANAGED_BY: OPERATOR, ARTIFACT: artifact}


_SERVING = "-serving"


def serving_name(model: str) -> str:
    """The name of a model's Deployment and Service."""
    return f"{model}{_SERVING}"


def model_of_service(name: str) -> str:
    """The model that a Service of this name would be of; empty if it is of none."""
    return name.removesuffix(_SERVING) if name.endswith(_SERVING) else ""


def serving_selector(model: str) -> dict[str, str]:
    """The labels that select a model's serving pods."""
    return {MODEL: model, COMPONENT: "server"}


def owner_reference(
    kind: str, metadata: ObjectMeta, *, api_version: str = API_VERSION, controller: bool = True
) -> JsonObject:
    """An owner reference; garbage collection follows it."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": controller,
        "blockOwnerDeletion": False,
    }
