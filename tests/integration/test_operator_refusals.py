"""What can't work says why, takes no GPU, and goes on once it is mended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from specdec_operator.cluster.resources import DEPLOYMENTS, JOBS, MODEL_ARTIFACTS, SPECULATIVE_MODELS
from testbed.operator import cut, fails, succeeds
from testbed.operator.job_player import LLAMA
from tests.integration.scene import Scene, Stage, baseline, condition, configuration, draft_target, eagle3, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from specdec_operator.cluster.resources import ResourceType

pytestmark = [pytest.mark.controlplane, pytest.mark.asyncio(loop_scope="module")]

CONFIGURATION = configuration(jobAttempts=2)
PROGRAM_REASONS = ("RepositoryNotFound", "Unauthorized", "GatedModel", "StoreFull", "StoreUnsuitable")


@dataclass(frozen=True)
class Refused:
    """A model that can't be served.

    Attributes:
        condition: the condition that says so.
        remedy: a part of what it says to do.
    """

    name: str
    spec: dict[str, Any]
    condition: str
    reason: str
    remedy: str


REFUSED = [
    Refused("vocabulary", draft_target("other/vocabulary"), "PairVerified", "VocabularyMismatch", "name a draft"),
    Refused("tokenizer", draft_target("other/tokenizer"), "PairVerified", "TokenizerMismatch", "name a draft"),
    Refused("narrow", eagle3("other/narrow-eagle3"), "PairVerified", "HiddenSizeMismatch", "name a draft"),
    Refused("unknown", engine("other/architecture"), "PairVerified", "UnsupportedArchitecture", "Use the backend"),
    Refused(
        "release", baseline(runtime={"release": "20.01"}), "Accepted", "ReleaseUnknown", "Name one of them or add a row"
    ),
    *(
        Refused(reason.lower(), baseline(f"other/{reason}"), "ModelsCached", reason, "specdec.dev/retry")
        for reason in PROGRAM_REASONS
    ),
]
NAMES = [refused.name for refused in REFUSED]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("refusals")
    made.script.models = {
        "other/vocabulary": [succeeds({**LLAMA, "vocabularySize": 600})],
        "other/tokenizer": [succeeds({**LLAMA, "tokenizerDigest": "cd" * 32})],
        "other/narrow-eagle3": [succeeds({**LLAMA, "architecture": "LlamaForCausalLMEagle3", "hiddenSize": 32})],
        "other/architecture": [succeeds({**LLAMA, "architecture": "OlmoForCausalLM"})],
        **{f"other/{reason}": [fails(reason)] for reason in PROGRAM_REASONS},
        "other/unreachable": [fails("HubUnreachable", terminal=False)],
        "other/flaky": [fails("HubUnreachable", terminal=False), succeeds()],
        "other/cut": [cut(succeeds()), succeeds()],
    }
    for refused in REFUSED:
        await made.apply(refused.name, refused.spec)
    for name in ("unreachable", "flaky", "cut"):
        await made.apply(name, baseline(f"other/{name}"))
    yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def building(operated: Stage) -> AsyncIterator[Scene]:
    made = await operated.scene("refusals-build")
    made.script.builds = [fails("EngineBuildFailed", "step build: exit code 1; lower engine.maxBatchSize")]
    await made.apply("broken", engine())
    yield made


@pytest.mark.parametrize("refused", REFUSED, ids=NAMES)
async def test_a_condition_says_what_is_wrong_and_what_to_do(scene: Scene, refused: Refused) -> None:
    model = await scene.until_stalled(refused.name, refused.reason)
    said = condition(model, refused.condition)
    assert (said["status"], said["reason"]) == ("False", refused.reason)
    assert refused.remedy in said["message"]


@pytest.mark.parametrize("refused", REFUSED, ids=NAMES)
async def test_ready_is_false_for_the_same_reason(scene: Scene, refused: Refused) -> None:
    model = await scene.until_stalled(refused.name, refused.reason)
    said = condition(model, "Ready")
    assert (said["status"], said["reason"]) == ("False", refused.reason)


@pytest.mark.parametrize("refused", REFUSED, ids=NAMES)
async def test_a_refusal_is_told_as_a_warning(scene: Scene, refused: Refused) -> None:
    await scene.until_stalled(refused.name, refused.reason)
    event = await scene.until_event(refused.name, refused.reason)
    assert refused.remedy in event["note"]


async def test_an_engine_build_that_fails_is_named_with_its_last_words(building: Scene) -> None:
    model = await building.until_stalled("broken", "EngineBuildFailed")
    assert "lower engine.maxBatchSize" in condition(model, "EnginesReady")["message"]


async def test_a_failed_build_is_not_tried_again(building: Scene) -> None:
    model = await building.until_stalled("broken", "EngineBuildFailed")
    await touch(building, SPECULATIVE_MODELS, "broken")
    await touch(building, MODEL_ARTIFACTS, model["status"]["artifacts"][-1]["name"])
    await asyncio.sleep(1)
    assert len(await building.jobs("engine-")) == 1


async def test_nothing_that_is_refused_gets_a_deployment_or_a_gpu(scene: Scene) -> None:
    for refused in REFUSED:
        await scene.until_stalled(refused.name, refused.reason)
    named = {f"{name}-serving" for name in NAMES}
    gpu_pods = [p for p in await scene.gpu_pods() if p["metadata"]["labels"].get("specdec.dev/model") in NAMES]
    assert (named & set(await scene.names(DEPLOYMENTS)), gpu_pods) == (set(), [])


async def test_a_terminal_failure_gets_no_second_job(scene: Scene) -> None:
    model = await scene.until_stalled("gatedmodel", "GatedModel")
    artifact = model["status"]["artifacts"][0]["name"]
    await touch(scene, SPECULATIVE_MODELS, "gatedmodel")
    await touch(scene, MODEL_ARTIFACTS, artifact)
    await asyncio.sleep(1)
    assert await scene.jobs(artifact) == [f"{artifact}-1"]


async def test_a_failure_that_may_pass_is_tried_again_after_a_pause(scene: Scene) -> None:
    await scene.until_ready("flaky")
    artifact = await scene.artifact("target", "flaky")
    first, second = await scene.objects(JOBS, labels=f"specdec.dev/artifact={artifact['metadata']['name']}")
    assert second["metadata"]["creationTimestamp"] > first["status"]["conditions"][-1]["lastTransitionTime"]


async def test_a_failure_that_does_not_pass_is_final_after_the_allowed_attempts(scene: Scene) -> None:
    await scene.until_stalled("unreachable", "HubUnreachable")
    artifact = await scene.artifact("target", "unreachable")
    name = artifact["metadata"]["name"]
    assert (artifact["status"]["state"], await scene.jobs(name)) == ("Failed", [f"{name}-1", f"{name}-2"])


async def test_a_cut_message_is_answered_by_another_look(scene: Scene) -> None:
    await scene.until_ready("cut")
    artifact = (await scene.artifact("target", "cut"))["metadata"]["name"]
    assert await scene.jobs(artifact) == [f"{artifact}-1", f"{artifact}-2"]


async def test_a_draft_that_fits_mends_a_refused_pair(scene: Scene) -> None:
    await scene.until_stalled("vocabulary", "VocabularyMismatch")
    await scene.apply("vocabulary", draft_target())
    await scene.until_ready("vocabulary")


async def test_a_retry_goes_on_once_the_repository_is_there(scene: Scene) -> None:
    model = await scene.until_stalled("repositorynotfound", "RepositoryNotFound")
    scene.script.models["other/RepositoryNotFound"] = [succeeds()]
    await scene.apply("repositorynotfound", model["spec"], annotations={"specdec.dev/retry": "1"})
    await scene.until_ready("repositorynotfound")


async def test_a_token_in_the_spec_mends_an_unauthorized_download(scene: Scene) -> None:
    model = await scene.until_stalled("unauthorized", "Unauthorized")
    scene.script.models["other/Unauthorized"] = [succeeds()]
    source = {"repository": "other/Unauthorized", "tokenSecretRef": {"name": "hub"}}
    await scene.apply("unauthorized", {**model["spec"], "target": {"source": {"huggingFace": source}}})
    await scene.until_ready("unauthorized")


async def test_other_limits_mend_a_failed_build(building: Scene) -> None:
    model = await building.until_stalled("broken", "EngineBuildFailed")
    building.script.builds = []
    await building.apply("broken", {**model["spec"], "engine": {"maxBatchSize": 8, "maxSequenceLength": 1024}})
    await building.until_ready("broken")


async def touch(scene: Scene, resource: ResourceType, name: str) -> None:
    """Change nothing that counts, so that an object is looked at again."""
    await scene.patch(resource, name, {"metadata": {"annotations": {"example.com/touched": "yes"}}})
