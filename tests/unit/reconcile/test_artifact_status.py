from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact, ModelArtifactStatus
from specdec_operator.reconcile import artifact_status as statuses
from specdec_operator.reconcile.artifact_status import Failure
from specdec_operator.resources.labels import DOUBTED_AT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAY_PASS = Failure(reason="HubUnreachable", message="no route", terminal=False)
FINAL = Failure(reason="GatedModel", message="ask for access", terminal=True)
FACTS = {
    "architecture": "LlamaForCausalLM",
    "vocabularySize": 512,
    "layers": 4,
    "hiddenSize": 64,
    "attentionHeads": 4,
    "keyValueHeads": 2,
    "headSize": 16,
    "dataType": "float16",
    "contextLength": 4096,
    "weightBytes": 1,
    "contentDigest": "d" * 64,
}
WORK: dict[str, dict[str, Any]] = {
    "fetch": {"repository": "a/b", "directory": "models/x"},
    "inspect": {"subPath": "x"},
    "build": {
        "model": {"claimName": "store"},
        "steps": [{"name": "build", "argv": ["trtllm-build"]}],
        "directory": "engines/x",
        "ranks": 1,
        "tensorrtLLMVersion": "1.2.1",
    },
    "prebuilt": {"subPath": "x", "expectation": "{}"},
    "assemble": {"repository": "{}"},
}


def artifact(part: str = "fetch", **status: Any) -> ModelArtifact:
    spec = {"type": "Model", "key": "a" * 64, "image": "example.com/triton:1", part: WORK[part]}
    return ModelArtifact.model_validate({"metadata": {"name": "model-x"}, "spec": spec, "status": status})


def status(**fields: Any) -> ModelArtifactStatus:
    return ModelArtifactStatus.model_validate(fields)


def failed(failures: int = 0, *, allowed: int = 5, failure: Failure = MAY_PASS) -> ModelArtifactStatus:
    before = status(state="Running", attempts=7, failures=failures, job="model-x-1")
    return statuses.failed(before, failure, now=NOW, attempts_allowed=allowed)


def wait_after(failures: int) -> float:
    return statuses.seconds_until(failed(failures, allowed=99).not_before, NOW)


def test_a_failure_that_may_pass_waits_for_another_try() -> None:
    assert (failed().state, failed().reason) == ("Pending", "HubUnreachable")


def test_a_final_failure_is_failed_at_once() -> None:
    assert (failed(failure=FINAL).state, failed(failure=FINAL).not_before) == ("Failed", "")


def test_the_last_allowed_attempt_is_final() -> None:
    assert failed(4, allowed=5).state == "Failed"


def test_the_attempt_before_the_last_is_not_final() -> None:
    assert failed(3, allowed=5).state == "Pending"


def test_each_failure_counts_as_an_attempt() -> None:
    assert failed(2).attempts == 8


def test_only_failures_in_a_row_decide_when_to_give_up() -> None:
    assert failed(0, allowed=5).state == "Pending"


def test_a_success_ends_a_row_of_failures() -> None:
    done = statuses.succeeded(artifact("build"), status(failures=3), {"digest": "e" * 64}, now=NOW)
    assert isinstance(done, ModelArtifactStatus)
    assert done.failures == 0


def test_pauses_double() -> None:
    assert [wait_after(failures) for failures in range(4)] == [5, 10, 20, 40]


def test_no_pause_is_longer_than_ten_minutes() -> None:
    assert wait_after(30) == timedelta(minutes=10).total_seconds()


def test_a_failed_artifact_keeps_the_name_of_its_last_job() -> None:
    assert failed(failure=FINAL).job == "model-x-1"


def test_the_next_attempt_has_a_job_name_of_its_own() -> None:
    before = status(state="Running", job="model-x-1")
    after = statuses.failed(before, MAY_PASS, now=NOW, attempts_allowed=5)
    assert [statuses.job_name(artifact(), each) for each in (before, after)] == ["model-x-1", "model-x-2"]


def test_an_attempt_has_one_job_name_until_it_is_counted() -> None:
    running = status(state="Running", job="model-x-1")
    assert statuses.job_name(artifact(), running) == statuses.job_name(artifact(), status())


def test_a_build_whose_job_vanished_is_only_looked_for() -> None:
    gone = statuses.vanished(status(state="Running", job="engine-x-1"), now=NOW)
    assert statuses.job_name(artifact("build"), gone) == "model-x-2-verify"


def test_a_job_that_vanished_once_is_looked_after_at_once() -> None:
    assert statuses.vanished(status(state="Running", job="model-x-1"), now=NOW).not_before == ""


def test_jobs_that_vanish_again_and_again_are_waited_for() -> None:
    gone = statuses.vanished(status(state="Running", job="model-x-3", failures=2), now=NOW)
    assert statuses.seconds_until(gone.not_before, NOW) == 10


def test_a_look_is_not_forgotten_while_something_else_is_waited_for() -> None:
    gone = statuses.vanished(status(state="Running", job="engine-x-1"), now=NOW)
    assert statuses.verifies(artifact("build"), gone.model_copy(update={"reason": "ClaimMissing"}))


