"""However a Job ends, its artifact's status can be written, and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import MODEL_ARTIFACTS, PODS
from specdec_operator.pod.termination import Failed, Succeeded
from testbed.operator import fails, succeeds
from testbed.operator.job_player import LLAMA, ending
from tests.integration.scene import JsonObject, Scene, Stage, baseline, condition, configuration, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

CONFIGURATION = configuration(jobAttempts=1)
LONG = "the cause\n" + "x" * 3000 + "\nthe last words"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("job-ends")
    made.script.models = {
        "other/long": [fails("NotAModel", LONG)],
        "other/odd": [ending(Failed("two words", "m", terminal=True))],
        "other/bytes": [fails("UnreadableModel", "no such file: \udcff.bin")],
        "other/empty": [ending(Succeeded({}))],
        "other/huge": [succeeds({**LLAMA, "vocabularySize": 10**30})],
        "other/notes": [ending(Succeeded({"facts": dict(LLAMA), "notes": 5}))],
    }
    made.script.builds = [ending(Succeeded({"digest": "../../etc"}))]
    for name in ("long", "odd", "bytes", "empty", "huge", "notes"):
        await made.apply(name, baseline(f"other/{name}"))
    await made.apply("engine", engine())
    yield made


@pytest.mark.parametrize(
    ("model", "role", "reason"),
    [
        ("long", "target", "NotAModel"),
        ("odd", "target", "JobFailed"),
        ("bytes", "target", "UnreadableModel"),
        ("empty", "target", "FactsInvalid"),
        ("huge", "target", "StatusRejected"),
        ("notes", "target", "FactsInvalid"),
        ("engine", "target-engine", "FactsInvalid"),
    ],
)
async def test_whatever_a_program_says_ends_in_a_status(scene: Scene, model: str, role: str, reason: str) -> None:
    await scene.until_stalled(model, reason)
    status = (await scene.artifact(role, model))["status"]
    assert (status["state"], status["reason"]) == ("Failed", reason)


async def test_of_a_long_message_the_middle_goes(scene: Scene) -> None:
    model = await scene.until_stalled("long", "NotAModel")
    artifact = (await scene.artifact("target", "long"))["status"]["message"]
    assert artifact.startswith("the cause\n")
    assert artifact.endswith("\nthe last words")
    assert condition(model, "ModelsCached")["message"].endswith("(each new value asks once)")


async def test_a_pod_that_another_job_of_the_name_left_is_not_asked(operated: Stage, scene: Scene) -> None:
    await scene.until_stalled("empty", "FactsInvalid")
    job = (await scene.artifact("target", "empty"))["metadata"]["name"] + "-1"
    other = await operated.scene("job-ends-stray")
    await leave_pod(other, job)
    await other.apply("empty", baseline("other/empty"))
    await other.until_ready("empty")
    assert (await other.artifact("target", "empty"))["status"]["facts"]["layers"] == LLAMA["layers"]


async def leave_pod(scene: Scene, job: str) -> None:
    """Leave a pod that says it is a Job's, with facts that are wrong."""
    metadata = {
        "name": "a-stray",
        "namespace": scene.namespace,
        "labels": {"batch.kubernetes.io/job-name": job, "job-name": job},
    }
    spec = {
        "restartPolicy": "Never",
        "schedulerName": "nobody",
        "containers": [{"name": "program", "image": "example.com/triton:1"}],
    }
    await scene.api.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    told = succeeds({**LLAMA, "layers": 99})
    terminated: JsonObject = {"exitCode": 0, "message": told.message}
    container = {"name": "program", "state": {"terminated": terminated}, "ready": False, "restartCount": 0}
    status = {"phase": "Succeeded", "containerStatuses": [{**container, "image": "i", "imageID": "i"}]}
    await scene.patch(PODS, "a-stray", {"status": status}, subresource="status")


async def test_the_right_token_in_the_secret_needs_no_request_to_try_again(operated: Stage) -> None:
    scene = await operated.scene("job-ends-token")
    private: JsonObject = {"huggingFace": {"repository": "other/private", "tokenSecretRef": {"name": "t", "key": "k"}}}
    scene.script.models = {"other/private": [fails("Unauthorized"), fails("RepositoryNotFound"), succeeds()]}
    await scene.apply("private", baseline(target={"source": private}))
    model = await scene.until_stalled("private", "Unauthorized")
    assert "tried again within 10 minutes" in condition(model, "ModelsCached")["message"]
    await scene.until_ready("private")


async def test_evictions_are_waited_for_longer_each_time_and_leave_one_old_job(operated: Stage) -> None:
    scene = await operated.scene("job-ends-evicted")
    scene.script.held = {"testbed/llama"}
    await scene.apply("base", baseline())
    seen: list[int] = []
    for attempt in (1, 2, 3):
        await evict(scene, f"-{attempt}")

        async def counted(attempt: int = attempt) -> bool:
            return bool((await scene.artifact("target", "base"))["status"].get("interruptions") == attempt)

        await scene.until(f"{attempt} interruption(s)", counted, seen="base")
        status = (await scene.artifact("target", "base"))["status"]
        seen.append(status["failures"])
        assert (status["reason"], status["state"]) == ("Interrupted", "Pending")
        await hasten(scene)
    scene.script.held = set()
    await scene.until_ready("base")
    assert seen == [0, 0, 0]
    assert [job for job in await scene.jobs("model-") if job.endswith(("-1", "-2"))] == []


async def evict(scene: Scene, ending: str) -> None:
    """Have the cluster take away the pod of a Job."""
    found: list[str] = []

    async def runs() -> bool:
        pods = [p for p in await scene.objects(PODS) if p["status"]["phase"] == "Running"]
        jobs = {p["metadata"]["name"]: p["metadata"]["labels"]["batch.kubernetes.io/job-name"] for p in pods}
        found[:] = [name for name, job in jobs.items() if job.endswith(ending)]
        return bool(found)

    await scene.until(f"a pod of a Job {ending} runs", runs, seen="base")
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    terminated = {"name": "program", "state": {"terminated": {"exitCode": 143}}, "image": "i", "imageID": "i"}
    status = {
        "phase": "Failed",
        "conditions": [disruption],
        "containerStatuses": [{**terminated, "ready": False, "restartCount": 0}],
    }
    await scene.patch(PODS, found[0], {"status": status}, subresource="status")


async def hasten(scene: Scene) -> None:
    """Have the next attempt start now."""
    name = (await scene.artifact("target", "base"))["metadata"]["name"]
    await scene.patch(MODEL_ARTIFACTS, name, {"status": {"notBefore": None}}, subresource="status")
