"""What is deleted or changed by hand is put right; what others add or own stays."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.errors import NotFound
from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    MODEL_ARTIFACTS,
    PODS,
    SERVICES,
    SPECULATIVE_MODELS,
)
from tests.integration.scene import JsonObject, Scene, Stage, baseline, condition, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from specdec_operator.cluster.resources import ResourceType

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("repair")
    await made.apply("built", engine())
    await made.until_ready("built")
    yield made


@pytest.fixture
async def builds(scene: Scene) -> AsyncIterator[None]:
    """No engine is built again, whatever a test does."""
    before = scene.script.endings.copy()
    yield
    after = {job for job in scene.script.endings if job not in before}
    assert not {job for job in after if job.startswith("engine-") and not job.endswith("-verify")}


@pytest.mark.usefixtures("builds")
@pytest.mark.parametrize("resource", [DEPLOYMENTS, SERVICES], ids=lambda resource: resource.kind)
async def test_a_deleted_child_comes_back(scene: Scene, resource: ResourceType) -> None:
    old = await scene.get(resource, "built-serving")
    await scene.delete(resource, "built-serving")
    await scene.until_replaced(resource, old)
    await scene.until_ready("built")


@pytest.mark.usefixtures("builds")
async def test_a_deleted_revision_comes_back_under_its_name(scene: Scene) -> None:
    name = (await scene.until_ready("built"))["status"]["currentRevision"]
    old = await scene.get(CONTROLLER_REVISIONS, name)
    await scene.delete(CONTROLLER_REVISIONS, name)
    await scene.until_replaced(CONTROLLER_REVISIONS, old)
    await scene.until_ready("built")


@pytest.mark.usefixtures("builds")
async def test_the_config_map_of_a_deleted_revision_comes_back(scene: Scene) -> None:
    files = await serving_files(scene)
    # The garbage collector may be faster: its revision was deleted, and made anew, a moment ago.
    with contextlib.suppress(NotFound):
        await scene.delete(CONFIG_MAPS, files["metadata"]["name"])
    await scene.until_replaced(CONFIG_MAPS, files)


@pytest.mark.usefixtures("builds")
async def test_a_deleted_serving_pod_is_followed_by_another_that_is_proven(operated: Stage, scene: Scene) -> None:
    model = await scene.until_ready("built")
    asked = operated.prover.asked["built"]
    (pod,) = await scene.serving_pods("built")
    await scene.delete(PODS, pod["metadata"]["name"])

    async def proven_again() -> bool:
        status = (await scene.model("built"))["status"]
        return bool(status.get("proof")) and status["proof"] != model["status"]["proof"]

    await scene.until("another proof", proven_again)
    assert operated.prover.asked["built"] == asked + 1


@pytest.mark.usefixtures("builds")
async def test_a_service_made_anew_is_proven_again(operated: Stage, scene: Scene) -> None:
    old = await scene.until_ready("built")
    asked = operated.prover.asked["built"]
    await scene.delete(SERVICES, "built-serving")

    async def proven_again() -> bool:
        proof = (await scene.model("built"))["status"].get("proof")
        return bool(proof) and proof != old["status"]["proof"]

    await scene.until("another proof", proven_again)
    assert operated.prover.asked["built"] == asked + 1


@pytest.mark.usefixtures("builds")
async def test_the_finished_job_of_a_ready_artifact_is_not_missed(scene: Scene) -> None:
    artifact = await scene.artifact("target-engine", "built")
    await scene.delete(JOBS, artifact["status"]["job"])
    await asyncio.sleep(2)
    assert await scene.jobs(artifact["metadata"]["name"]) == []
    await scene.until_ready("built")


@pytest.mark.usefixtures("builds")
async def test_a_deleted_model_artifact_is_made_anew(scene: Scene) -> None:
    old = await scene.artifact("target", "built")
    await scene.delete(MODEL_ARTIFACTS, old["metadata"]["name"])
    await scene.until_replaced(MODEL_ARTIFACTS, old)
    await scene.until_ready("built")


async def test_a_deleted_engine_artifact_is_made_anew_and_its_job_is_told_to_reuse_what_is_there(scene: Scene) -> None:
    old = await scene.artifact("target-engine", "built")
    await scene.delete(MODEL_ARTIFACTS, old["metadata"]["name"])
    made = await scene.until_replaced(MODEL_ARTIFACTS, old)
    await scene.until_ready("built")
    assert made["spec"]["build"]["directory"] == old["spec"]["build"]["directory"]


@pytest.mark.usefixtures("builds")
@pytest.mark.parametrize(
    ("resource", "change", "field"),
    [
        (DEPLOYMENTS, {"spec": {"replicas": 3}}, ("spec", "replicas")),
        (DEPLOYMENTS, {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}, ("spec", "strategy")),
        (SERVICES, {"spec": {"type": "NodePort"}}, ("spec", "type")),
    ],
    ids=["replicas", "strategy", "service type"],
)
async def test_a_changed_field_is_put_back(
    scene: Scene, resource: ResourceType, change: JsonObject, field: tuple[str, str]
) -> None:
    before = (await scene.get(resource, "built-serving"))[field[0]][field[1]]
    await scene.patch(resource, "built-serving", change)

    async def is_back() -> bool:
        return bool((await scene.get(resource, "built-serving"))[field[0]].get(field[1]) == before)

    await scene.until(f"{field[1]} is {before}", is_back)


@pytest.mark.usefixtures("builds")
async def test_a_changed_image_is_put_back(scene: Scene) -> None:
    template = (await scene.deployment("built"))["spec"]["template"]["spec"]
    image = template["containers"][0]["image"]
    containers = [{**template["containers"][0], "image": "example.com/another:1"}]
    await scene.patch(DEPLOYMENTS, "built-serving", {"spec": {"template": {"spec": {"containers": containers}}}})

    async def is_back() -> bool:
        live = await scene.deployment("built")
        return bool(live["spec"]["template"]["spec"]["containers"][0]["image"] == image)

    await scene.until(f"image is {image}", is_back)
    await scene.until_ready("built")


@pytest.mark.usefixtures("builds")
async def test_a_changed_port_of_the_service_is_put_back(scene: Scene) -> None:
    ports = (await scene.get(SERVICES, "built-serving"))["spec"]["ports"]
    await scene.patch(SERVICES, "built-serving", {"spec": {"ports": [{**ports[0], "targetPort": 1}, *ports[1:]]}})

    async def is_back() -> bool:
        return bool((await scene.get(SERVICES, "built-serving"))["spec"]["ports"] == ports)

    await scene.until("the ports are back", is_back)


@pytest.mark.usefixtures("builds")
async def test_what_others_put_into_the_operators_containers_is_removed(scene: Scene) -> None:
    await scene.until_ready("built")
    server = (await scene.deployment("built"))["spec"]["template"]["spec"]["containers"][0]
    hook = {"preStop": {"exec": {"command": ["sh"]}}}
    changed = {**server, "command": ["sh"], "lifecycle": hook, "env": [*server["env"], {"name": "X", "value": "1"}]}
    logs = {"name": "logs", "image": "example.com/logs:1"}
    await scene.patch(DEPLOYMENTS, "built-serving", {"spec": {"template": {"spec": {"containers": [changed, logs]}}}})

    async def restored() -> bool:
        first, *others = (await scene.deployment("built"))["spec"]["template"]["spec"]["containers"]
        return first == server and [other["name"] for other in others] == ["logs"]

    await scene.until("the container is as it was", restored)
    await scene.patch(DEPLOYMENTS, "built-serving", {"spec": {"template": {"spec": {"containers": [server]}}}})
    await scene.until_ready("built")


@pytest.mark.usefixtures("builds")
async def test_a_slice_that_leads_elsewhere_is_told_while_it_is_there(scene: Scene) -> None:
    await scene.until_ready("built")
    labels = {"kubernetes.io/service-name": "built-serving"}
    body = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "astray", "namespace": scene.namespace, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": True}}],
        "ports": [{"name": "http", "port": 8000}],
    }
    await scene.api.create(ENDPOINT_SLICES, body)
    model = await scene.until_condition("built", "Ready", "False", reason="ForeignEndpoints")
    assert f"kubectl delete endpointslice astray -n {scene.namespace}" in condition(model, "Stalled")["message"]
    await scene.delete(ENDPOINT_SLICES, "astray")
    await scene.until_ready("built")


@pytest.mark.usefixtures("builds")
async def test_what_others_add_to_the_deployment_survives(scene: Scene) -> None:
    template = (await scene.deployment("built"))["spec"]["template"]["spec"]
    sidecar = {"name": "mesh", "image": "example.com/mesh:1"}
    await scene.patch(
        DEPLOYMENTS,
        "built-serving",
        {
            "metadata": {"labels": {"example.com/team": "blue"}},
            "spec": {"template": {"spec": {"containers": [*template["containers"], sidecar]}}},
        },
    )
    await scene.apply("built", engine(pod={"labels": {"example.com/changed": "yes"}}))
    await scene.until_ready("built")
    live = await scene.deployment("built")
    names = [c["name"] for c in live["spec"]["template"]["spec"]["containers"]]
    assert (live["metadata"]["labels"]["example.com/team"], names) == ("blue", ["server", "mesh"])


async def test_a_build_whose_job_vanished_is_looked_for_before_it_is_repeated(operated: Stage) -> None:
    scene = await operated.scene("repair-vanished")
    scene.script.held = {"builds"}
    await scene.apply("built", engine())
    job = await running_job(scene, "engine-")
    await scene.delete(JOBS, job)

    async def verifies() -> bool:
        return bool([name for name in await scene.jobs("engine-") if name.endswith("-verify")])

    await scene.until("a Job that only looks", verifies)
    await scene.until_ready("built")
    assert not [job for job in scene.script.endings if job.startswith("engine-") and not job.endswith("-verify")]


async def test_a_download_whose_pod_vanished_is_repeated(operated: Stage) -> None:
    scene = await operated.scene("repair-pod")
    scene.script.held = {"testbed/llama"}
    await scene.apply("base", baseline())
    await running_job(scene, "model-")
    (pod,) = await scene.objects(PODS)
    await scene.delete(PODS, pod["metadata"]["name"])
    scene.script.held = set()
    await scene.until_ready("base")


@pytest.mark.parametrize("resource", [DEPLOYMENTS, SERVICES], ids=lambda resource: resource.kind)
async def test_a_strangers_object_of_the_same_name_is_left_alone(operated: Stage, resource: ResourceType) -> None:
    scene = await operated.scene(f"repair-{resource.kind.lower()}")
    stranger = await scene.api.create(resource, strangers(resource, scene.namespace))
    await scene.apply("base", baseline())
    model = await scene.until_stalled("base", "NameConflict")
    await scene.until_event("base", "NameConflict")
    live = await scene.get(resource, "base-serving")
    assert live["spec"] == {**live["spec"], **stranger["spec"]}
    assert (condition(model, "Accepted")["status"], live["metadata"].get("ownerReferences")) == ("False", None)


async def test_a_strangers_job_of_the_same_name_is_left_alone(operated: Stage, scene: Scene) -> None:
    taken = (await scene.artifact("target", "built"))["metadata"]["name"]
    other = await operated.scene("repair-job")
    metadata = {"name": f"{taken}-1", "namespace": other.namespace}
    pod = {"restartPolicy": "Never", "containers": [{"name": "work", "image": "example.com/work:1"}]}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}
    await other.api.create(JOBS, body)
    await other.apply("built", engine())
    model = await other.until_stalled("built", "NameConflict")
    assert f"{taken}-1" in condition(model, "ModelsCached")["message"]
    assert (await other.get(JOBS, f"{taken}-1"))["metadata"].get("ownerReferences") is None


@pytest.mark.parametrize("resource", [CONTROLLER_REVISIONS, CONFIG_MAPS], ids=lambda resource: resource.kind)
async def test_a_strangers_object_in_a_revisions_place_is_left_alone(
    operated: Stage, scene: Scene, resource: ResourceType
) -> None:
    revision = (await scene.until_ready("built"))["status"]["currentRevision"]
    name = revision if resource is CONTROLLER_REVISIONS else (await serving_files(scene))["metadata"]["name"]
    other = await operated.scene(f"repair-{resource.kind.lower()}")
    metadata = {"name": name, "namespace": other.namespace}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    content = {"revision": 1, "data": {"theirs": True}} if resource is CONTROLLER_REVISIONS else {"data": {"a": "b"}}
    await other.api.create(resource, body | content)
    await other.apply("built", (await scene.model("built"))["spec"])
    model = await other.until_stalled("built", "NameConflict")
    assert name in condition(model, "Accepted")["message"]
    assert "ownerReferences" not in (await other.get(resource, name))["metadata"]


async def test_a_name_that_is_free_again_is_taken(operated: Stage) -> None:
    scene = await operated.scene("repair-freed")
    await scene.api.create(SERVICES, strangers(SERVICES, scene.namespace))
    await scene.apply("base", baseline())
    await scene.until_stalled("base", "NameConflict")
    await scene.delete(SERVICES, "base-serving")
    await scene.apply("base", baseline(pod={"labels": {"example.com/again": "yes"}}))
    await scene.until_ready("base")


async def test_a_model_made_again_at_once_waits_for_what_the_first_one_leaves(scene: Scene) -> None:
    await scene.apply("again", baseline("testbed/again"))
    first = await scene.until_ready("again")
    await scene.delete(SPECULATIVE_MODELS, "again")
    await scene.apply("again", baseline("testbed/again"))
    model = await scene.until_ready("again")
    assert model["metadata"]["uid"] != first["metadata"]["uid"]
    assert not [e for e in await scene.events("again") if e["reason"] == "NameConflict"]


async def serving_files(scene: Scene) -> JsonObject:
    """Return the ConfigMap that the serving pods mount."""
    template = (await scene.deployment("built"))["spec"]["template"]
    volume = next(v for v in template["spec"]["volumes"] if v["name"] == "program")
    return await scene.get(CONFIG_MAPS, volume["configMap"]["name"])


async def running_job(scene: Scene, prefix: str) -> str:
    """Wait until a Job's pod runs; return the Job's name."""
    found: list[str] = []

    async def runs() -> bool:
        pods = [p for p in await scene.objects(PODS) if p["metadata"]["name"].startswith(prefix)]
        found[:] = [
            p["metadata"]["labels"]["batch.kubernetes.io/job-name"] for p in pods if p["status"]["phase"] == "Running"
        ]
        return bool(found)

    await scene.until(f"a pod {prefix}… runs", runs)
    return found[0]


def strangers(resource: ResourceType, namespace: str) -> JsonObject:
    labels = {"app": "stranger"}
    spec: JsonObject = {"selector": labels, "ports": [{"name": "web", "port": 80}]}
    if resource is DEPLOYMENTS:
        pod = {"containers": [{"name": "web", "image": "example.com/web:1"}]}
        spec = {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
    metadata = {"name": "base-serving", "namespace": namespace}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