def test_a_disturbance_from_outside_uses_up_no_attempt() -> None:
    evicted = Failure(reason="Interrupted", message="evicted", terminal=False, counts=False)
    assert failed(4, allowed=5, failure=evicted).state == "Pending"


def test_a_success_tells_when_the_content_was_there() -> None:
    done = statuses.succeeded(artifact("build"), status(), {"digest": "e" * 64}, now=NOW)
    assert isinstance(done, ModelArtifactStatus)
    assert done.ready_at == "2026-01-01T00:00:00Z"


def test_a_download_whose_job_vanished_is_repeated() -> None:
    gone = statuses.vanished(status(state="Running", job="model-x-1"), now=NOW)
    assert not statuses.verifies(artifact("fetch"), gone)


def test_an_engine_that_was_not_found_is_built() -> None:
    missing = Failure(reason=statuses.NOT_PUBLISHED, message="no manifest", terminal=False)
    gone = statuses.vanished(status(state="Running", job="engine-x-1"), now=NOW)
    looked = statuses.failed(gone, missing, now=NOW, attempts_allowed=5)
    assert not statuses.verifies(artifact("build"), looked)


@pytest.mark.parametrize(
    ("part", "reason"),
    [("fetch", "Fetching"), ("inspect", "Inspecting"), ("build", "Building"), ("assemble", "Assembling")],
)
def test_a_running_job_is_named_by_its_work(part: str, reason: str) -> None:
    assert statuses.at_work(artifact(part), verify=False) == reason


def test_a_job_that_only_looks_is_verifying() -> None:
    assert statuses.at_work(artifact("build"), verify=True) == "Verifying"


def test_facts_of_a_model_are_kept() -> None:
    done = statuses.succeeded(artifact(), status(state="Running"), {"facts": FACTS, "reused": False}, now=NOW)
    assert isinstance(done, ModelArtifactStatus)
    assert (done.state, done.facts and done.facts.vocabulary_size) == ("Ready", 512)


def test_the_digest_of_an_engine_is_kept() -> None:
    done = statuses.succeeded(artifact("build"), status(state="Running"), {"digest": "e" * 64, "ranks": 1}, now=NOW)
    assert isinstance(done, ModelArtifactStatus)
    assert done.digest == "e" * 64


def test_facts_that_break_the_schema_are_a_final_failure_that_names_the_field() -> None:
    done = statuses.succeeded(artifact(), status(state="Running"), {"facts": {**FACTS, "layers": 0}}, now=NOW)
    assert isinstance(done, Failure)
    assert (done.reason, done.terminal, "layers" in done.message) == ("FactsInvalid", True, True)


def test_a_retry_of_a_failed_artifact_starts_over_with_another_job() -> None:
    over = statuses.started_over(artifact(state="Failed", reason="StoreFull", attempts=1), claim_uid="u", retry="1")
    assert (over.state, over.retry, over.attempts) == ("Pending", "1", 1)


def test_a_retry_is_obeyed_once() -> None:
    done = artifact(state="Failed", reason="StoreFull", retry="1")
    assert statuses.started_over(done, claim_uid="u", retry="1").state == "Failed"


def test_a_retry_does_not_disturb_what_is_ready() -> None:
    over = statuses.started_over(artifact(state="Ready", claimUid="u"), claim_uid="u", retry="1")
    assert (over.state, over.retry) == ("Ready", "1")


def test_another_claim_of_the_same_name_holds_nothing() -> None:
    over = statuses.started_over(artifact(state="Ready", claimUid="old"), claim_uid="new", retry="")
    assert (over.state, over.facts) == ("Pending", None)


def test_a_time_that_is_past_needs_no_wait() -> None:
    assert statuses.seconds_until("2025-12-31T23:59:00Z", NOW) == 0


def test_no_time_needs_no_wait() -> None:
    assert statuses.seconds_until("", NOW) == 0


def doubted(at: str, *, ready_at: str = "2026-01-01T00:00:00Z") -> ModelArtifactStatus:
    there = artifact("build", state="Ready", attempts=1, readyAt=ready_at, retry="")
    metadata = there.metadata.model_copy(update={"annotations": {DOUBTED_AT: at}})
    return statuses.started_over(there.model_copy(update={"metadata": metadata}), claim_uid="", retry="")


def test_content_that_a_pod_did_not_find_is_looked_for_again() -> None:
    again = doubted("2026-01-01T00:00:09Z")
    assert (again.state, again.reason, again.verify_next) == ("Pending", "ContentDoubted", True)


def test_a_doubt_from_before_the_content_was_last_seen_is_settled() -> None:
    assert doubted("2025-12-31T23:59:59Z").state == "Ready"


