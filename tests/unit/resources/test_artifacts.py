from __future__ import annotations

import pytest

from specdec_operator.api.findings import check_document
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
from specdec_operator.resources.artifacts import model_artifact
from tests.unit.specs import ALL, BASELINE, engines_of, model, models_of, plan_of


@pytest.mark.parametrize("name", ALL)
def test_the_api_server_takes_every_artifact(name: str) -> None:
    made = model(ALL[name])

    for request in (*models_of(made), *engines_of(made), plan_of(made).assembly):
        assert check_document(model_artifact(request, owner=made)) == []


def test_an_artifact_reads_back_as_it_was_asked_for() -> None:
    made = model(BASELINE, target__source__huggingFace__tokenSecretRef={"name": "token"})
    (request,) = models_of(made)

    assert ModelArtifact.model_validate(model_artifact(request, owner=made)).spec == request.spec


def test_owners_share_an_artifact_so_none_controls_it() -> None:
    made = model(BASELINE)
    (owner,) = model_artifact(models_of(made)[0], owner=made)["metadata"]["ownerReferences"]

    assert (owner["uid"], owner["controller"]) == (made.metadata.uid, False)
