"""What the API server refuses to make is said in status, with its words; nothing is retried in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import ResourceType
from tests.integration.scene import JsonObject, Scene, Stage, baseline, condition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

QUOTAS = ResourceType("", "v1", "resourcequotas", "ResourceQuota")
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
STRANGE = {"type": "LoadBalancer", "annotations": {RANGES: "999.0.0.0/8"}}
"""A network that no rule of the CRD looks into, and that Kubernetes refuses."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def no_jobs(operated: Stage) -> AsyncIterator[Scene]:
    """A namespace whose quota allows no Job."""
    made = await operated.scene("refused-jobs")
    await forbid(made, "count/jobs.batch")
    await made.apply("barred", baseline())
    yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("refused")
    await made.apply("strange", baseline("testbed/strange", service=STRANGE))
    await made.apply("serving", baseline())
    await made.until_ready("serving")
    yield made


async def test_a_quota_that_forbids_jobs_is_named(no_jobs: Scene) -> None:
    model = await no_jobs.until_condition("barred", "ModelsCached", "False", reason="QuotaExceeded")
    assert "exceeded quota: quota, requested: count/jobs.batch=1" in condition(model, "ModelsCached")["message"]


async def test_a_quota_that_forbids_jobs_is_an_event(no_jobs: Scene) -> None:
    await no_jobs.until_event("barred", "QuotaExceeded", kind="Normal")


async def test_an_artifact_whose_job_is_forbidden_waits(no_jobs: Scene) -> None:
    await no_jobs.until_condition("barred", "ModelsCached", "False", reason="QuotaExceeded")
    status = (await no_jobs.artifact("target", "barred"))["status"]
    assert (status["state"], status["reason"], status.get("attempts", 0)) == ("Pending", "QuotaExceeded", 0)


async def test_a_value_that_kubernetes_does_not_take_is_quoted(scene: Scene) -> None:
    model = await scene.until_stalled("strange", "SpecRejected")
    said = condition(model, "Available")["message"]
    assert "999.0.0.0/8" in said
    assert "correct what the message names under spec.pod" in said


async def test_another_spec_after_a_rejected_one_goes_on(scene: Scene) -> None:
    await scene.until_stalled("strange", "SpecRejected")
    await scene.apply("strange", baseline("testbed/strange"))
    await scene.until_ready("strange")


async def test_a_deployment_that_is_forbidden_is_not_available(operated: Stage) -> None:
    scene = await operated.scene("refused-deployments")
    await forbid(scene, "count/deployments.apps")
    await scene.apply("barred", baseline())
    model = await scene.until_condition("barred", "Available", "False", reason="QuotaExceeded")
    assert condition(model, "Ready")["reason"] == "QuotaExceeded"


async def test_what_serves_is_available_while_a_change_is_rejected(scene: Scene) -> None:
    bad = {"annotations": {"service.example.com/x": "y"}, "type": "LoadBalancer"}
    await forbid(scene, "services.loadbalancers")
    await scene.apply("serving", baseline(service=bad))
    model = await scene.until_condition("serving", "Ready", "False", reason="QuotaExceeded")
    assert (condition(model, "Available")["status"], model["status"]["readyReplicas"]) == ("True", 1)


@pytest.mark.parametrize(
    ("missing", "reason", "said"),
    [
        ({"priorityClassName": "missing"}, "PodForbidden", "no PriorityClass with name missing was found"),
        ({"runtimeClassName": "missing"}, "PodForbidden", 'RuntimeClass "missing" not found'),
        ({"serviceAccountName": "missing"}, "ServiceAccountMissing", 'serviceaccount "missing" not found'),
        ({"serverResources": {"memory": "300Gi"}}, "QuotaExceeded", "exceeded quota: quota, requested: "),
    ],
    ids=["priority class", "runtime class", "service account", "quota"],
)
async def test_a_change_that_no_pod_can_be_made_of_leaves_the_old_pod_serving(
    operated: Stage, missing: JsonObject, reason: str, said: str
) -> None:
    scene = await operated.scene(f"refused-pod-{next(iter(missing)).lower()}")
    await scene.apply("serving", baseline())
    before = await scene.until_ready("serving")
    (pod,) = await scene.serving_pods("serving")
    await forbid(scene, "requests.memory", allowed="200Gi")
    await scene.apply("serving", baseline(pod=missing))
    model = await scene.until_condition("serving", "Ready", "False", reason=reason)
    assert said in condition(model, "Ready")["message"]
    assert condition(model, "Available")["status"] == "True"
    assert model["status"]["currentRevision"] == before["status"]["currentRevision"]
    assert [p["metadata"]["uid"] for p in await scene.serving_pods("serving")] == [pod["metadata"]["uid"]]
    await scene.apply("serving", baseline(pod={"labels": {"example.com/mended": "yes"}}))
    await scene.until_ready("serving")


async def test_a_quota_counts_what_the_old_pod_frees(operated: Stage) -> None:
    scene = await operated.scene("refused-pod-frees")
    await scene.apply("serving", baseline())
    before = await scene.until_ready("serving")
    await forbid(scene, "requests.nvidia.com/gpu", allowed="1")
    await scene.apply("serving", baseline(pod={"labels": {"example.com/again": "yes"}}))
    model = await scene.until_ready("serving")
    assert model["status"]["currentRevision"] != before["status"]["currentRevision"]


async def forbid(scene: Scene, what: str, *, allowed: str = "0") -> None:
    """Allow little of something, and wait until the quota counts."""
    metadata = {"name": "quota", "namespace": scene.namespace}
    body: JsonObject = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    await scene.api.create(QUOTAS, {**body, "spec": {"hard": {what: allowed}}})

    async def counted() -> bool:
        return bool((await scene.get(QUOTAS, "quota")).get("status", {}).get("hard"))

    await scene.until(f"a quota of {what}", counted)
