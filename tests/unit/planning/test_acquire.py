from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.v1alpha1.artifact_inputs import MountedModel
from specdec_operator.planning.acquire import acquire, commit_pins
from specdec_operator.planning.pods import job_pod, placed_pod
from tests.unit.specs import BASELINE, CONFIGURATION, DRAFT_TARGET, EAGLE3, PRODUCT, model, models_of, resolution_of

if TYPE_CHECKING:
    from specdec_operator.planning.artifact_request import ArtifactRequest

CLAIM = {"persistentVolumeClaim": {"claimName": "models", "subPath": "llama"}}


def name_of(**changes: Any) -> str:
    return models_of(model(BASELINE, **changes))[0].name


def test_target_and_draft_are_fetched_target_first() -> None:
    assert [request.role for request in models_of(model(EAGLE3))] == ["target", "draft"]


def test_a_claim_s_model_is_inspected_where_it_lies() -> None:
    (target,) = models_of(model(BASELINE, target__source=CLAIM))

    assert (target.spec.claim_name, target.spec.inspect and target.spec.inspect.sub_path) == ("models", "llama")


def test_a_repository_is_fetched_into_the_store() -> None:
    (target,) = models_of(model(BASELINE))

    assert target.spec.fetch is not None
    assert target.spec.fetch.directory.startswith("models/")
    assert target.spec.claim_name == "specdec-store"


def test_the_default_branch_is_asked_for_where_no_revision_is_named() -> None:
    (target,) = models_of(model(BASELINE))

    assert target.spec.fetch is not None
    assert target.spec.fetch.revision == "main"


def test_the_hub_of_the_configuration_serves_sources_that_name_none() -> None:
    made = model(BASELINE)
    configuration = OperatorConfiguration(hugging_face_endpoint="https://hub.example.com")
    (target,) = acquire(made.spec, resolution_of(made), configuration=configuration)

    assert target.spec.fetch is not None
    assert target.spec.fetch.endpoint == "https://hub.example.com"


@pytest.mark.parametrize(
    "changes",
    [
        {"pod": {"labels": {"a": "b"}}},
        {"pod": {"environment": [{"name": "A", "value": "b"}]}},
        {"pod": {"jobResources": {"memory": "1Gi"}}},
        {"serving": {"maxBatchSize": 2}},
        {"runtime": {"release": "25.10"}},
        {"replicas": 3},
        {"target__source__huggingFace__tokenSecretRef": {"name": "other"}},
    ],
)
def test_models_that_need_the_same_content_share_an_artifact(changes: dict[str, Any]) -> None:
    assert name_of(**changes) == name_of()


@pytest.mark.parametrize(
    "changes",
    [
        {"target__source__huggingFace__repository": "someone/other"},
        {"target__source__huggingFace__revision": "v1"},
        {"target__source__huggingFace__endpoint": "https://hub.example.com"},
        {"storage__claim__claimName": "other"},
        {"target__source": CLAIM},
    ],
)
def test_other_content_or_another_place_is_another_artifact(changes: dict[str, Any]) -> None:
    assert name_of(**changes) != name_of()


def test_a_refresh_asks_for_a_moving_revision_anew() -> None:
    made = model(BASELINE)
    first, second = (
        acquire(made.spec, resolution_of(made), configuration=CONFIGURATION, refresh=value)[0] for value in ("", "1")
    )

    assert first.name != second.name


def test_a_pair_of_the_same_repository_is_one_artifact() -> None:
    target, draft = models_of(model(DRAFT_TARGET, draft__source=DRAFT_TARGET["target"]["source"]))

    assert target.name == draft.name


def test_the_taint_of_the_gpus_is_tolerated() -> None:
    made = model(BASELINE, placement={"gpu": {"resourceName": "example.com/gpu"}})

    assert [t.key for t in placed_pod(made.spec, None).tolerations] == ["example.com/gpu"]


def test_a_declared_toleration_of_that_taint_is_kept() -> None:
    made = model(BASELINE, pod={"tolerations": [{"key": "nvidia.com/gpu", "value": "yes"}]})

    assert [t.value for t in placed_pod(made.spec, None).tolerations] == ["yes"]


def test_every_pod_is_held_to_the_gpu_product() -> None:
    made = model(DRAFT_TARGET, pod={"nodeSelector": {"zone": "a"}})

    assert placed_pod(made.spec, PRODUCT).node_selector == {"zone": "a", "nvidia.com/gpu.product": PRODUCT}


def test_jobs_take_nothing_that_is_for_serving_only() -> None:
    serving = {
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "environment": [{"name": "A"}],
        "serverResources": {"cpu": "1"},
    }
    plain, dressed = model(BASELINE), model(BASELINE, pod=serving)

    assert job_pod(dressed.spec, None) == job_pod(plain.spec, None)


COMMIT = "c" * 40


def pinned(spec: Any, pins: Any) -> tuple[ArtifactRequest, ...]:
    made = model(spec)
    return acquire(made.spec, resolution_of(made), configuration=CONFIGURATION, pins=pins)


def revision_of(request: ArtifactRequest) -> str:
    assert request.spec.fetch is not None
    return request.spec.fetch.revision


def test_a_moving_revision_that_was_fetched_is_pinned_to_its_commit() -> None:
    (pin,) = commit_pins(models_of(model(BASELINE)), (), commits={"target": COMMIT})
    assert (pin.name, pin.value) == ("target.source.huggingFace.revision", COMMIT)


def test_a_revision_that_is_the_commit_needs_no_pin() -> None:
    requests = pinned(BASELINE, commit_pins(models_of(model(BASELINE)), (), commits={"target": COMMIT}))
    assert commit_pins(requests, (), commits={"target": COMMIT}) == ()


def test_a_pinned_model_is_asked_for_by_its_commit_under_the_same_name() -> None:
    before = models_of(model(BASELINE))
    (after,) = pinned(BASELINE, commit_pins(before, (), commits={"target": COMMIT}))
    assert (after.name, revision_of(after)) == (before[0].name, COMMIT)


def test_a_pin_is_kept_while_the_model_is_not_known_again() -> None:
    pins = commit_pins(models_of(model(BASELINE)), (), commits={"target": COMMIT})
    assert commit_pins(pinned(BASELINE, pins), pins, commits={}) == pins


def test_a_pin_of_another_revision_does_not_apply() -> None:
    pins = commit_pins(models_of(model(BASELINE)), (), commits={"target": COMMIT})
    source = {"huggingFace": {**BASELINE["target"]["source"]["huggingFace"], "revision": "next"}}
    (request,) = pinned({**BASELINE, "target": {"source": source}}, pins)
    assert revision_of(request) == "next"


IMAGE = {"image": {"reference": "registry.example.com/llama:1", "subPath": "model"}}


def test_an_image_s_model_is_inspected_where_it_lies() -> None:
    (target,) = models_of(model(BASELINE, target__source=IMAGE))

    assert target.spec.claim_name is None
    assert target.yields == MountedModel(image="registry.example.com/llama:1", sub_path="model")


def test_another_image_is_another_artifact() -> None:
    assert name_of(target__source=IMAGE) != name_of(target__source={"image": {"reference": "b"}})


@pytest.mark.parametrize("patterns", [{"allowPatterns": ["*.json"]}, {"ignorePatterns": ["*.json"]}])
def test_a_part_of_a_repository_is_another_artifact(patterns: dict[str, list[str]]) -> None:
    part = {"huggingFace": {"repository": "someone/target", **patterns}}

    assert name_of(target__source=part) != name_of()
