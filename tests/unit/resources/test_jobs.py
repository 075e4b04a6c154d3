from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from specdec_operator.api.v1alpha1.metadata import ObjectMeta
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact, ModelArtifactStatus
from specdec_operator.resources.artifacts import model_artifact
from specdec_operator.resources.jobs import JobObjects, job_name, render_job
from specdec_operator.resources.template import Templates
from tests.unit.engine_specs import EAGLE, engine_facts
from tests.unit.specs import ALL, BASELINE, BASELINE_ENGINE, EAGLE3, engines_of, facts, model, models_of, plan_of

CLAIM = {"persistentVolumeClaim": {"claimName": "models", "subPath": "llama"}}
GPU = "nvidia.com/gpu"
TEMPLATES = Templates()


def job_of(request: Any, made: Any, **options: Any) -> JobObjects:
    artifact = ModelArtifact.model_validate(model_artifact(request, owner=made))
    artifact = artifact.model_copy(update={"metadata": artifact.metadata.model_copy(update={"uid": "artifact-uid"})})
    return render_job(artifact, name=job_name(request.name, attempt=1), templates=TEMPLATES, **options)


def fetch(**changes: Any) -> JobObjects:
    made = model(BASELINE, **changes)
    return job_of(models_of(made)[0], made)


def build(*, verify: bool = False, **changes: Any) -> JobObjects:
    made = model(BASELINE_ENGINE, **changes)
    return job_of(engines_of(made)[0], made, verify=verify)


