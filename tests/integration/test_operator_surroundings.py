"""What the cluster lacks or forbids is named, and what changes in it is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from specdec_operator.cluster.errors import AlreadyExists
from specdec_operator.cluster.resources import (
    DEPLOYMENTS,
    LEASES,
    PERSISTENT_VOLUME_CLAIMS,
    SPECULATIVE_MODELS,
    ResourceType,
)
from tests.integration.scene import NAMESPACES, PRODUCT, JsonObject, Scene, Stage, baseline, condition, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

QUOTAS = ResourceType("", "v1", "resourcequotas", "ResourceQuota")
DEFINITIONS = ResourceType(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
OTHER = "another-system/another-operator"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage, quota: Scene, gpu_quota: Scene) -> AsyncIterator[Scene]:
    # Quotas are noticed after a while, which passes during the tests before theirs.
    del quota, gpu_quota
    made = await operated.scene("surroundings")
    await made.apply("claimless", baseline(storage={"claimName": "nowhere"}))
    await made.apply("greedy", baseline("testbed/greedy", placement={"gpu": {"resourceName": "example.com/none"}}))
    await made.apply("exotic", engine("testbed/exotic", placement={"gpu": {"product": "NVIDIA-None"}}))
    await made.apply("nobody", baseline("testbed/nobody", pod={"serviceAccountName": "nobody"}))
    await made.apply("taken", baseline("testbed/taken"))
    await made.apply("strange", baseline("testbed/strange"))
    yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def quota(operated: Stage) -> AsyncIterator[Scene]:
    """A namespace whose quota allows no pod."""
    made = await operated.scene("surroundings-quota")
    await made.api.create(QUOTAS, _quota(made, {"pods": "0"}))
    await made.apply("barred", baseline())
    yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gpu_quota(operated: Stage) -> AsyncIterator[Scene]:
    """A namespace whose quota allows no GPU."""
    made = await operated.scene("surroundings-gpu-quota")
    await made.api.create(QUOTAS, _quota(made, {"requests.nvidia.com/gpu": "0"}))
    await made.apply("barred", baseline())
    yield made


async def test_a_claim_that_is_missing_is_named(scene: Scene) -> None:
    model = await scene.until_condition("claimless", "ModelsCached", "False", reason="ClaimMissing")
    assert "claim nowhere does not exist: create it" in condition(model, "ModelsCached")["message"]


async def test_a_claim_that_comes_later_is_used(scene: Scene) -> None:
    await scene.until_condition("claimless", "ModelsCached", "False", reason="ClaimMissing")
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "nowhere", "namespace": scene.namespace}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    await scene.api.create(PERSISTENT_VOLUME_CLAIMS, body)
    await scene.until_condition("claimless", "Accepted", "True")
    await scene.until("a Job is made", lambda: _any_job(scene, "claimless"))


async def test_gpus_that_nobody_has_are_named(scene: Scene) -> None:
    model = await scene.until_condition("greedy", "Available", "False", reason="Unschedulable")
    assert "Insufficient example.com/none" in condition(model, "Available")["message"]
    assert "Remedy: free GPUs, add nodes" in condition(model, "Available")["message"]


async def test_a_product_that_no_node_has_is_named_before_anything_is_built(scene: Scene) -> None:
    model = await scene.until_condition("exotic", "ModelsCached", "False", reason="Unschedulable")
    assert "didn't match Pod's node affinity/selector" in condition(model, "ModelsCached")["message"]


async def test_another_product_in_the_spec_starts_the_download_over(scene: Scene) -> None:
    await scene.until_condition("exotic", "ModelsCached", "False", reason="Unschedulable")
    await scene.apply("exotic", engine("testbed/exotic", placement={"gpu": {"product": PRODUCT}}))
    await scene.until_ready("exotic")


async def test_pods_pass_the_restricted_pod_security_standard(operated: Stage) -> None:
    scene = await operated.scene("surroundings-restricted")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await scene.api.patch_merge(
        NAMESPACES, namespace=None, name=scene.namespace, patch={"metadata": {"labels": labels}}
    )
    await scene.apply("built", engine())
    await scene.until_ready("built")


async def test_a_model_of_another_live_operator_is_left_alone(scene: Scene) -> None:
    await scene.until_condition("taken", "Available", "True")
    await _other_operator(scene, renewed=datetime.now(UTC))
    await scene.patch(SPECULATIVE_MODELS, "taken", {"status": {"controller": OTHER}}, subresource="status")
    before = (await scene.deployment("taken"))["metadata"]["generation"]
    await scene.apply("taken", baseline("testbed/taken", replicas=3))
    event = await scene.until_event("taken", "OtherController")
    await asyncio.sleep(1)
    assert OTHER in event["note"]
    assert (await scene.deployment("taken"))["metadata"]["generation"] == before


async def test_a_model_of_an_operator_that_is_gone_is_taken_over(scene: Scene) -> None:
    await _other_operator(scene, renewed=datetime.now(UTC) - timedelta(hours=2))
    await scene.apply("taken", baseline("testbed/taken", replicas=2))
    model = await scene.until_ready("taken")
    assert model["status"]["controller"] == "specdec-system/specdec-operator"


async def test_a_field_that_this_operator_does_not_know_is_said_and_what_serves_goes_on(scene: Scene) -> None:
    await scene.until_ready("strange")
    definition = await scene.api.get(DEFINITIONS, namespace=None, name="speculativemodels.specdec.dev")
    newer = copy.deepcopy(definition)
    spec = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["futureField"] = {"type": "string"}
    await scene.api.replace(DEFINITIONS, newer)
    try:
        await _apply_when_served(scene)
        model = await scene.until_stalled("strange", "InvalidSpec")
        said = condition(model, "Accepted")
        assert (said["status"], said["reason"]) == ("False", "InvalidSpec")
        assert "spec.futureField" in said["message"]
        assert (await scene.get(DEPLOYMENTS, "strange-serving"))["spec"]["replicas"] == 1
    finally:
        await scene.delete(SPECULATIVE_MODELS, "strange")
        live = await scene.api.get(DEFINITIONS, namespace=None, name="speculativemodels.specdec.dev")
        await scene.api.replace(DEFINITIONS, {**live, "spec": definition["spec"]})


async def test_a_quota_that_forbids_gpus_is_named(gpu_quota: Scene) -> None:
    model = await gpu_quota.until_condition("barred", "Available", "False", reason="QuotaExceeded")
    assert "requests.nvidia.com/gpu" in condition(model, "Available")["message"]


async def test_a_quota_that_forbids_the_job_s_pod_is_named(quota: Scene) -> None:
    model = await quota.until_condition("barred", "ModelsCached", "False", reason="QuotaExceeded")
    assert "raise the ResourceQuota" in condition(model, "ModelsCached")["message"]


async def test_a_service_account_that_is_missing_is_named(scene: Scene) -> None:
    model = await scene.until_condition("nobody", "ModelsCached", "False", reason="ServiceAccountMissing")
    assert "create the service account" in condition(model, "ModelsCached")["message"]


async def _other_operator(scene: Scene, *, renewed: datetime) -> None:
    """Write another operator's Lease, of an hour."""
    namespace, _, name = OTHER.partition("/")
    spec = {
        "holderIdentity": "another-1",
        "leaseDurationSeconds": 3600,
        "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    with contextlib.suppress(AlreadyExists):
        metadata = {"name": namespace}
        await scene.api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
    await scene.api.apply(LEASES, {**body, "metadata": {"namespace": namespace, "name": name}}, force=True)


async def _apply_when_served(scene: Scene) -> None:
    """Apply a field that the API server knows a moment after the CRD says so."""

    async def stored() -> bool:
        spec = {**baseline("testbed/strange"), "futureField": "x"}
        patched = await scene.patch(SPECULATIVE_MODELS, "strange", {"spec": spec})
        return "futureField" in patched["spec"]

    await scene.until("the API server keeps the new field", stored)


async def _any_job(scene: Scene, model: str) -> bool:
    artifact = await scene.artifact("target", model)
    return bool(await scene.jobs(artifact["metadata"]["name"]))


def _quota(scene: Scene, hard: dict[str, str]) -> JsonObject:
    metadata = {"name": "quota", "namespace": scene.namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
