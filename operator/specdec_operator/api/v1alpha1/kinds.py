"""The kinds of version v1alpha1, and how `kubectl` shows them."""

from __future__ import annotations

from typing import Final

from specdec_operator.api.crd import CustomResource, PrinterColumn
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact, ModelArtifactStatus
from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
from specdec_operator.api.v1alpha1.status import SpeculativeModelStatus

_AGE = PrinterColumn(name="Age", path=".metadata.creationTimestamp", type="date")

SPECULATIVE_MODEL: Final = CustomResource(
    model=SpeculativeModel,
    initial_status=SpeculativeModelStatus(),
    plural="speculativemodels",
    short_names=("specmodel",),
    columns=(
        PrinterColumn(name="Method", path=".spec.speculation.method"),
        PrinterColumn(name="Backend", path=".status.backend"),
        PrinterColumn(name="Status", path='.status.conditions[?(@.type=="Ready")].reason'),
        PrinterColumn(name="Ready", path='.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn(name="Replicas", path=".status.replicas", type="integer"),
        PrinterColumn(name="Endpoint", path=".status.endpoint.http", wide=True),
        _AGE,
    ),
    scales=True,
)
MODEL_ARTIFACT: Final = CustomResource(
    model=ModelArtifact,
    initial_status=ModelArtifactStatus(),
    plural="modelartifacts",
    columns=(
        PrinterColumn(name="Type", path=".spec.type"),
        PrinterColumn(name="State", path=".status.state"),
        PrinterColumn(name="Reason", path=".status.reason"),
        PrinterColumn(name="Attempts", path=".status.attempts", type="integer"),
        _AGE,
    ),
)
KINDS: Final = (SPECULATIVE_MODEL, MODEL_ARTIFACT)
