"""Objects that the operator made are taken up again, whatever somebody removed of their metadata."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    MODEL_ARTIFACTS,
    SERVICES,
    SPECULATIVE_MODELS,
)
from tests.integration.scene import JsonObject, Scene, Stage, baseline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from specdec_operator.cluster.resources import ResourceType
    from testbed.cluster import Cluster

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

NOTHING_LEFT = {"ownerReferences": None, "labels": None}
STRIPPED = {
    "owner references": {"ownerReferences": None},
    "labels": {"labels": None},
    "owner references and labels": NOTHING_LEFT,
}
CHILDREN = [DEPLOYMENTS, SERVICES, CONTROLLER_REVISIONS, CONFIG_MAPS]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("adoption")
    await made.apply("base", baseline())
    await made.until_ready("base")
    yield made


async def child(scene: Scene, resource: ResourceType) -> JsonObject:
    """Return the model's object of a kind."""
    if resource is CONTROLLER_REVISIONS:
        return (await scene.revisions("base"))[-1]
    if resource is CONFIG_MAPS:
        volumes = (await scene.deployment("base"))["spec"]["template"]["spec"]["volumes"]
        (name,) = [v["configMap"]["name"] for v in volumes if v["name"] == "program"]
        return await scene.get(CONFIG_MAPS, name)
    return await scene.get(resource, "base-serving")


async def touch(scene: Scene, value: str) -> None:
    await scene.apply("base", baseline(), annotations={"example.com/touched": value})


@pytest.mark.parametrize("stripped", STRIPPED)
@pytest.mark.parametrize("resource", CHILDREN, ids=lambda resource: resource.kind)
async def test_a_stripped_child_is_taken_up_again(scene: Scene, resource: ResourceType, stripped: str) -> None:
    before = await child(scene, resource)
    await scene.patch(resource, before["metadata"]["name"], {"metadata": STRIPPED[stripped]})
    await touch(scene, f"{resource.kind} {stripped}")

    async def whole() -> bool:
        metadata = (await scene.get(resource, before["metadata"]["name"]))["metadata"]
        parts = ("uid", "labels", "ownerReferences")
        return [metadata.get(part) for part in parts] == [before["metadata"][part] for part in parts]

    await scene.until(f"{resource.kind} is whole", whole, seen="base")
    await scene.until_ready("base")


@pytest.mark.parametrize("stripped", STRIPPED)
async def test_a_stripped_artifact_is_taken_up_again(scene: Scene, stripped: str) -> None:
    before = await scene.artifact("target", "base")
    await scene.patch(MODEL_ARTIFACTS, before["metadata"]["name"], {"metadata": STRIPPED[stripped]})
    await touch(scene, f"artifact {stripped}")

    async def whole() -> bool:
        metadata = (await scene.artifact("target", "base"))["metadata"]
        owners = {owner["uid"] for owner in metadata.get("ownerReferences", ())}
        wanted = {owner["uid"] for owner in before["metadata"]["ownerReferences"]}
        return metadata.get("labels") == before["metadata"]["labels"] and owners == wanted

    await scene.until("the artifact is whole", whole, seen="base")
    await scene.until_ready("base")


async def test_a_stripped_job_is_taken_up_again(operated: Stage) -> None:
    scene = await operated.scene("adoption-job")
    scene.script.held = {"models"}
    await scene.apply("base", baseline())
    jobs: list[str] = []

    async def runs() -> bool:
        jobs[:] = await scene.jobs("model-")
        return bool(jobs)

    await scene.until("a Job", runs)
    await scene.api.delete(
        MODEL_ARTIFACTS, namespace=scene.namespace, name=jobs[0].rpartition("-")[0], propagation="Orphan"
    )
    scene.script.held = set()
    await scene.until_ready("base")
    owners = (await scene.get(JOBS, jobs[0]))["metadata"]["ownerReferences"]
    assert [owner["kind"] for owner in owners] == ["ModelArtifact"]


async def test_a_model_made_again_takes_up_what_an_orphaning_delete_left(scene: Scene) -> None:
    before = await scene.model("base")
    pods = [pod["metadata"]["uid"] for pod in await scene.serving_pods("base")]
    await scene.api.delete(SPECULATIVE_MODELS, namespace=scene.namespace, name="base", propagation="Orphan")
    await scene.until_gone(SPECULATIVE_MODELS, "base")
    await scene.apply("base", baseline())
    model = await scene.until_ready("base")
    assert model["metadata"]["uid"] != before["metadata"]["uid"]
    assert model["status"]["currentRevision"] == before["status"]["currentRevision"]
    assert [pod["metadata"]["uid"] for pod in await scene.serving_pods("base")] == pods
    assert not [event for event in await scene.events("base") if event["reason"] == "NameConflict"]


async def test_models_of_an_operator_that_is_gone_are_handed_over_by_the_command_that_is_told(
    operated: Stage, scene: Scene
) -> None:
    """A namespaced operator may not read another one's Lease, and takes it for alive; so does one that is held."""
    before = await scene.until_ready("base")
    await scene.api.create(LEASES, held_lease(scene.namespace))
    await scene.patch(
        SPECULATIVE_MODELS, "base", {"status": {"controller": f"{scene.namespace}/old"}}, subresource="status"
    )
    note = (await scene.until_event("base", "OtherController"))["note"]
    command = note[note.index("kubectl get") :]
    await asyncio.to_thread(run_shell, operated.cluster, command)

    async def taken() -> bool:
        return bool((await scene.model("base"))["status"].get("controller") == before["status"]["controller"])

    await scene.until("the model is taken over", taken, seen="base")
    await scene.until_ready("base")


def run_shell(cluster: Cluster, command: str) -> None:
    """Run a command as a user with a shell and the cluster's kubectl does."""
    program = cluster.kubectl_program
    line = command.replace("kubectl ", f"{program} ")
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "NO_PROXY": "*"}
    subprocess.run(["/bin/bash", "-ec", line], check=True, env=environment, timeout=60, capture_output=True)


def held_lease(namespace: str) -> JsonObject:
    spec = {"holderIdentity": "old-1", "leaseDurationSeconds": 15, "renewTime": "2999-01-01T00:00:00.000000Z"}
    metadata = {"name": "old", "namespace": namespace}
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
