"""Which models to fetch or inspect: the artifacts that a spec needs before anything can be planned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import FetchInput, InspectInput, MountedModel
from specdec_operator.api.v1alpha1.status import Pin
from specdec_operator.planning.artifact_request import Acquisition
from specdec_operator.planning.keys import content_key, short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.source import HuggingFaceSource, ModelSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.planning.resolution import Resolution


def acquire(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    configuration: OperatorConfiguration,
    pins: Sequence[Pin] = (),
    refresh: str = "",
) -> tuple[ArtifactRequest, ...]:
    """The models to fetch or inspect, target first.

    Args:
        pins: What status keeps: a moving revision that was resolved once is asked for by its commit from then on.
        refresh: The value of the annotation `specdec.dev/refresh`; a new one asks for moving revisions anew.
    """
    settings, claim = resolution.jobs, resolution.store_claim or ""
    models = [("target", spec.target.source)] + ([("draft", spec.draft.source)] if spec.draft else [])
    requests = (
        _acquisition(role, source, claim=claim, configuration=configuration, refresh=refresh).request(
            role=role, prefix="model", settings=settings
        )
        for role, source in models
    )
    return tuple(at_pinned_commit(request, pins) for request in requests)


def commit_pins(
    requests: Sequence[ArtifactRequest], pins: Sequence[Pin], *, commits: Mapping[str, str]
) -> tuple[Pin, ...]:
    """The pins of moving revisions: those kept that still apply, and new ones for commits that were found.

    Args:
        pins: What status keeps.
        commits: Commit per role, as far as models are fetched.
    """
    found = (_kept(request, pins) or _new_pin(request, commits.get(request.role, "")) for request in requests)
    return tuple(pin for pin in found if pin)


def at_pinned_commit(request: ArtifactRequest, pins: Sequence[Pin]) -> ArtifactRequest:
    """The request with its moving revision replaced by the commit that a pin keeps; as it is where none does."""
    pin, fetch = _kept(request, pins), request.spec.fetch
    if pin is None or fetch is None:
        return request
    pinned = fetch.model_copy(update={"revision": pin.value})
    return replace(request, spec=request.spec.model_copy(update={"fetch": pinned}))


def _kept(request: ArtifactRequest, pins: Sequence[Pin]) -> Pin | None:
    wanted = (_pin_name(request), _pin_governor(request))
    return next((pin for pin in pins if (pin.name, pin.governed_by) == wanted), None)


def _new_pin(request: ArtifactRequest, commit: str) -> Pin | None:
    fetch = request.spec.fetch
    if fetch is None or not commit or commit == fetch.revision:
        return None
    return Pin(
        name=_pin_name(request),
        value=commit,
        reason=f"the commit of {fetch.revision} when it was fetched",
        governed_by=_pin_governor(request),
    )


def _pin_name(request: ArtifactRequest) -> str:
    role, _, texts = request.role.partition("-")
    inside = ".quantization.calibration" if texts else ""
    return f"{role}{inside}.source.huggingFace.revision"


def _pin_governor(request: ArtifactRequest) -> str:
    return content_key({"artifact": request.name})


def _acquisition(
    role: str, source: ModelSource, *, claim: str, configuration: OperatorConfiguration, refresh: str
) -> Acquisition:
    work: FetchInput | InspectInput
    if source.hugging_face:
        endpoint = source.hugging_face.endpoint or configuration.hugging_face_endpoint
        work = _fetch(source.hugging_face, endpoint=endpoint, claim=claim, refresh=refresh)
        place = MountedModel(claim_name=claim, sub_path=work.directory)
    elif source.persistent_volume_claim:
        held = source.persistent_volume_claim
        work = InspectInput(sub_path=held.sub_path or "")
        place = MountedModel(claim_name=held.claim_name, sub_path=work.sub_path)
    elif source.image:
        image = {"image": source.image.reference, "image_pull_policy": source.image.pull_policy}
        work = InspectInput(sub_path=source.image.sub_path or "", **image)
        place = MountedModel(sub_path=work.sub_path, **image)
    else:
        raise ValueError(f"{role}: a source without a member passed the API's rules")
    return Acquisition(
        key=_key(place, inspected=isinstance(work, InspectInput), refresh=refresh), work=work, place=place
    )


def _key(place: MountedModel, *, inspected: bool, refresh: str) -> str:
    origin = {"claim": place.claim_name} if place.claim_name else {"image": place.image}
    return content_key({"directory": place.sub_path, **origin, "inspected": inspected, "refresh": refresh})


def _fetch(source: HuggingFaceSource, *, endpoint: str, claim: str, refresh: str) -> FetchInput:
    revision = source.revision or "main"
    key = content_key(
        {
            "repository": source.repository,
            "revision": revision,
            "endpoint": endpoint,
            "claim": claim,
            "refresh": refresh,
            # What is left out of a model makes another one; whoever names no patterns shares what is there.
            **({"allow": source.allow_patterns} if source.allow_patterns else {}),
            **({"ignore": source.ignore_patterns} if source.ignore_patterns else {}),
        }
    )
    return FetchInput(
        repository=source.repository,
        revision=revision,
        endpoint=endpoint,
        token_secret_ref=source.token_secret_ref,
        directory=f"models/{short(key)}",
        allow_patterns=source.allow_patterns,
        ignore_patterns=source.ignore_patterns,
    )
