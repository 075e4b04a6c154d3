"""The Job of an artifact and the ConfigMap that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.model_artifact import MountedModel
from specdec_operator.planning import quantities
from specdec_operator.planning.engines import PREBUILT_DIRECTORY
from specdec_operator.pod import inputs
from specdec_operator.resources.labels import (
    NO_MESH_ANNOTATIONS,
    NO_MESH_LABELS,
    artifact_labels,
    owner_reference,
)
from specdec_operator.resources.programs import (
    config_map,
    plain_environment,
    program_arguments,
    program_data,
    program_volume,
)
from specdec_operator.resources.scheduling import (
    GPU_CLAIM,
    container_security,
    gpu_claims,
    on_node,
    pod_security,
    scheduling,
)
from specdec_operator.resources.volumes import mounted
from specdec_operator.runtimes.environment import SCRATCH, scratch_environment, without_gpu
from specdec_operator.runtimes.serving import REPOSITORY

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import BuildInput, ModelArtifact
    from specdec_operator.resources.template import JsonObject, Templates

STORE = "/store"
MODEL = "/model"
HEAD = "/head"
CALIBRATION = "/calibration"
_GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What one kind of artifact asks of its Job."""

    program: str
    document: str
    mounts: tuple[JsonObject, ...] = ()
    volumes: tuple[JsonObject, ...] = ()
    environment: tuple[JsonObject, ...] = ()
    resources: JsonObject | None = None
    gpu: bool = False


@dataclass(frozen=True, kw_only=True)
class JobObjects:
    """A Job and what it needs, in the order in which they are created."""

    config_map: JsonObject
    job: JsonObject


def job_name(artifact: str, *, attempt: int, verify: bool = False) -> str:
    """The name of an attempt's Job, counted from 1: creating one attempt twice is one Job."""
    return f"{artifact}-{attempt}{'-verify' if verify else ''}"


def render_job(
    artifact: ModelArtifact, *, name: str, templates: Templates, verify: bool = False, node: str | None = None
) -> JobObjects:
    """The Job of one attempt.

    Args:
        name: The Job's name; one attempt is one name, so that creating it twice is one Job.
        verify: For an engine: only look whether it is already there, without a GPU.
        node: The node that holds a volume which only one node mounts at a time.
    """
    work = _work(artifact, verify=verify)
    metadata = artifact.metadata
    labels = artifact_labels(metadata.name)
    owner = owner_reference("ModelArtifact", metadata)
    files = config_map(
        prefix=metadata.name,
        namespace=metadata.namespace,
        labels=labels,
        owner=owner,
        data=program_data({work.program: work.document}),
    )
    pod = artifact.spec.pod
    claims = gpu_claims(artifact.spec.gpu.resource_claim_template) if work.gpu and artifact.spec.gpu else {}
    environment = {**scratch_environment(), **({} if work.gpu else without_gpu())}
    job = templates.fill(
        "job.yaml.j2",
        name=name,
        namespace=metadata.namespace,
        labels=labels,
        owner=owner,
        pod_labels={**labels, **NO_MESH_LABELS},
        pod_annotations=NO_MESH_ANNOTATIONS,
        scheduling={**(on_node(scheduling(pod), node) if node else scheduling(pod)), **claims},
        pod_security=pod_security(pod),
        container_security=container_security(),
        image=artifact.spec.image,
        pull_policy=artifact.spec.image_pull_policy,
        arguments=program_arguments(work.program),
        environment=[*plain_environment(environment), *work.environment, _pod_uid()],
        resources=_resources(artifact, work),
        mounts=[*_program_mounts(), *work.mounts],
        volumes=[
            program_volume(files["metadata"]["name"], files["data"]),
            {"name": "scratch", "emptyDir": {}},
            *work.volumes,
        ],
    )
    return JobObjects(config_map=files, job=job)


