"""Recorded states of pods and Events, as a kubelet, a scheduler and the controllers write them."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.pod.termination import Failed, Succeeded, encode
from specdec_operator.reconcile.diagnosis import (
    MOST_RESTARTS,
    diagnose_deployment,
    diagnose_events,
    diagnose_job,
    diagnose_pod,
    program_failure,
)

DRIVER = Failed("DriverTooOld", "the driver is 535, the release needs 580: update it", terminal=True)


def pod(*, init: list[Any] | None = None, main: list[Any] | None = None, conditions: list[Any] | None = None) -> Any:
    status = {"phase": "Pending", "conditions": conditions or []}
    return {
        "metadata": {"name": "p"},
        "status": {**status, "initContainerStatuses": init or [], "containerStatuses": main or []},
    }


def waiting(reason: str, message: str = "", *, container: str = "server", last: Any = None) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": container, "state": state, "lastState": last or {}}


def ended(message: str = "", *, code: int = 3, container: str = "check") -> dict[str, Any]:
    return {"name": container, "state": {"terminated": {"exitCode": code, "reason": "Error", "message": message}}}


def event(note: str, *, reason: str = "FailedCreate", time: str = "2026-01-01T00:00:00.000000Z") -> dict[str, Any]:
    return {"metadata": {}, "reason": reason, "note": note, "eventTime": time}


def test_a_pod_that_starts_has_no_trouble() -> None:
    assert diagnose_pod(pod(main=[waiting("ContainerCreating")])) is None


def test_an_init_containers_own_words_are_the_diagnosis() -> None:
    found = diagnose_pod(pod(init=[ended(encode(DRIVER))]))
    assert found
    assert (found.reason, found.message, found.terminal) == ("DriverTooOld", DRIVER.message, True)


def test_a_restarted_programs_last_words_are_read_too() -> None:
    last = {"terminated": {"exitCode": 3, "message": encode(DRIVER)}}
    found = diagnose_pod(pod(init=[waiting("CrashLoopBackOff", "back-off 10s", container="check", last=last)]))
    assert found
    assert found.reason == "DriverTooOld"


@pytest.mark.parametrize("state", [{"running": {}}, {"terminated": {"exitCode": 0}}], ids=["runs", "ended well"])
def test_the_last_words_of_a_program_that_was_mended_do_not_count(state: Any) -> None:
    last = {"terminated": {"exitCode": 3, "message": encode(DRIVER)}}
    assert diagnose_pod(pod(init=[{"name": "check", "state": state, "lastState": last}])) is None


def test_a_program_that_ended_well_did_not_fail() -> None:
    assert program_failure(pod(init=[ended(encode(Succeeded({})), code=0)])) is None


def test_a_program_without_a_message_said_nothing() -> None:
    assert program_failure(pod(init=[ended("Segmentation fault", code=139)])) is None


def crashed(restarts: int, words: str = "") -> Any:
    last = {"terminated": {"exitCode": 1, "message": words}}
    return pod(main=[{**waiting("CrashLoopBackOff", "back-off", last=last), "restartCount": restarts}])


def test_a_server_that_crashed_once_may_come_up_yet() -> None:
    found = diagnose_pod(crashed(1))
    assert found
    assert (found.reason, found.terminal) == ("CrashLoop", False)


def test_a_server_that_crashed_many_times_will_crash_again() -> None:
    found = diagnose_pod(crashed(MOST_RESTARTS))
    assert found
    assert found.terminal


def test_a_crashed_servers_last_words_are_told() -> None:
    found = diagnose_pod(crashed(2, "tensor lm_head.weight is missing\n"))
    assert found
    assert "It ended 2 times; its last words: tensor lm_head.weight is missing" in found.message


def test_a_server_that_crashes_again_and_again_points_to_its_log() -> None:
    found = diagnose_pod(pod(main=[waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")]))
    assert found
    assert (found.reason, "kubectl logs p -c server --previous" in found.message) == ("CrashLoop", True)


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"])
def test_an_image_that_can_t_be_had_is_named(reason: str) -> None:
    found = diagnose_pod(pod(main=[waiting(reason, 'Back-off pulling image "example.com/x:1"')]))
    assert found
    assert (found.reason, "example.com/x:1" in found.message) == ("ImagePullFailed", True)


def test_a_secret_that_is_missing_is_named() -> None:
    found = diagnose_pod(pod(main=[waiting("CreateContainerConfigError", 'secret "hf-token" not found')]))
    assert found
    assert (found.reason, 'secret "hf-token" not found' in found.message) == ("SecretMissing", True)


def test_a_key_that_is_missing_in_a_secret_is_named() -> None:
    said = "couldn't find key token in Secret models/hf-token"
    found = diagnose_pod(pod(main=[waiting("CreateContainerConfigError", said)]))
    assert found
    assert (found.reason, said in found.message) == ("SecretMissing", True)


def test_another_missing_configuration_is_not_called_a_secret() -> None:
    found = diagnose_pod(pod(main=[waiting("CreateContainerConfigError", 'configmap "programs" not found')]))
    assert found
    assert found.reason == "ConfigurationMissing"


def test_what_no_node_can_take_is_named() -> None:
    message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    found = diagnose_pod(pod(conditions=[condition]))
    assert found
    assert (found.reason, message in found.message) == ("Unschedulable", True)


def test_waiting_may_mend_what_no_program_called_final() -> None:
    found = diagnose_pod(pod(main=[waiting("ImagePullBackOff")]))
    assert found
    assert not found.terminal


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        ('pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4', "QuotaExceeded"),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": …', "PodSecurityViolation"),
        ('pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 8Gi', "LimitRangeViolated"),
        (
            'pods "x" is forbidden: error looking up service account a/b: serviceaccount "b" not found',
            "ServiceAccountMissing",
        ),
        ('pods "x" is forbidden: denied by policy no-gpus', "PodForbidden"),
    ],
)
def test_a_pod_that_may_not_be_made_says_who_forbids_it(note: str, reason: str) -> None:
    found = diagnose_events([event(f"Error creating: {note}")], about="Job")
    assert found
    assert (found.reason, note in found.message) == (reason, True)


@pytest.mark.parametrize(
    ("reason", "note", "expected"),
    [
        ("FailedMount", 'MountVolume.SetUp failed for volume "store"', "MountFailed"),
        ("FailedAttachVolume", "Multi-Attach error for volume: already used by pod(s) y", "VolumeInUse"),
    ],
)
def test_a_volume_that_can_t_be_had_is_named(reason: str, note: str, expected: str) -> None:
    found = diagnose_events([event(note, reason=reason)], about="pod")
    assert found
    assert found.reason == expected


def test_the_newest_event_counts() -> None:
    old = event("exceeded quota: q", time="2026-01-01T00:00:00.000000Z")
    new = event('violates PodSecurity "baseline"', time="2026-01-02T00:00:00.000000Z")
    found = diagnose_events([old, new], about="Job")
    assert found
    assert found.reason == "PodSecurityViolation"


def test_an_event_that_says_nothing_of_trouble_is_no_diagnosis() -> None:
    assert diagnose_events([event("Created pod: x", reason="SuccessfulCreate")], about="Job") is None


def test_a_pods_events_count_when_its_state_says_nothing() -> None:
    found = diagnose_pod(pod(), [event("MountVolume.SetUp failed", reason="FailedMount")])
    assert found
    assert found.reason == "MountFailed"


def silent(**spec: Any) -> dict[str, Any]:
    """A pod of which nobody has said anything."""
    return {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Pending"}}


@pytest.mark.parametrize(
    ("spec", "reason", "named"),
    [
        ({"schedulerName": "nobody"}, "SchedulerMissing", "nobody"),
        ({}, "SchedulerMissing", "default-scheduler"),
        ({"nodeName": "gone"}, "NodeSilent", "gone"),
    ],
    ids=["unknown scheduler", "no scheduler", "dead node"],
)
def test_silence_about_a_pod_is_named_after_a_while(spec: dict[str, Any], reason: str, named: str) -> None:
    assert diagnose_pod(silent(**spec), age=29) is None
    found = diagnose_pod(silent(**spec), age=31)
    assert found
    assert (found.reason, named in found.message) == (reason, True)


def test_a_pod_that_its_kubelet_starts_is_not_silent() -> None:
    assert diagnose_pod(pod(main=[waiting("ContainerCreating")]), age=600) is None


def test_scheduling_gates_are_named() -> None:
    gated = silent(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    gated["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    found = diagnose_pod(gated)
    assert found
    assert (found.reason, "kueue.x-k8s.io/admission" in found.message) == ("SchedulingGated", True)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("ImageInspectError", "ImagePullFailed"),
        ("SignatureValidationFailed", "ImagePullFailed"),
        ("RunContainerError", "ContainerCreateFailed"),
        ("SomethingNew", "ContainerCreateFailed"),
    ],
)
def test_a_container_that_waits_for_a_less_usual_reason_is_trouble(reason: str, expected: str) -> None:
    found = diagnose_pod(pod(main=[waiting(reason)]))
    assert found
    assert (found.reason, reason in found.message) == (expected, True)


@pytest.mark.parametrize(
    ("reason", "note", "expected"),
    [
        ("Failed", 'Failed to pull image "x": dial tcp: i/o timeout', "ImagePullFailed"),
        ("FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (x)", "SecretMissing"),
        ("FailedCreatePodSandBox", 'no runtime for "x" is configured', "ContainerCreateFailed"),
        ("FailedCreate", 'Internal error occurred: failed calling webhook "x"', "PodForbidden"),
        ("SomethingNew", "nobody has thought of it", "PodNotStarting"),
    ],
)
def test_every_warning_has_a_reason(reason: str, note: str, expected: str) -> None:
    found = diagnose_events([{**event(note, reason=reason), "type": "Warning"}], about="pod")
    assert found
    assert (found.reason, note in found.message) == (expected, True)


@pytest.mark.parametrize("kind", ["Normal", "Warning"])
def test_what_says_nothing_of_a_pods_start_is_no_trouble(kind: str) -> None:
    reason = {"Normal": "Pulling", "Warning": "DNSConfigForming"}[kind]
    assert diagnose_events([{**event("as usual", reason=reason), "type": kind}], about="pod") is None


def deployment(*conditions: Any, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "d", "namespace": "n"}, "spec": spec, "status": {"conditions": list(conditions)}}


def test_a_paused_deployment_is_told_with_the_command_that_resumes_it() -> None:
    found = diagnose_deployment(deployment(paused=True))
    assert found
    assert (found.reason, "kubectl rollout resume deployment/d -n n" in found.message) == ("DeploymentPaused", True)


@pytest.mark.parametrize(
    ("message", "reason"),
    [('pods "x" is forbidden: exceeded quota: q', "QuotaExceeded"), ("something else", "PodNotStarting")],
)
def test_pods_that_a_deployment_can_not_make_are_told(message: str, reason: str) -> None:
    failing = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    found = diagnose_deployment(deployment(failing))
    assert found
    assert (found.reason, message in found.message) == (reason, True)


def test_a_deployment_that_says_nothing_has_no_trouble() -> None:
    assert diagnose_deployment(deployment({"type": "Progressing", "status": "True"})) is None


def test_a_suspended_job_is_told() -> None:
    found = diagnose_job({"metadata": {"name": "j"}, "spec": {"suspend": True}})
    assert found
    assert found.reason == "JobSuspended"
