"""Texts that a quantizer looks at: data sets that are fetched once, or directories that a claim holds.

Their content decides an engine's, so each is an artifact with facts: the commit, or a digest of what a claim holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import FetchInput, InspectInput, MountedModel
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.planning.acquire import ArtifactRequest, at_pinned_commit, job_pod
from specdec_operator.planning.engine_limits import engine_roles
from specdec_operator.planning.engine_rules import is_prebuilt
from specdec_operator.planning.keys import content_key, short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.model_facts import DataSetFacts
    from specdec_operator.api.v1alpha1.quantization import CalibrationSource
    from specdec_operator.api.v1alpha1.source import ClaimSource, HuggingFaceSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.api.v1alpha1.status import Pin
    from specdec_operator.planning.resolution import Resolution


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The texts of one quantizer.

    Attributes:
        place: Where they lie.
        content: What tells them from others, for an engine's key.
    """

    place: MountedModel
    content: Mapping[str, object]


def acquire_texts(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    configuration: OperatorConfiguration,
    pins: Sequence[Pin] = (),
    refresh: str = "",
) -> tuple[ArtifactRequest, ...]:
    """The data sets to fetch or inspect before engines are planned; roles: `target-calibration`, `draft-calibration`.

    Args:
        pins: What status keeps: a moving revision that was resolved once is asked for by its commit from then on.
        refresh: The value of the annotation `specdec.dev/refresh`; a new one asks for moving revisions anew.
    """
    if resolution.backend != "TensorRTEngine":
        return ()
    built = [role for role in engine_roles(spec) if not is_prebuilt(role, spec)]
    requests = (
        _request(role, source, resolution, spec=spec, configuration=configuration, refresh=refresh)
        for role in built
        if (source := _source(role, spec))
    )
    return tuple(at_pinned_commit(request, pins) for request in requests)


def texts_of(
    role: str,
    spec: SpeculativeModelSpec,
    places: Mapping[str, MountedModel],
    data_sets: Mapping[str, DataSetFacts],
) -> Texts | None:
    """The texts of a role's quantizer; None if it uses its own.

    Args:
        places: Where data sets lie, by role as `acquire_texts` names them.
        data_sets: Their facts, likewise.

    Raises:
        KeyError: A place or facts are not given.
    """
    source = _source(role, spec)
    if source is None:
        return None
    place, found = places[f"{role}-calibration"], data_sets[f"{role}-calibration"]
    content: dict[str, object] = {"revision": found.revision, "directory": place.sub_path.rpartition("/")[2]}
    hub = source.hugging_face
    if hub and (hub.allow_patterns or hub.ignore_patterns):
        content["patterns"] = [hub.allow_patterns, hub.ignore_patterns]
    return Texts(place=place, content=content)


def _source(role: str, spec: SpeculativeModelSpec) -> CalibrationSource | None:
    model = (spec.draft if role == "draft" else spec.target) or spec.target
    calibration = model.quantization.calibration if model.quantization else None
    return calibration.source if calibration else None


def _request(
    role: str,
    source: CalibrationSource,
    resolution: Resolution,
    *,
    spec: SpeculativeModelSpec,
    configuration: OperatorConfiguration,
    refresh: str,
) -> ArtifactRequest:
    claim = source.persistent_volume_claim
    if claim:
        request = _inspected(claim, refresh=refresh)
    elif source.hugging_face:
        endpoint = source.hugging_face.endpoint or configuration.hugging_face_endpoint
        request = _fetched(source.hugging_face, endpoint=endpoint, claim=resolution.store_claim or "", refresh=refresh)
    else:
        raise ValueError(f"{role}: a source without a member passed the API's rules")
    return ArtifactRequest(
        role=f"{role}-calibration",
        name=f"texts-{short(request.key)}",
        spec=ModelArtifactSpec(
            type="Model",
            key=request.key,
            image=resolution.image.reference,
            image_pull_policy=resolution.image.pull_policy,
            claim_name=request.place.claim_name,
            fetch=request.work if isinstance(request.work, FetchInput) else None,
            inspect=request.work if isinstance(request.work, InspectInput) else None,
            pod=job_pod(spec, resolution),
        ),
        yields=request.place,
    )


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What gets the texts of one source, the key of all that decides it, and where they will lie."""

    key: str
    work: FetchInput | InspectInput
    place: MountedModel


def _fetched(source: HuggingFaceSource, *, endpoint: str, claim: str, refresh: str) -> _Request:
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
    return _Request(key=key, work=fetch, place=MountedModel(claim_name=claim, sub_path=directory))


def _inspected(source: ClaimSource, *, refresh: str) -> _Request:
    directory = source.sub_path or ""
    key = content_key({"content": "DataSet", "claim": source.claim_name, "directory": directory, "refresh": refresh})
    place = MountedModel(claim_name=source.claim_name, sub_path=directory)
    return _Request(key=key, work=InspectInput(content="DataSet", sub_path=directory), place=place)
