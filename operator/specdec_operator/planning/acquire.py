"""Which models to fetch or inspect: the artifacts that a spec needs before anything can be planned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import FetchInput, InspectInput, MountedModel
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.api.v1alpha1.pod import Toleration
from specdec_operator.api.v1alpha1.status import Pin
from specdec_operator.planning.keys import content_key, short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.pod import Pod
    from specdec_operator.api.v1alpha1.source import HuggingFaceSource, ModelSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"


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
    pod = job_pod(spec, resolution)
    models = [("target", spec.target.source)] + ([("draft", spec.draft.source)] if spec.draft else [])
    requests = (
        _request(role, source, pod=pod, resolution=resolution, configuration=configuration, refresh=refresh)
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


def placed_pod(spec: SpeculativeModelSpec, resolution: Resolution) -> Pod:
    """The scheduling of every pod of a model, Jobs too: the first consumer of a volume binds it where the GPUs are.

    GPU nodes are often tainted with the resource's name, so that taint is tolerated.
    """
    resource = spec.placement.gpu.extended_resource or "nvidia.com/gpu"
    tolerations = list(spec.pod.tolerations)
    if not any(toleration.key == resource for toleration in tolerations):
        tolerations.append(Toleration(key=resource, operator="Exists"))
    product = {GPU_PRODUCT_LABEL: resolution.gpu_product} if resolution.gpu_product else {}
    return spec.pod.model_copy(
        update={"node_selector": {**spec.pod.node_selector, **product}, "tolerations": tolerations}
    )


def job_pod(spec: SpeculativeModelSpec, resolution: Resolution) -> Pod:
    """The part of a model's pod settings that its Jobs take: models that differ in the rest share artifacts."""
    only_serving = ("labels", "annotations", "environment", "server_resources")
    defaults = {name: type(spec.pod).model_fields[name].get_default(call_default_factory=True) for name in only_serving}
    return placed_pod(spec, resolution).model_copy(update=defaults)


def _request(
    role: str,
    source: ModelSource,
    *,
    pod: Pod,
    resolution: Resolution,
    configuration: OperatorConfiguration,
    refresh: str,
) -> ArtifactRequest:
    fetch, inspect = None, None
    if source.hugging_face:
        claim = resolution.store_claim or ""
        endpoint = source.hugging_face.endpoint or configuration.hugging_face_endpoint
        fetch = _fetch(source.hugging_face, endpoint=endpoint, claim=claim, refresh=refresh)
        directory = fetch.directory
        yields = MountedModel(claim_name=claim, sub_path=directory)
    elif source.persistent_volume_claim:
        claim = source.persistent_volume_claim.claim_name
        directory = source.persistent_volume_claim.sub_path or ""
        inspect = InspectInput(sub_path=directory)
        yields = MountedModel(claim_name=claim, sub_path=directory)
    elif source.image:
        claim, directory = None, source.image.sub_path or ""
        held = {"image": source.image.reference, "image_pull_policy": source.image.pull_policy}
        inspect = InspectInput(sub_path=directory, **held)
        yields = MountedModel(sub_path=directory, **held)
    else:
        raise ValueError(f"{role}: a source without a member passed the API's rules")
    place = {"claim": claim} if claim else {"image": yields.image}
    key = content_key({"directory": directory, **place, "inspected": bool(inspect), "refresh": refresh})
    return ArtifactRequest(
        role=role,
        name=f"model-{short(key)}",
        spec=ModelArtifactSpec(
            type="Model",
            key=key,
            image=resolution.image.reference,
            image_pull_policy=resolution.image.pull_policy,
            claim_name=claim,
            fetch=fetch,
            inspect=inspect,
            pod=pod,
        ),
        yields=yields,
    )


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