def container(objects: JobObjects) -> dict[str, Any]:
    (only,) = objects.job["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def environment(objects: JobObjects) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(objects)["env"]}


def document(objects: JobObjects, program: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(objects.config_map["data"][f"{program}.json"])
    return read


def volumes(objects: JobObjects) -> dict[str, Any]:
    return {volume.pop("name"): volume for volume in objects.job["spec"]["template"]["spec"]["volumes"]}


@pytest.mark.parametrize(("attempt", "verify", "name"), [(1, False, "a-1"), (3, True, "a-3-verify")])
def test_an_attempt_has_a_name_of_its_own(name: str, *, attempt: int, verify: bool) -> None:
    assert job_name("a", attempt=attempt, verify=verify) == name


def test_a_job_is_tried_once_by_kubernetes() -> None:
    spec = fetch().job["spec"]

    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")
    assert spec["podReplacementPolicy"] == "Failed"
    assert "ttlSecondsAfterFinished" not in spec


def test_a_terminal_exit_code_fails_the_job_at_once() -> None:
    (rule,) = fetch().job["spec"]["podFailurePolicy"]["rules"]

    assert rule == {"action": "FailJob", "onExitCodes": {"containerName": "program", "operator": "In", "values": [3]}}


def test_the_artifact_controls_job_and_config_map() -> None:
    objects = fetch()

    for made in (objects.job, objects.config_map):
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("ModelArtifact", "artifact-uid", True)


def test_a_job_takes_no_part_in_a_mesh() -> None:
    metadata = fetch().job["spec"]["template"]["metadata"]

    assert metadata["labels"]["sidecar.istio.io/inject"] == "false"
    assert metadata["annotations"] == {"linkerd.io/inject": "disabled"}


def test_a_job_can_not_talk_to_the_api_server() -> None:
    assert fetch().job["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_a_fetch_gets_its_token_from_the_secret_and_nowhere_else() -> None:
    objects = fetch(target__source__huggingFace__tokenSecretRef={"name": "hf", "key": "token"})

    assert environment(objects)["HF_TOKEN"] == {"secretKeyRef": {"name": "hf", "key": "token"}}
    assert "HF_TOKEN" not in environment(fetch())


def test_a_fetch_uses_the_transfer_that_fits_its_memory() -> None:
    assert environment(fetch())["HF_HUB_DISABLE_XET"] == "1"


def test_a_model_that_was_lost_is_fetched_at_the_commit_it_had() -> None:
    (request,) = models_of(model(BASELINE))
    artifact = ModelArtifact(
        metadata=ObjectMeta(name=request.name),
        spec=request.spec,
        status=ModelArtifactStatus(facts=facts(commit="c" * 40)),
    )
    objects = render_job(artifact, name=f"{request.name}-2", templates=TEMPLATES)

    assert document(objects, "fetch")["revision"] == "c" * 40


def limits_of(objects: JobObjects) -> tuple[int, int]:
    spec = objects.job["spec"]
    return spec["template"]["spec"]["activeDeadlineSeconds"], spec["activeDeadlineSeconds"]


def test_a_job_s_pod_has_the_operator_s_hours_and_the_job_a_week_more() -> None:
    made = model(BASELINE_ENGINE)

    assert limits_of(job_of(engines_of(made)[0], made, hours=30)) == (30 * 3600, 30 * 3600 + 7 * 24 * 3600)


@pytest.mark.parametrize(("hours", "given"), [(30, 4), (2, 2)])
def test_a_job_that_only_looks_has_four_hours_at_most(hours: int, given: int) -> None:
    made = model(BASELINE_ENGINE)

    assert limits_of(job_of(engines_of(made)[0], made, hours=hours, verify=True))[0] == given * 3600


def test_every_job_is_bound_in_time_by_default() -> None:
    assert limits_of(fetch()) == (24 * 3600, 8 * 24 * 3600)


def test_a_fetch_writes_into_the_store() -> None:
    objects = fetch()

    assert document(objects, "fetch")["store"] == "/store"
    assert {"name": "store", "mountPath": "/store"} in container(objects)["volumeMounts"]
    assert volumes(objects)["store"] == {"persistentVolumeClaim": {"claimName": "specdec-store"}}


def test_an_inspected_claim_is_only_read() -> None:
    objects = fetch(target={"source": CLAIM})

    assert {"name": "model-0", "mountPath": "/model", "readOnly": True, "subPath": "llama"} in container(objects)[
        "volumeMounts"
    ]
    assert document(objects, "inspect_model") == {"directory": "/model", "content": "Model"}


@pytest.mark.parametrize("objects", [fetch(), build(verify=True)])
def test_a_job_without_gpus_sees_none_and_asks_for_none(objects: JobObjects) -> None:
    assert environment(objects)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert GPU not in container(objects)["resources"]["limits"]


def test_a_build_asks_for_one_gpu_and_sees_it() -> None:
    objects = build(target={**BASELINE_ENGINE["target"], "parallelism": {"tensor": 4}})

    assert container(objects)["resources"]["limits"][GPU] == "1"
    assert "NVIDIA_VISIBLE_DEVICES" not in environment(objects)


def test_a_build_knows_the_pod_that_it_runs_in() -> None:
    assert environment(build())["POD_UID"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}


def test_a_build_is_told_the_gpu_and_the_version_that_it_must_meet() -> None:
    read = document(build(), "build")

    assert (read["gpuProduct"], read["tensorrtLlmVersion"]) == ("NVIDIA-H100-80GB-HBM3", "1.2.1")
    assert read["scratchBytes"] == 2 * 16_000_000_000 * 11 // 10


def test_a_model_in_the_store_is_mounted_from_it() -> None:
    made = model(BASELINE_ENGINE)
    (target,) = models_of(made)
    mounts = {mount["mountPath"]: mount for mount in container(build())["volumeMounts"]}

    assert target.yields is not None
    assert mounts["/model"] == {
        "name": "store",
        "mountPath": "/model",
        "readOnly": True,
        "subPath": target.yields.sub_path,
    }
    assert mounts["/store"] == {"name": "store", "mountPath": "/store"}


def test_a_model_on_a_claim_of_its_own_is_mounted_from_that() -> None:
    objects = build(target={"source": CLAIM})

    assert {"name": "model-0", "mountPath": "/model", "readOnly": True, "subPath": "llama"} in container(objects)[
        "volumeMounts"
    ]
    assert volumes(objects)["model-0"] == {"persistentVolumeClaim": {"claimName": "models"}}


def test_the_root_of_the_store_may_be_the_model() -> None:
    root = {"persistentVolumeClaim": {"claimName": "store"}}
    objects = build(target={"source": root}, storage={"claimName": "store"})

    assert {"name": "store", "mountPath": "/model", "readOnly": True} in container(objects)["volumeMounts"]


def built_in_head(**changes: Any) -> JobObjects:
    made = model(EAGLE, **changes)
    return job_of(engines_of(made, engine_facts("Eagle"))[0], made)


def test_a_head_is_mounted_beside_its_model() -> None:
    objects = built_in_head()
    target, draft = models_of(model(EAGLE))
    mounts = {mount["mountPath"]: mount for mount in container(objects)["volumeMounts"]}

    assert target.yields is not None
    assert draft.yields is not None
    assert (mounts["/model"]["subPath"], mounts["/head"]["subPath"]) == (target.yields.sub_path, draft.yields.sub_path)
    assert document(objects, "build")["head"] == "/head"


def test_a_head_on_a_claim_of_its_own_is_mounted_from_that() -> None:
    objects = built_in_head(draft={"source": {"persistentVolumeClaim": {"claimName": "heads", "subPath": "eagle"}}})

    assert {"name": "model-0", "mountPath": "/head", "readOnly": True, "subPath": "eagle"} in container(objects)[
        "volumeMounts"
    ]
    assert volumes(objects)["model-0"] == {"persistentVolumeClaim": {"claimName": "heads"}}


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ({"claimName": "texts", "subPath": "a/cnn_dailymail"}, "/calibration/cnn_dailymail"),
        ({"claimName": "texts"}, "/calibration/texts"),
    ],
)
def test_calibration_texts_are_mounted_under_their_own_name(source: dict[str, Any], path: str) -> None:
    calibration = {"source": {"persistentVolumeClaim": source}}
    objects = build(target__quantization={"format": "FP8", "calibration": calibration})

    assert document(objects, "build")["calibration"] == path
    assert path in {mount["mountPath"] for mount in container(objects)["volumeMounts"]}


def test_a_quantizer_s_job_asks_for_the_gpus_that_hold_the_model() -> None:
    made = model(BASELINE_ENGINE, target__quantization={"format": "FP8"})
    objects = job_of(engines_of(made, {"target": facts(weight_bytes=141_000_000_000)})[0], made)

    assert container(objects)["resources"]["limits"][GPU] == "2"


def test_a_prebuilt_engine_is_only_looked_at() -> None:
    engine = {"prebuilt": {"target": {"claimName": "engines", "subPath": "llama"}}}
    objects = build(engine=engine)

    assert container(objects)["args"][2] == "inspect_engine"
    assert document(objects, "inspect_engine")["engine"]["directory"] == "/engine"
    assert {"name": "engine-0", "mountPath": "/engine", "readOnly": True, "subPath": "llama"} in container(objects)[
        "volumeMounts"
    ]
    assert environment(objects)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert GPU not in container(objects)["resources"]["limits"]


def test_an_engine_artifact_of_an_older_operator_is_built_by_its_weights() -> None:
    made = model(BASELINE_ENGINE)
    (request,) = engines_of(made)
    assert request.spec.build is not None
    older = request.spec.build.model_copy(update={"memory_bytes": 0, "scratch_bytes": 0})
    objects = job_of(replace(request, spec=request.spec.model_copy(update={"build": older})), made)

    assert document(objects, "build")["scratchBytes"] == 3 * 16_000_000_000
    assert container(objects)["resources"]["limits"]["memory"] == "31542Mi"


def test_looking_for_an_engine_runs_no_build() -> None:
    objects = build(verify=True)

    assert container(objects)["args"][2] == "verify_engine"
    assert document(objects, "verify_engine")["directory"].startswith("/store/engines/")


def test_a_repository_is_assembled_into_a_place_of_its_own() -> None:
    made = model(EAGLE3)
    objects = job_of(plan_of(made).assembly, made)

    assert {"name": "repository", "mountPath": "/repository"} in container(objects)["volumeMounts"]
    assert environment(objects)["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_declared_resources_are_taken() -> None:
    resources = container(fetch(pod={"jobResources": {"cpu": "1000m", "memory": "1024Mi"}}))["resources"]

    assert resources == {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}


def test_a_build_s_memory_holds_the_weights_twice() -> None:
    assert container(build())["resources"]["limits"]["memory"] == "31542Mi"


def test_a_job_follows_its_volume_to_a_node() -> None:
    made = model(BASELINE)
    objects = job_of(models_of(made)[0], made, node="node-1")
    (term,) = objects.job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]

    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]


