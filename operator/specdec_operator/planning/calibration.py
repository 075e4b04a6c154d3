"""Texts that a quantizer looks at: data sets that are fetched once, or directories that a claim holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.model_artifact import FetchInput, ModelArtifactSpec, MountedModel
from specdec_operator.planning.acquire import ArtifactRequest, job_pod
from specdec_operator.planning.engine_limits import engine_roles
from specdec_operator.planning.engine_rules import is_prebuilt
from specdec_operator.planning.keys import content_key, short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.quantization import CalibrationSource
    from specdec_operator.api.v1alpha1.source import HuggingFaceSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution


def acquire_texts(
    spec: SpeculativeModelSpec, resolution: Resolution, *, configuration: OperatorConfiguration, refresh: str = ""
) -> tuple[ArtifactRequest, ...]:
    """The data sets to fetch before engines are built; their roles are `target-calibration`, `draft-calibration`.

    Args:
        refresh: The value of the annotation `specdec.dev/refresh`; a new one asks for moving revisions anew.
    """
    if resolution.backend != "TensorRTEngine":
        return ()
    built = [role for role in engine_roles(spec) if not is_prebuilt(role, spec)]
    sources = {role: source.hugging_face for role in built if (source := _source(role, spec))}
    return tuple(
        _request(f"{role}-calibration", source, resolution, spec=spec, configuration=configuration, refresh=refresh)
        for role, source in sources.items()
        if source
    )


def texts_of(role: str, spec: SpeculativeModelSpec, places: Mapping[str, MountedModel]) -> MountedModel | None:
    """Where the texts of a role's quantizer lie; None if it uses its own.

    Args:
        places: Where fetched data sets lie, by role as `acquire_texts` names them.

    Raises:
        KeyError: A data set is to be fetched, and its place is not given.
    """
    source = _source(role, spec)
    if source is None:
        return None
    claim = source.persistent_volume_claim
    if claim:
        return MountedModel(claim_name=claim.claim_name, sub_path=claim.sub_path or "")
    return places[f"{role}-calibration"]


def _source(role: str, spec: SpeculativeModelSpec) -> CalibrationSource | None:
    model = (spec.draft if role == "draft" else spec.target) or spec.target
    calibration = model.quantization.calibration if model.quantization else None
    return calibration.source if calibration else None


def _request(
    role: str,
    source: HuggingFaceSource,
    resolution: Resolution,
    *,
    spec: SpeculativeModelSpec,
    configuration: OperatorConfiguration,
    refresh: str,
) -> ArtifactRequest:
    claim = resolution.store_claim or ""
    endpoint = source.endpoint or configuration.hugging_face_endpoint
    origin = {**source.model_dump(exclude={"token_secret_ref"}), "endpoint": endpoint, "refresh": refresh}
    key = content_key({**origin, "content": "DataSet", "claim": claim})
    # The quantizer knows some data sets by the name of their directory.
    directory = f"texts/{short(key)}/{source.repository.rpartition('/')[2]}"
    fetch = FetchInput(
        content="DataSet",
        repository=source.repository,
        revision=source.revision or "main",
        endpoint=endpoint,
        token_secret_ref=source.token_secret_ref,
        directory=directory,
        allow_patterns=source.allow_patterns,
        ignore_patterns=source.ignore_patterns,
    )
    return ArtifactRequest(
        role=role,
        name=f"texts-{short(key)}",
        spec=ModelArtifactSpec(
            type="Model",
            key=key,
            image=resolution.image.reference,
            image_pull_policy=resolution.image.pull_policy,
            claim_name=claim,
            fetch=fetch,
            pod=job_pod(spec, resolution),
        ),
        yields=MountedModel(claim_name=claim, sub_path=directory),
    )
