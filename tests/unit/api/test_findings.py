from __future__ import annotations

import copy

import pytest

from specdec_operator.api.findings import Finding, check_document
from tests.vectors.api import Document, Vector, vectors

VECTORS = {vector.name: vector for vector in vectors()}


def of(name: str) -> Document:
    return copy.deepcopy(VECTORS[name].document)


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
def test_an_object_is_refused_at_the_field_and_with_the_words_of_its_vector(vector: Vector) -> None:
    findings = check_document(vector.document)

    for refusal in vector.refused_by:
        assert any(found.path == refusal.path and refusal.message in found.message for found in findings), findings


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
def test_nothing_is_found_but_what_the_vector_names(vector: Vector) -> None:
    expected = {refusal.path for refusal in vector.refused_by}

    assert {found.path for found in check_document(vector.document)} <= expected | _consequences(vector)


def _consequences(vector: Vector) -> set[str]:
    """One wrong device list breaks the rules of both lists."""
    about_devices = any(refusal.path.startswith("spec.placement.") for refusal in vector.refused_by)
    return {"spec.placement.draftDevices", "spec.placement.targetDevices"} if about_devices else set()


def test_vector_names_are_unique() -> None:
    assert len(VECTORS) == len(vectors())


def test_an_unknown_kind_is_named() -> None:
    assert check_document({"kind": "SpeculativeModle"}) == [
        Finding("kind", "must be one of SpeculativeModel, ModelArtifact; it is 'SpeculativeModle'")
    ]


def test_another_version_is_named() -> None:
    document = of("the baseline")
    document["apiVersion"] = "specdec.dev/v1"

    assert check_document(document) == [Finding("apiVersion", "must be specdec.dev/v1alpha1; it is 'specdec.dev/v1'")]


def test_a_rule_is_still_checked_when_another_field_is_malformed() -> None:
    document = of("a draft device that leaves a gap")
    document["spec"]["replicas"] = "3"

    assert {found.path for found in check_document(document)} >= {"spec.replicas", "spec.placement.draftDevices"}


def test_a_rule_is_not_checked_when_the_field_that_it_reads_is_malformed() -> None:
    document = of("the smallest useful spec")
    document["spec"]["speculation"]["method"] = 3

    assert [found.path for found in check_document(document)] == ["spec.speculation.method"]


def test_an_object_with_a_generated_name_is_taken() -> None:
    document = of("the baseline")
    document["metadata"] = {"generateName": "llama-"}

    assert check_document(document) == []


def test_an_object_without_metadata_needs_a_name() -> None:
    document = of("the baseline")
    del document["metadata"]

    assert [found.path for found in check_document(document)] == ["metadata.name"]


def test_the_status_is_the_operators_business() -> None:
    document = of("the baseline")
    document["status"] = {"conditions": "nonsense"}

    assert check_document(document) == []


def test_what_kubernetes_keeps_in_metadata_is_not_judged() -> None:
    document = of("the baseline")
    document["metadata"] |= {"finalizers": ["a/b"], "labels": None}

    assert check_document(document) == []


@pytest.mark.parametrize(
    ("place", "written", "known"),
    [
        (("spec", "serving"), {"max_batch_size": 4}, "maxBatchSize"),
        (("spec", "placement"), {"target_devices": [5]}, "targetDevices"),
        (("spec", "serving", "kvCache"), {"free_gpu_memory_percent": 4}, "freeGPUMemoryPercent"),
        (("spec", "serving", "kvCache"), {"freeGpuMemoryPercent": 4}, "freeGPUMemoryPercent"),
        (("spec", "speculation"), {"n_gram": {}}, "nGram"),
        (("spec", "target", "source", "huggingFace"), {"token_secret_ref": {"name": "a"}}, "tokenSecretRef"),
    ],
)
def test_a_field_by_its_name_in_python_is_unknown(
    place: tuple[str, ...], written: dict[str, object], known: str
) -> None:
    document = of("the baseline")
    inside = document
    for step in place:
        inside = inside.setdefault(step, {})
    inside |= written

    assert check_document(document) == [
        Finding(".".join((*place, next(iter(written)))), f"unknown field; did you mean {known}?")
    ]