@pytest.mark.parametrize("name", ALL)
def test_every_mount_has_its_volume(name: str) -> None:
    made = model(ALL[name])

    for request in (*models_of(made), *engines_of(made), plan_of(made).assembly):
        objects = job_of(request, made)
        assert {mount["name"] for mount in container(objects)["volumeMounts"]} == set(volumes(objects))


@pytest.mark.parametrize("name", ALL)
def test_no_job_runs_a_shell(name: str) -> None:
    made = model(ALL[name])

    for request in (*models_of(made), *engines_of(made), plan_of(made).assembly):
        assert container(job_of(request, made))["args"][:2] == ["python3", "/specdec/program"]


IMAGE = {"image": {"reference": "registry.example.com/llama:1", "pullPolicy": "Always", "subPath": "model"}}


def test_a_model_in_an_image_is_inspected_as_a_volume() -> None:
    objects = fetch(target={"source": IMAGE})

    assert volumes(objects)["model-0"] == {
        "image": {"reference": "registry.example.com/llama:1", "pullPolicy": "Always"}
    }
    assert {"name": "model-0", "mountPath": "/model", "readOnly": True, "subPath": "model"} in container(objects)[
        "volumeMounts"
    ]


def test_patterns_reach_the_fetch_program() -> None:
    source = {"huggingFace": {"repository": "a/b", "allowPatterns": ["*.json"], "ignorePatterns": ["x*"]}}
    read = document(fetch(target={"source": source}), "fetch")

    assert (read["allowPatterns"], read["ignorePatterns"]) == (["*.json"], ["x*"])
