"""Whether a pair's drafts are accepted; GPUs by resource claims; models in images; pods that stay with their volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import JOBS, ResourceType
from specdec_operator.triton.proof import Outcome, Proof
from tests.integration.scene import JsonObject, Scene, Stage, baseline, condition, configuration, eagle3

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

COUNTING = "26.02-counting"
CONFIGURATION = configuration(
    releases=[
        {
            "name": COUNTING,
            "image": "registry.example.com/tritonserver:26.02-counting",
            "tensorrtLLM": "1.1.0",
            "LLMAPI": {"methods": ["Eagle3", "None"]},
            "perRequestAcceptance": True,
            "source": "made for these tests",
        }
    ]
)
CLAIM_TEMPLATES = ResourceType("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
CLAIMS = ResourceType("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
IMAGE = {"image": {"reference": "registry.example.com/models/llama:1", "subPath": "model"}}


def counted(*, drafted: int | None, accepted: int | None) -> Proof:
    return Proof(outcome=Outcome.SERVED, message="answered", text=" Paris.", drafted=drafted, accepted=accepted)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("places")
    operated.prover.outcomes["effective"] = counted(drafted=200, accepted=150)
    operated.prover.outcomes["useless"] = counted(drafted=200, accepted=1)
    operated.prover.outcomes["silent"] = counted(drafted=0, accepted=0)
    for name in ("effective", "useless"):
        await made.apply(name, eagle3(runtime={"release": COUNTING}))
    await made.apply("silent", eagle3(runtime={"release": "26.02"}))
    await made.apply("alone", baseline(replicas=2))
    await made.api.create(CLAIM_TEMPLATES, _template(made, "one-gpu"))
    await made.apply("claiming", baseline(placement={"gpu": {"resourceClaimTemplate": "one-gpu"}}))
    await made.apply("unclaimed", baseline(placement={"gpu": {"resourceClaimTemplate": "nowhere"}}))
    await made.apply("imaged", {"target": {"source": IMAGE}, "speculation": {"method": "None"}})
    yield made


def _template(scene: Scene, name: str) -> JsonObject:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": scene.namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


async def test_a_pair_whose_drafts_are_accepted_is_called_effective(scene: Scene) -> None:
    model = await scene.until_condition("effective", "PairEffective", "True", reason="AcceptanceMeasured")
    assert model["status"]["acceptance"] == "Effective"
    assert "150 of 200 drafted tokens were accepted" in condition(model, "PairEffective")["message"]


async def test_a_pair_whose_drafts_are_refused_is_told_and_serves_all_the_same(scene: Scene) -> None:
    model = await scene.until_condition("useless", "PairEffective", "False", reason="AcceptanceNearZero")
    assert (model["status"]["acceptance"], condition(model, "Ready")["status"]) == ("Ineffective", "True")


async def test_a_useless_pair_is_told_by_an_event(scene: Scene) -> None:
    await scene.until_condition("useless", "PairEffective", "False")
    await scene.until_event("useless", "AcceptanceNearZero")


async def test_counts_of_a_release_that_reports_none_say_nothing(scene: Scene) -> None:
    await scene.until_ready("silent")
    model = await scene.until_condition("silent", "PairEffective", "Unknown", reason="AcceptanceNotReported")
    assert model["status"]["acceptance"] == "Unknown"


async def test_the_baseline_has_no_such_verdict(scene: Scene) -> None:
    model = await scene.until_ready("alone")
    assert condition(model, "PairEffective") == {}
    assert "acceptance" not in model["status"]


async def test_the_acceptance_is_a_figure_of_the_operator_s_metrics(scene: Scene, operated: Stage) -> None:
    await scene.until_condition("effective", "PairEffective", "True")
    assert operated.operator is not None
    async with aiohttp.ClientSession() as session, session.get(f"{operated.operator.url}/metrics") as response:
        text = await response.text()
    assert f'specdec_acceptance_ratio{{name="effective",namespace="{scene.namespace}"}} 0.75' in text


async def test_a_pod_gets_its_gpus_by_a_resource_claim(scene: Scene) -> None:
    claims: list[JsonObject] = []

    async def claimed() -> bool:
        claims[:] = [
            claim
            for claim in await scene.objects(CLAIMS)
            if claim["metadata"].get("annotations", {}).get("resource.kubernetes.io/pod-claim-name") == "gpus"
        ]
        return bool(claims)

    await scene.until("a claim of the template", claimed, seen="claiming")
    (pod,) = await scene.serving_pods("claiming")
    assert claims[0]["metadata"]["ownerReferences"][0]["name"] == pod["metadata"]["name"]


async def test_a_claim_template_that_is_missing_is_named(scene: Scene) -> None:
    model = await scene.until_condition("unclaimed", "Available", "False", reason="ResourceClaimMissing")
    assert "nowhere" in condition(model, "Available")["message"]


async def test_a_model_in_an_image_is_inspected_and_served_as_a_volume(scene: Scene) -> None:
    await scene.until_ready("imaged")
    (job,) = await scene.jobs((await scene.artifact("target", "imaged"))["metadata"]["name"])
    template = (await scene.deployment("imaged"))["spec"]["template"]["spec"]
    for spec in ((await scene.get(JOBS, job))["spec"]["template"]["spec"], template):
        references = [volume["image"]["reference"] for volume in spec["volumes"] if "image" in volume]
        assert references == ["registry.example.com/models/llama:1"]


async def test_replicas_of_a_single_node_claim_share_its_node(scene: Scene) -> None:
    await scene.until_ready("alone")
    nodes = [pod["spec"]["nodeName"] for pod in await scene.serving_pods("alone")]
    assert len(nodes) == 2
    assert len(set(nodes)) == 1
