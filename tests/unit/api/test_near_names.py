from __future__ import annotations

import pytest

from specdec_operator.api.findings import check_document

BASELINE = {
    "apiVersion": "specdec.dev/v1alpha1",
    "kind": "SpeculativeModel",
    "metadata": {"name": "a"},
    "spec": {"target": {"source": {"huggingFace": {"repository": "a/b"}}}, "speculation": {"method": "None"}},
}


def said(**spec: object) -> dict[str, str]:
    """What is said of a baseline with other parts, by path."""
    document = {**BASELINE, "spec": {**BASELINE["spec"], **spec}}  # type: ignore[dict-item]
    return {found.path: found.message for found in check_document(document)}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("eagle3", "Eagle3"),
        ("EAGLE-3", "Eagle3"),
        ("eagle_3", "Eagle3"),
        ("DraftTraget", "DraftTarget"),
        ("draft-target", "DraftTarget"),
        ("ngram", "NGram"),
        ("mtp", "MTP"),
        ("redrafter", "ReDrafter"),
        ("none", "None"),
        ("LookAhead", "Lookahead"),
    ],
)
def test_a_value_that_is_nearly_one_of_several_is_asked_for(written: str, meant: str) -> None:
    message = said(speculation={"method": written})["spec.speculation.method"]

    assert message.endswith(f"it is '{written}'; did you mean {meant}?")


def test_a_value_that_is_near_to_none_is_not_guessed() -> None:
    assert "did you mean" not in said(speculation={"method": "xyz"})["spec.speculation.method"]


@pytest.mark.parametrize(
    ("spec", "path", "belongs"),
    [
        ({"maxDraftTokens": 3}, "spec.maxDraftTokens", "spec.speculation.maxDraftTokens"),
        ({"gpu": {"product": "a"}}, "spec.gpu", "spec.placement.gpu"),
        ({"claimName": "a"}, "spec.claimName", "spec.storage.claimName"),
        ({"tensor": 4}, "spec.tensor", "spec.target.parallelism.tensor or spec.draft.parallelism.tensor"),
        ({"source": {}}, "spec.source", "spec.target.source or spec.draft.source"),
        ({"node_selector": {}}, "spec.node_selector", "spec.pod.nodeSelector"),
        ({"storage": {"size": "1Gi"}}, "spec.storage.size", "spec.storage.claim.size"),
        ({"runtime": {"reference": "a"}}, "spec.runtime.reference", "spec.runtime.image.reference"),
        (
            {"serving": {"freeGPUMemoryPercent": 3}},
            "spec.serving.freeGPUMemoryPercent",
            "spec.serving.kvCache.freeGPUMemoryPercent or spec.serving.draftKvCache.freeGPUMemoryPercent",
        ),
        (
            {"target": {"source": {"repository": "a/b"}}},
            "spec.target.source.repository",
            "spec.target.source.huggingFace.repository",
        ),
        ({"metadata": {}}, "spec.metadata", "metadata"),
    ],
)
def test_a_field_at_the_wrong_level_is_told_where_it_belongs(spec: dict[str, object], path: str, belongs: str) -> None:
    assert said(**spec)[path] == f"unknown field here; it belongs at {belongs}"


def test_a_field_beside_the_spec_belongs_into_it() -> None:
    found = check_document({**BASELINE, "replicas": 3})

    assert [(each.path, each.message) for each in found] == [
        ("replicas", "unknown field here; it belongs at spec.replicas")
    ]


def test_a_name_that_is_known_beside_it_is_meant() -> None:
    assert said(placement={"target_devices": [0]})["spec.placement.target_devices"].endswith("mean targetDevices?")


def test_a_name_that_is_near_to_none_names_the_known_ones() -> None:
    assert said(xyz=1)["spec.xyz"].startswith("unknown field; remove it. Known here: target, draft")