def _work(artifact: ModelArtifact, *, verify: bool) -> _Work:
    spec = artifact.spec
    if spec.fetch:
        document = inputs.FetchInput(
            content=spec.fetch.content,
            repository=spec.fetch.repository,
            # Fetched again after a loss, a moving revision stays what it was.
            revision=artifact.status.commit or spec.fetch.revision,
            endpoint=spec.fetch.endpoint,
            store=STORE,
            directory=spec.fetch.directory,
            allow_patterns=tuple(spec.fetch.allow_patterns),
            ignore_patterns=tuple(spec.fetch.ignore_patterns),
        )
        secret = spec.fetch.token_secret_ref
        token = [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": secret.model_dump()}}] if secret else []
        # The client's own transfer protocol buffers more than the Job asks for; plain HTTP resumes as well.
        plain = {"name": "HF_HUB_DISABLE_XET", "value": "1"}
        return _Work(
            program="fetch", document=document.to_json(), environment=(plain, *token), **_store(spec.claim_name)
        )
    if spec.inspect:
        place = MountedModel(
            claim_name=spec.claim_name,
            image=spec.inspect.image,
            image_pull_policy=spec.inspect.image_pull_policy,
            sub_path=spec.inspect.sub_path,
        )
        model = mounted([(place, MODEL)], prefix="model")
        return _Work(
            program="inspect_model",
            document=inputs.InspectInput(directory=MODEL, content=spec.inspect.content).to_json(),
            mounts=model.mounts,
            volumes=model.volumes,
        )
    if spec.build and verify:
        engine = inputs.VerifyEngineInput(directory=f"{STORE}/{spec.build.directory}", ranks=spec.build.ranks)
        return _Work(program="verify_engine", document=engine.to_json(), **_store(spec.claim_name))
    if spec.build:
        return _build(spec.build, spec.claim_name, product=spec.gpu.product if spec.gpu else "")
    if spec.prebuilt:
        place = MountedModel(claim_name=spec.claim_name, sub_path=spec.prebuilt.sub_path)
        engine_mount = mounted([(place, PREBUILT_DIRECTORY)], prefix="engine")
        return _Work(
            program="inspect_engine",
            document=spec.prebuilt.expectation,
            mounts=engine_mount.mounts,
            volumes=engine_mount.volumes,
        )
    if spec.assemble:
        output = {"name": "repository", "mountPath": REPOSITORY}
        return _Work(
            program="assemble",
            document=spec.assemble.repository,
            mounts=(output,),
            volumes=({"name": "repository", "emptyDir": {}},),
        )
    raise ValueError(f"{artifact.metadata.name}: an artifact without work passed the API's rules")


def _build(build: BuildInput, claim: str | None, *, product: str) -> _Work:
    places = _build_places(build)
    document = inputs.BuildInput(
        model=MODEL,
        head=HEAD if build.head else "",
        calibration=places[-1][1] if build.calibration else "",
        store=STORE,
        directory=build.directory,
        steps=tuple(inputs.BuildStep(name=step.name, argv=tuple(step.argv)) for step in build.steps),
        ranks=build.ranks,
        tensorrt_llm_version=build.tensorrt_llm_version or "",
        gpu_product=product,
        scratch_bytes=build.scratch_bytes or 3 * build.weight_bytes,
    )
    store = _store(claim)
    outside = mounted([place for place in places if place[0].claim_name != claim], prefix="model")
    inside = [
        _mounted_claim("store", claim, m.sub_path, path)["mounts"][0] for m, path in places if m.claim_name == claim
    ]
    return _Work(
        program="build",
        document=document.to_json(),
        mounts=(*store["mounts"], *inside, *outside.mounts),
        volumes=(*store["volumes"], *outside.volumes),
        gpu=True,
    )


def _build_places(build: BuildInput) -> list[tuple[MountedModel, str]]:
    places = [(build.model, MODEL)]
    if build.head:
        places.append((build.head, HEAD))
    if build.calibration:
        # The quantizer knows the columns of cnn_dailymail by the directory's name.
        name = build.calibration.sub_path.rpartition("/")[2] or "texts"
        places.append((build.calibration, f"{CALIBRATION}/{name}"))
    return places


def _store(claim: str | None) -> JsonObject:
    volume = {"name": "store", "persistentVolumeClaim": {"claimName": claim}}
    return {"mounts": ({"name": "store", "mountPath": STORE},), "volumes": (volume,)}


def _mounted_claim(name: str, claim: str | None, sub_path: str, directory: str) -> JsonObject:
    mount: JsonObject = {"name": name, "mountPath": directory, "readOnly": True}
    if sub_path:
        mount["subPath"] = sub_path
    return {"mounts": (mount,), "volumes": ({"name": name, "persistentVolumeClaim": {"claimName": claim}},)}


def _program_mounts() -> list[JsonObject]:
    return [
        {"name": "program", "mountPath": "/specdec/program", "readOnly": True},
        {"name": "scratch", "mountPath": SCRATCH},
    ]


def _pod_uid() -> JsonObject:
    return {"name": "POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}}


def _resources(artifact: ModelArtifact, work: _Work) -> JsonObject:
    asked = artifact.spec.pod.job_resources
    build = artifact.spec.build
    needed = (build.memory_bytes or _GIB + 2 * build.weight_bytes) if build and work.gpu else _GIB
    derived = quantities.memory(needed)
    memory = quantities.canonical(asked.memory or derived)
    requests = {"cpu": quantities.canonical(asked.cpu or ("1" if work.gpu else "100m")), "memory": memory}
    resources: JsonObject = {"requests": requests, "limits": {"memory": memory}}
    gpu = artifact.spec.gpu
    if work.gpu and gpu and gpu.resource_name:
        for part in resources.values():
            part[gpu.resource_name] = str(gpu.count)
    elif work.gpu and gpu and gpu.resource_claim_template:
        resources["claims"] = [{"name": GPU_CLAIM}]
    return resources
