from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from specdec_operator.api.v1alpha1.model_facts import DataSetFacts
from specdec_operator.planning.refusal import Refused
from specdec_operator.resources.known import Known
from specdec_operator.resources.labels import PLACEHOLDER
from specdec_operator.resources.render import NIL_UID, Renderer, Rendering
from specdec_operator.resources.template import Templates
from tests.unit.specs import (
    ALL,
    BASELINE,
    BASELINE_ENGINE,
    CONFIGURATION,
    DRAFT_TARGET,
    EAGLE3,
    TABLE,
    facts,
    facts_of,
    model,
)
from tests.unit.strategies import served_specs

RENDERER = Renderer(table=TABLE, configuration=CONFIGURATION, templates=Templates())
DIGEST = "ab" * 32


def known_of(made: Any) -> Known:
    return Known(models=facts_of(made), engines={"target-engine": DIGEST, "draft-engine": DIGEST}, assembly=DIGEST)


def rendered(spec: dict[str, Any], known: Known | None = None, **changes: Any) -> Rendering:
    made = model(spec, **changes)
    return RENDERER.render(made, known or known_of(made))


def kinds(rendering: Rendering) -> list[str]:
    return [document["kind"] for document in rendering.objects]


def marked(rendering: Rendering) -> list[str]:
    """The kinds of the objects that hold a placeholder, or are named after one."""
    return [d["kind"] for d in rendering.objects if PLACEHOLDER in d["metadata"].get("annotations", {})]


def test_objects_come_in_the_order_in_which_they_are_applied() -> None:
    artifact = ["ModelArtifact", "ConfigMap", "Job"]

    assert kinds(rendered(EAGLE3)) == [
        "PersistentVolumeClaim",
        *artifact * 3,
        "ControllerRevision",
        "ConfigMap",
        "Service",
        "Deployment",
    ]


def test_a_pair_s_engines_are_built_before_its_repository_is_assembled() -> None:
    artifacts = [d["spec"]["type"] for d in rendered(DRAFT_TARGET).objects if d["kind"] == "ModelArtifact"]

    assert artifacts == ["Model", "Model", "Engine", "Engine", "Assembly"]


def test_without_facts_only_what_acquires_them_is_rendered() -> None:
    rendering = rendered(EAGLE3, Known())

    assert kinds(rendering) == ["PersistentVolumeClaim", *["ModelArtifact", "ConfigMap", "Job"] * 2]
    assert [what.partition(":")[0] for what in rendering.missing] == ["the target's facts", "the draft's facts"]


def test_without_digests_what_holds_one_says_that_it_is_a_placeholder() -> None:
    rendering = rendered(DRAFT_TARGET, Known(models=facts_of(model(DRAFT_TARGET))))

    assert marked(rendering) == ["ControllerRevision", "ConfigMap", "Deployment"]
    assert [what.partition(":")[0] for what in rendering.missing] == [
        "the digest of the target-engine",
        "the digest of the draft-engine",
        "the digest of the assembled model repository",
    ]


def test_what_is_missing_is_named_with_the_object_that_tells_it() -> None:
    rendering = rendered(BASELINE, Known())
    (artifact,) = (d["metadata"]["name"] for d in rendering.objects if d["kind"] == "ModelArtifact")

    assert artifact in rendering.missing[0]


def test_a_downloaded_model_s_engine_is_named_after_its_commit() -> None:
    known = {**facts_of(model(DRAFT_TARGET)), "target": facts(commit="")}
    rendering = rendered(DRAFT_TARGET, Known(models=known))

    assert marked(rendering)[:6] == ["ModelArtifact", "ConfigMap", "Job"] * 2
    assert rendering.missing[0].partition(",")[0] == "the target's commit"


@pytest.mark.parametrize(
    ("source", "given", "missing"),
    [
        ({"huggingFace": {"repository": "a/texts"}}, DataSetFacts(content_digest=DIGEST), "commit"),
        ({"persistentVolumeClaim": {"claimName": "texts"}}, DataSetFacts(commit="1" * 40), "contentDigest"),
        ({"persistentVolumeClaim": {"claimName": "texts"}}, None, "contentDigest"),
    ],
)
def test_a_calibrated_engine_is_named_after_its_texts(
    source: dict[str, Any], given: DataSetFacts | None, missing: str
) -> None:
    made = model(BASELINE_ENGINE, target__quantization={"format": "FP8", "calibration": {"source": source}})
    known = replace(known_of(made), data_sets={"target-calibration": given} if given else {})
    rendering = RENDERER.render(made, known)

    assert marked(rendering) == ["ModelArtifact", "ConfigMap", "Job", "ControllerRevision", "ConfigMap", "Deployment"]
    assert [what.partition(",")[0] for what in rendering.missing] == [f"the target-calibration's {missing}"]


def test_a_rendering_tells_what_was_compared_of_the_pair() -> None:
    verdict = rendered(EAGLE3).verdict

    assert verdict is not None
    assert verdict.reason == "ShapeCompatibleUnverified"


def test_nothing_that_is_known_is_a_placeholder() -> None:
    rendering = rendered(DRAFT_TARGET)

    assert (rendering.missing, marked(rendering)) == ((), [])


def test_an_existing_store_is_left_alone() -> None:
    assert "PersistentVolumeClaim" not in kinds(rendered(EAGLE3, storage={"claimName": "mine"}))


def test_a_spec_that_would_be_refused_is_refused() -> None:
    with pytest.raises(Refused, match=r"99\.01 is in no row"):
        rendered(EAGLE3, runtime={"release": "99.01"})


def test_a_pair_that_would_be_refused_is_refused() -> None:
    with pytest.raises(Refused, match="the draft's vocabulary"):
        rendered(DRAFT_TARGET, Known(models={"target": facts(), "draft": facts(vocabulary_size=1)}))


def test_a_model_without_a_uid_gets_a_placeholder() -> None:
    made = model(BASELINE)
    nameless = made.model_copy(update={"metadata": made.metadata.model_copy(update={"uid": ""})})
    uids = {
        owner["uid"]
        for document in RENDERER.render(nameless, known_of(made)).objects
        for owner in document["metadata"].get("ownerReferences", [])
    }

    assert uids == {NIL_UID}


@pytest.mark.parametrize("name", ALL)
def test_every_object_is_in_the_model_s_namespace(name: str) -> None:
    assert {document["metadata"]["namespace"] for document in rendered(ALL[name]).objects} == {"team"}


@pytest.mark.parametrize("name", ALL)
def test_no_two_objects_have_one_name(name: str) -> None:
    names = [(document["kind"], document["metadata"]["name"]) for document in rendered(ALL[name]).objects]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ALL)
def test_every_name_is_one_that_kubernetes_takes(name: str) -> None:
    made = model(ALL[name], name="a" * 40)
    longest = RENDERER.render(made, known_of(made))

    assert max(len(document["metadata"]["name"]) for document in longest.objects) <= 63


def test_the_restart_annotation_makes_another_revision() -> None:
    made = model(BASELINE)
    annotated = made.model_copy(
        update={"metadata": made.metadata.model_copy(update={"annotations": {"specdec.dev/restart": "1"}})}
    )
    first, second = (
        [d["metadata"]["name"] for d in RENDERER.render(m, known_of(m)).objects if d["kind"] == "ControllerRevision"]
        for m in (made, annotated)
    )

    assert first != second


@given(spec=served_specs())
def test_rendering_says_the_same_twice(spec: dict[str, Any]) -> None:
    made = model(spec)

    assert replace(RENDERER).render(made, known_of(made)) == RENDERER.render(made, known_of(made))
