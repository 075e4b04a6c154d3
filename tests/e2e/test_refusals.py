from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from testbed.demo.models import condition

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    # The first one of the session waits until the cluster stands and all models are applied.
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "RepositoryNotFound"),
        ("bad-token", "Unauthorized"),
        ("gated", "GatedModel"),
        ("not-granted", "GatedModel"),
    ],
)
def test_what_the_hub_refuses_stops_with_its_reason(place: Place, name: str, reason: str) -> None:
    model = place.until_condition(name, "Stalled", "True", reason)
    assert condition(model, "ModelsCached")["reason"] == reason


def test_what_the_hub_refuses_without_a_token_is_asked_for_once(place: Place) -> None:
    place.until_condition("gated", "Stalled", "True")
    assert len(place.jobs(place.artifact("gated", "target")["name"])) == 1


@pytest.mark.parametrize("name", ["missing", "bad-token", "not-granted"])
def test_what_the_hub_refuses_with_a_token_keeps_no_more_than_two_jobs(place: Place, name: str) -> None:
    """A corrected Secret is found by asking again; of the Jobs that ended, the youngest stays."""
    place.until_condition(name, "Stalled", "True")
    assert 1 <= len(place.jobs(place.artifact(name, "target")["name"])) <= 2


@pytest.mark.parametrize("name", ["missing", "bad-token", "gated"])
def test_what_the_hub_refuses_is_told_by_a_warning_event(place: Place, name: str) -> None:
    model = place.until_condition(name, "Stalled", "True")
    assert condition(model, "Stalled")["reason"] in {event["reason"] for event in place.warnings(name)}


def test_a_granted_token_opens_a_gated_model_whatever_token_another_model_of_the_store_has(place: Place) -> None:
    place.until_condition("granted", "ModelsCached", "True")


def test_a_corrected_secret_goes_on_when_a_retry_is_asked_for(place: Place) -> None:
    place.until_condition("not-granted", "Stalled", "True")
    place.secret("not-granted", "hf_testbed_granted")
    place.kubectl("annotate", "specmodel", "not-granted", "specdec.dev/retry=1", "--overwrite")
    place.until_condition("not-granted", "ModelsCached", "True")


def test_a_missing_secret_is_named_and_its_creation_goes_on_by_itself(place: Place) -> None:
    model = place.until_condition("no-secret", "ModelsCached", "False", "SecretMissing")
    assert "absent" in condition(model, "ModelsCached")["message"]
    place.secret("absent", "hf_testbed_granted")
    place.until_condition("no-secret", "ModelsCached", "True")


def test_a_draft_of_another_vocabulary_is_refused_before_any_gpu_is_asked_for(place: Place) -> None:
    model = place.until_condition("other-vocabulary", "PairVerified", "False")
    assert condition(model, "Stalled")["status"] == "True"
    assert not place.gpu_pods("other-vocabulary")
    assert not [a for a in model["status"]["artifacts"] if a["kind"] == "Engine"]
