from __future__ import annotations

from typing import Any

from specdec_operator.pod.termination import Failed, Succeeded, encode
from specdec_operator.reconcile.job_end import failure_of, termination_message

JOB: dict[str, Any] = {
    "status": {"conditions": [{"type": "Failed", "status": "True", "message": "Job has reached the backoff limit"}]}
}


def pod(*, conditions: tuple[dict[str, str], ...] = (), **terminated: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "model-x-1-abcde"},
        "status": {
            "conditions": list(conditions),
            "containerStatuses": [{"name": "program", "state": {"terminated": terminated}}],
        },
    }


def test_the_programs_own_words_are_the_failure() -> None:
    said = encode(Failed(reason="GatedModel", message="accept the licence", terminal=True))
    failure = failure_of(JOB, [pod(exitCode=3, message=said)])
    assert (failure.reason, failure.message, failure.terminal) == ("GatedModel", "accept the licence", True)


def test_a_pod_killed_for_memory_is_final_and_names_the_field() -> None:
    failure = failure_of(JOB, [pod(exitCode=137, reason="OOMKilled")])
    assert (failure.reason, failure.terminal) == ("OutOfMemory", True)
    assert "spec.pod.jobResources.memory" in failure.message


def test_a_program_that_left_no_word_may_be_tried_again() -> None:
    failure = failure_of(JOB, [pod(exitCode=1)])
    assert (failure.reason, failure.terminal) == ("JobFailed", False)


def test_a_job_whose_pod_is_gone_says_what_the_job_says() -> None:
    assert failure_of(JOB, []).message == "Job has reached the backoff limit"


def test_an_evicted_pod_does_not_count() -> None:
    evicted = pod(conditions=({"type": "DisruptionTarget", "status": "True"},), exitCode=143)
    failure = failure_of(JOB, [evicted])
    assert (failure.reason, failure.counts) == ("Interrupted", False)


def test_the_message_is_that_of_the_container_that_ended_well() -> None:
    said = encode(Succeeded(result={"digest": "e"}))
    assert termination_message([pod(exitCode=1, message="x"), pod(exitCode=0, message=said)]) == said


def test_no_message_is_an_empty_one() -> None:
    assert termination_message([pod(exitCode=0)]) == ""


def test_a_pod_that_worked_for_too_long_is_final_whatever_it_said_last() -> None:
    said = encode(Failed(reason="Interrupted", message="stopped by SIGTERM", terminal=False))
    late = pod(exitCode=1, message=said)
    late["status"]["reason"] = "DeadlineExceeded"

    failure = failure_of(JOB, [late])

    assert (failure.reason, failure.terminal) == ("JobTookTooLong", True)
    assert "jobHours" in failure.message


def test_a_job_whose_pod_never_got_a_node_is_made_again_and_does_not_count() -> None:
    ended = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}

    failure = failure_of({"status": {"conditions": [ended]}}, [])

    assert (failure.reason, failure.terminal, failure.counts) == ("JobTookTooLong", False, False)