def test_a_build_says_what_it_takes() -> None:
    spec = {
        "type": "Engine",
        "key": "a" * 64,
        "image": "example.com/triton:1",
        "claimName": "store",
        "build": {**WORK["build"], "scratchBytes": 32 * 1024**3},
        "gpu": {"resourceName": "nvidia.com/gpu", "count": 2, "product": "NVIDIA-H100-80GB-HBM3"},
    }
    made = ModelArtifact.model_validate({"metadata": {"name": "engine-x"}, "spec": spec})

    assert statuses.work_message(made, "engine-x-1", verify=False) == (
        "Job engine-x-1: takes 2 GPU(s), and 32Gi of free space in claim store"
    )
    assert statuses.work_message(made, "engine-x-1", verify=True) == "Job engine-x-1"


def test_a_prebuilt_engine_is_being_inspected() -> None:
    assert statuses.at_work(artifact("prebuilt"), verify=False) == "Inspecting"


DATA_SET = {"content": "DataSet", "repository": "a/b", "directory": "data/x"}


@pytest.mark.parametrize(
    ("part", "result", "names"),
    [
        ("fetch", {}, "facts"),
        ("fetch", {"facts": None}, "facts"),
        ("fetch", {"facts": [1]}, "facts"),
        ("fetch", {"facts": {**FACTS, "architecture": "x" * 129}}, "facts.architecture"),
        ("fetch", {"facts": FACTS, "notes": 5}, "notes"),
        ("fetch", {"facts": FACTS, "notes": [{}]}, "notes.0"),
        ("build", {}, "digest"),
        ("build", {"digest": "../../etc"}, "digest"),
        ("build", {"digest": "e" * 65}, "digest"),
        ("build", {"digest": 7}, "digest"),
        ("assemble", {"digest": ""}, "digest"),
        ("prebuilt", {"facts": FACTS}, "digest"),
    ],
)
def test_a_result_that_is_not_what_the_program_yields_is_a_final_failure(
    part: str, result: dict[str, Any], names: str
) -> None:
    done = statuses.succeeded(artifact(part), status(state="Running"), result, now=NOW)
    assert isinstance(done, Failure)
    assert (done.reason, done.terminal, names in done.message) == ("FactsInvalid", True, True)


def test_texts_for_a_quantizer_are_told_apart_from_a_model() -> None:
    texts = artifact()
    spec = texts.spec.model_copy(update={"fetch": texts.spec.fetch and texts.spec.fetch.model_validate(DATA_SET)})
    done = statuses.succeeded(texts.model_copy(update={"spec": spec}), status(), {"facts": FACTS}, now=NOW)
    assert isinstance(done, Failure)
    assert "dataSet" in done.message


EVICTED = Failure(reason="Interrupted", message="evicted", terminal=False, counts=False)


def interrupted(before: int) -> ModelArtifactStatus:
    running = status(state="Running", job="model-x-1", interruptions=before)
    return statuses.failed(running, EVICTED, now=NOW, attempts_allowed=5)


def test_pauses_after_interruptions_double_too() -> None:
    waits = [statuses.seconds_until(interrupted(before).not_before, NOW) for before in (0, 1, 2, 9)]
    assert waits == [5, 10, 20, 600]


def test_interruptions_end_at_last() -> None:
    last = interrupted(statuses.MOST_INTERRUPTIONS - 1)
    assert (last.state, last.reason, last.not_before) == ("Failed", "Interrupted", "")
    assert "12 times in a row" in last.message


def test_a_failure_of_its_own_ends_a_row_of_interruptions() -> None:
    running = status(state="Running", job="model-x-1", interruptions=7)
    assert statuses.failed(running, MAY_PASS, now=NOW, attempts_allowed=5).interruptions == 0


TOKEN = {"tokenSecretRef": {"name": "hub", "key": "token"}}


def download(**fields: Any) -> ModelArtifact:
    made = artifact()
    fetch = made.spec.fetch and made.spec.fetch.model_validate({**WORK["fetch"], **fields})
    return made.model_copy(update={"spec": made.spec.model_copy(update={"fetch": fetch})})


@pytest.mark.parametrize("reason", ["Unauthorized", "GatedModel", "RepositoryNotFound"])
def test_a_download_that_a_token_was_refused_for_is_failed_and_tried_again(reason: str) -> None:
    refused = statuses.about_a_token(download(**TOKEN), Failure(reason=reason, message="no", terminal=True))
    ended = statuses.failed(status(state="Running"), refused, now=NOW, attempts_allowed=5)
    assert (ended.state, statuses.seconds_until(ended.not_before, NOW)) == ("Failed", 5)


@pytest.mark.parametrize(
    ("made", "reason"),
    [(download(), "Unauthorized"), (download(**TOKEN), "StoreFull"), (artifact("build"), "Unauthorized")],
    ids=["no token", "not about a token", "no download"],
)
def test_another_final_failure_is_not_tried_again(made: ModelArtifact, reason: str) -> None:
    refused = statuses.about_a_token(made, Failure(reason=reason, message="no", terminal=True))
    ended = statuses.failed(status(state="Running"), refused, now=NOW, attempts_allowed=5)
    assert (ended.state, ended.not_before) == ("Failed", "")
