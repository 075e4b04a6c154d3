from __future__ import annotations

import pytest

from specdec_operator.api.v1alpha1.labels import is_owned
from specdec_operator.api.v1alpha1.metadata import ObjectMeta
from specdec_operator.resources import labels


@pytest.mark.parametrize("key", [*labels.model_labels("m", "server"), *labels.artifact_labels("a"), labels.REVISION])
def test_every_label_of_ours_is_refused_in_a_spec(key: str) -> None:
    assert is_owned(key)


def test_the_selector_finds_everything_that_is_made() -> None:
    key, _, value = labels.SELECTOR.partition("=")

    assert labels.model_labels("m", "server")[key] == labels.artifact_labels("a")[key] == value


def test_a_service_selects_its_own_pods_only() -> None:
    assert labels.serving_selector("a").items() <= labels.model_labels("a", "server").items()
    assert not labels.serving_selector("b").items() <= labels.model_labels("a", "server").items()


def test_an_owner_does_not_block_its_own_deletion() -> None:
    reference = labels.owner_reference("SpeculativeModel", ObjectMeta(name="a", uid="u"))

    assert reference == {
        "apiVersion": "specdec.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "name": "a",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": False,
    }


def test_requests_to_try_again_are_one_word_that_changes_with_each() -> None:
    asked = {labels.retry_by("a"): "1", labels.retry_by("b"): "1"}
    assert labels.retries(asked) != labels.retries({**asked, labels.retry_by("b"): "2"})


def test_other_annotations_ask_for_nothing() -> None:
    assert labels.retries({"specdec.dev/failed-ways": "x"}) == ""
