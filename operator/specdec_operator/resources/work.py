"""What each kind of artifact asks of its Job: a program, its input, and what both need in the pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import (
    AssembleInput,
    BuildInput,
    DriverFloor,
    FetchInput,
    InspectInput,
    MountedModel,
    PrebuiltInput,
)
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.planning.engines import PREBUILT_DIRECTORY
from specdec_operator.pod import driver, inputs
from specdec_operator.resources.volumes import claim_volume, mount, mounted
from specdec_operator.runtimes.serving import REPOSITORY

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
    from specdec_operator.resources.template import JsonObject

STORE = "/store"
MODEL = "/model"
HEAD = "/head"
CALIBRATION = "/calibration"
_STORE_NAME = "store"
_STORE_MOUNT = {"name": _STORE_NAME, "mountPath": STORE}


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one kind of artifact asks of its Job.

    Attributes:
        program: The pod's program.
        document: What the program reads (JSON).
        gpu: Whether it needs the artifact's GPUs.
    """

    program: str
    document: str
    mounts: tuple[JsonObject, ...] = ()
    volumes: tuple[JsonObject, ...] = ()
    environment: tuple[JsonObject, ...] = ()
    gpu: bool = False


def work_of(artifact: ModelArtifact, *, verify: bool) -> Work:
    """What the Job of an artifact does.

    Args:
        verify: For an engine: only look whether it is already there, without a GPU.

    Raises:
        ValueError: The artifact names no work, which the API's rules refuse.
    """
    claim = artifact.spec.claim_name or ""
    match artifact.spec:
        case ModelArtifactSpec(fetch=FetchInput() as fetch):
            # Fetched again after a loss, a moving revision stays what it was.
            return _fetch(fetch, claim, revision=artifact.status.commit or fetch.revision)
        case ModelArtifactSpec(inspect=InspectInput() as inspect):
            return _inspect(inspect, claim)
        case ModelArtifactSpec(build=BuildInput() as build) if verify:
            return _verify(build, claim)
        case ModelArtifactSpec(build=BuildInput() as build, gpu=gpu):
            return _build(build, claim, product=gpu.product if gpu else "")
        case ModelArtifactSpec(prebuilt=PrebuiltInput() as prebuilt):
            return _prebuilt(prebuilt, claim)
        case ModelArtifactSpec(assemble=AssembleInput() as assemble):
            return _assemble(assemble)
    raise ValueError(f"{artifact.metadata.name}: an artifact without work passed the API's rules")


def _fetch(fetch: FetchInput, claim: str, *, revision: str) -> Work:
    document = inputs.FetchInput(
        content=fetch.content,
        repository=fetch.repository,
        revision=revision,
        endpoint=fetch.endpoint,
        store=STORE,
        directory=fetch.directory,
        allow_patterns=tuple(fetch.allow_patterns),
        ignore_patterns=tuple(fetch.ignore_patterns),
    )
    secret = fetch.token_secret_ref
    token = [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": secret.model_dump()}}] if secret else []
    # The client's own transfer protocol buffers more than the Job asks for; plain HTTP resumes as well.
    plain = {"name": "HF_HUB_DISABLE_XET", "value": "1"}
    return Work(
        program="fetch",
        document=document.to_json(),
        environment=(plain, *token),
        mounts=(_STORE_MOUNT,),
        volumes=(claim_volume(_STORE_NAME, claim),),
    )


def _inspect(inspect: InspectInput, claim: str) -> Work:
    place = MountedModel(
        claim_name=claim or None,
        image=inspect.image,
        image_pull_policy=inspect.image_pull_policy,
        sub_path=inspect.sub_path,
    )
    model = mounted([(place, MODEL)], prefix="model")
    document = inputs.InspectInput(directory=MODEL, content=inspect.content)
    return Work(program="inspect_model", document=document.to_json(), mounts=model.mounts, volumes=model.volumes)


def _verify(build: BuildInput, claim: str) -> Work:
    engine = inputs.VerifyEngineInput(directory=f"{STORE}/{build.directory}", ranks=build.ranks)
    return Work(
        program="verify_engine",
        document=engine.to_json(),
        mounts=(_STORE_MOUNT,),
        volumes=(claim_volume(_STORE_NAME, claim),),
    )


def _build(build: BuildInput, claim: str, *, product: str) -> Work:
    places = _build_places(build)
    # One claim is one volume: what else lies in the store is mounted from there.
    inside = [mount(_STORE_NAME, model.sub_path, path) for model, path in places if model.claim_name == claim]
    outside = mounted([place for place in places if place[0].claim_name != claim], prefix="model")
    return Work(
        program="build",
        document=_build_document(build, calibration=places[-1][1] if build.calibration else "", product=product),
        mounts=(_STORE_MOUNT, *inside, *outside.mounts),
        volumes=(claim_volume(_STORE_NAME, claim), *outside.volumes),
        gpu=True,
    )


def _build_document(build: BuildInput, *, calibration: str, product: str) -> str:
    document = inputs.BuildInput(
        model=MODEL,
        head=HEAD if build.head else "",
        calibration=calibration,
        store=STORE,
        directory=build.directory,
        steps=tuple(inputs.BuildStep(name=step.name, argv=tuple(step.argv)) for step in build.steps),
        ranks=build.ranks,
        tensorrt_llm_version=build.tensorrt_llm_version or "",
        gpu_product=product,
        driver=_driver_floor(build.driver),
        scratch_bytes=build.scratch_bytes or 3 * build.weight_bytes,
    )
    return document.to_json()


def _driver_floor(floor: DriverFloor | None) -> driver.DriverFloor:
    if floor is None:
        return driver.ANY_DRIVER
    return driver.DriverFloor(minimum=floor.minimum, data_center=tuple(floor.data_center), source=floor.source)


def _build_places(build: BuildInput) -> list[tuple[MountedModel, str]]:
    places = [(build.model, MODEL)]
    if build.head:
        places.append((build.head, HEAD))
    if build.calibration:
        # The quantizer knows the columns of cnn_dailymail by the directory's name.
        name = build.calibration.sub_path.rpartition("/")[2] or "texts"
        places.append((build.calibration, f"{CALIBRATION}/{name}"))
    return places


def _prebuilt(prebuilt: PrebuiltInput, claim: str) -> Work:
    place = MountedModel(claim_name=claim, sub_path=prebuilt.sub_path)
    engine = mounted([(place, PREBUILT_DIRECTORY)], prefix="engine")
    return Work(program="inspect_engine", document=prebuilt.expectation, mounts=engine.mounts, volumes=engine.volumes)


def _assemble(assemble: AssembleInput) -> Work:
    return Work(
        program="assemble",
        document=assemble.repository,
        mounts=({"name": "repository", "mountPath": REPOSITORY},),
        volumes=({"name": "repository", "emptyDir": {}},),
    )
