"""Recorded states of pods and Events, as a kubelet, a scheduler and the controllers write them."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.pod.termination import Failed, Succeeded, encode
from specdec_operator.reconcile.diagnosis import MOST_RESTARTS, diagnose_events, diagnose_pod, program_failure

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
