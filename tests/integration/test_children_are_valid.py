"""What is taken of a spec makes objects that Kubernetes takes: nothing is refused after a download or a build."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.findings import as_stored, check_document
from specdec_operator.api.v1alpha1.speculative_model import parse
from specdec_operator.planning.refusal import Refused
from specdec_operator.resources.known import Known
from specdec_operator.resources.render import Renderer
from specdec_operator.resources.template import Templates
from testbed.cluster.errors import ApiError
from tests.integration.dry_run import DryRun
from tests.unit.specs import TABLE, facts_of
from tests.vectors.children import Case, cases

if TYPE_CHECKING:
    from testbed.cluster import Cluster

pytestmark = pytest.mark.controlplane

ALL = cases()
RENDERER = Renderer(table=TABLE, configuration=OperatorConfiguration(), templates=Templates())
MODELS = "/apis/specdec.dev/v1alpha1/namespaces/default/speculativemodels?dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def dry_run(served: Cluster) -> DryRun:
    return DryRun(served.client)


def refused_by_the_api_server(cluster: Cluster, case: Case) -> str:
    try:
        cluster.client.create(MODELS, case.document, content_type="application/yaml")
    except ApiError as refusal:
        status = json.loads(str(refusal).partition(f": {refusal.status} ")[2])
        return str(status["message"])
    return ""


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_what_is_valid_makes_valid_objects(served: Cluster, dry_run: DryRun, case: Case) -> None:
    findings = check_document(case.document)

    assert bool(refused_by_the_api_server(served, case)) is bool(findings), findings
    if findings:
        return
    model = parse(as_stored(case.document))
    try:
        rendering = RENDERER.render(model, Known(models=facts_of(model)))
    except Refused:
        return
    assert dry_run.refusals(rendering.objects) == []
