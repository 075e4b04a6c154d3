"""What a model asks of the store: artifacts by name, and how the content of a source becomes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import FetchInput, InspectInput, MountedModel
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.planning.keys import short

if TYPE_CHECKING:
    from specdec_operator.planning.pods import JobSettings


@dataclass(frozen=True, kw_only=True)
class ArtifactRequest:
    """An artifact that a model needs.

    Attributes:
        role: What the model uses it for: target, draft, target-engine, draft-engine, assembly.
        name: The ModelArtifact's name, the same for every model that needs the same content in the same claim.
        yields: Where the content will lie; None for an assembly.
    """

    role: str
    name: str
    spec: ModelArtifactSpec
    yields: MountedModel | None


@dataclass(frozen=True, kw_only=True)
class Acquisition:
    """How the content of one source comes to lie where Jobs and pods read it.

    Attributes:
        key: Hash of all that decides the content and its place.
        work: What fetches or inspects it.
        place: Where it will lie.
    """

    key: str
    work: FetchInput | InspectInput
    place: MountedModel

    def request(self, *, role: str, prefix: str, settings: JobSettings) -> ArtifactRequest:
        """The artifact that holds the content.

        Args:
            prefix: Of the artifact's name.
        """
        spec = ModelArtifactSpec(
            type="Model",
            key=self.key,
            claim_name=self.place.claim_name,
            fetch=self.work if isinstance(self.work, FetchInput) else None,
            inspect=self.work if isinstance(self.work, InspectInput) else None,
            **settings,
        )
        return ArtifactRequest(role=role, name=f"{prefix}-{short(self.key)}", spec=spec, yields=self.place)
