"""Texts that a quantizer looks at: data sets that are fetched once, or directories that a claim holds.

Their content decides an engine's, so each is an artifact with facts: the commit, or a digest of what a claim holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import FetchInput, InspectInput, MountedModel
from specdec_operator.planning.acquire import at_pinned_commit
from specdec_operator.planning.artifact_request import Acquisition
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
    from specdec_operator.planning.artifact_request import ArtifactRequest
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
    settings, store = resolution.jobs, resolution.store_claim or ""
    requests = (
        _acquisition(role, source, store=store, configuration=configuration, refresh=refresh).request(
            role=f"{role}-calibration", prefix="texts", settings=settings
        )
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


def _acquisition(
    role: str, source: CalibrationSource, *, store: str, configuration: OperatorConfiguration, refresh: str
) -> Acquisition:
    if source.persistent_volume_claim:
        return _inspected(source.persistent_volume_claim, refresh=refresh)
    if source.hugging_face:
        endpoint = source.hugging_face.endpoint or configuration.hugging_face_endpoint
        return _fetched(source.hugging_face, endpoint=endpoint, claim=store, refresh=refresh)
    raise ValueError(f"{role}: a source without a member passed the API's rules")


def _fetched(source: HuggingFaceSource, *, endpoint: str, claim: str, refresh: str) -> Acquisition:
    origin = {
        **source.model_dump(exclude={"token_secret_ref", "allow_plain_http"}),
        "endpoint": endpoint,
        "refresh": refresh,
    }
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
    return Acquisition(key=key, work=fetch, place=MountedModel(claim_name=claim, sub_path=directory))


def _inspected(source: ClaimSource, *, refresh: str) -> Acquisition:
    directory = source.sub_path or ""
    key = content_key({"content": "DataSet", "claim": source.claim_name, "directory": directory, "refresh": refresh})
    place = MountedModel(claim_name=source.claim_name, sub_path=directory)
    return Acquisition(key=key, work=InspectInput(content="DataSet", sub_path=directory), place=place)
