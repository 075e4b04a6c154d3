from __future__ import annotations

from typing import Any

import kopf

from specdec_operator.cluster.apply import Applied
from specdec_operator.reconcile.informer import (
    informer_settings,
    keys_of_artifact,
    keys_of_child,
    keys_of_model,
    keys_of_slice,
)
from specdec_operator.reconcile.own_writes import OwnWrites
from specdec_operator.reconcile.queue import Key
from specdec_operator.resources.labels import ARTIFACT, MODEL

METADATA: dict[str, Any] = {"namespace": "team", "name": "it", "uid": "u", "resourceVersion": "7"}
OWNED = {**METADATA, "ownerReferences": [{"kind": "SpeculativeModel", "name": "chat"}, {"kind": "Other", "name": "x"}]}
CHAT = Key(kind="SpeculativeModel", namespace="team", name="chat")
ARTIFACT_KEY = Key(kind="ModelArtifact", namespace="team", name="it")
MODEL_KEY = Key(kind="SpeculativeModel", namespace="team", name="it")


def having_written(metadata: dict[str, Any] = METADATA) -> OwnWrites:
    writes = OwnWrites()
    writes.note(Applied({"metadata": metadata}, changed=True))
    return writes


def pod(**labels: str) -> dict[str, Any]:
    return {"metadata": {**METADATA, "labels": labels}, "status": {"phase": "Running"}}


def test_a_model_that_somebody_changed_is_run() -> None:
    assert keys_of_model("MODIFIED", {"metadata": METADATA}, own_writes=OwnWrites()) == [MODEL_KEY]


def test_a_model_that_was_there_when_a_watch_began_is_run_even_if_its_state_was_written_here() -> None:
    assert keys_of_model(None, {"metadata": METADATA}, own_writes=having_written()) == [MODEL_KEY]


def test_a_model_is_not_run_for_its_own_status() -> None:
    assert keys_of_model("MODIFIED", {"metadata": METADATA}, own_writes=having_written()) == []


def test_a_model_that_is_gone_is_run_even_if_its_last_state_was_written_here() -> None:
    assert keys_of_model("DELETED", {"metadata": METADATA}, own_writes=having_written()) == [MODEL_KEY]


def test_an_object_that_is_gone_leaves_nothing_behind() -> None:
    writes = having_written()
    keys_of_model("DELETED", {"metadata": METADATA}, own_writes=writes)
    assert not writes.made(METADATA)


def test_an_artifact_that_changed_is_run_and_so_are_the_models_that_use_it() -> None:
    found = keys_of_artifact("MODIFIED", {"metadata": OWNED}, own_writes=OwnWrites())
    assert found == [ARTIFACT_KEY, CHAT]


def test_the_models_of_an_artifact_learn_what_was_written_to_it() -> None:
    assert keys_of_artifact("MODIFIED", {"metadata": OWNED}, own_writes=having_written()) == [CHAT]


def test_a_child_runs_the_model_that_it_is_labelled_with() -> None:
    assert keys_of_child("MODIFIED", pod(**{MODEL: "chat"}), plural="pods") == [CHAT]


def test_a_child_runs_the_artifact_that_it_is_labelled_with() -> None:
    assert keys_of_child("MODIFIED", pod(**{ARTIFACT: "it"}), plural="pods") == [ARTIFACT_KEY]


def test_a_child_of_nobody_runs_nothing() -> None:
    assert keys_of_child("MODIFIED", pod(), plural="pods") == []


def test_a_child_whose_state_says_nothing_runs_nothing() -> None:
    waits = {"metadata": {**METADATA, "labels": {MODEL: "chat"}}, "status": {"phase": "Pending"}}
    assert keys_of_child("ADDED", waits, plural="pods") == []


def test_a_child_that_is_gone_counts_whatever_its_last_state_was() -> None:
    waits = {"metadata": {**METADATA, "labels": {MODEL: "chat"}}, "status": {"phase": "Pending"}}
    assert keys_of_child("DELETED", waits, plural="pods") == [CHAT]


def test_kopf_copies_no_object_to_compare_it() -> None:
    storage = informer_settings(watch_list=False).persistence.diffbase_storage
    assert storage.build(body=kopf.Body(kopf.BodyEssence(spec={"large": "object"}))) == {}


def test_a_slice_of_a_models_service_runs_the_model() -> None:
    labels = {"kubernetes.io/service-name": "chat-serving"}
    assert keys_of_slice({"metadata": {**METADATA, "labels": labels}}) == [CHAT]


def test_a_slice_of_another_service_runs_nothing() -> None:
    assert keys_of_slice({"metadata": {**METADATA, "labels": {"kubernetes.io/service-name": "shop"}}}) == []
