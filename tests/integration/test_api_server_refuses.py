"""The real API server against the vectors that `check_document` is held to."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.errors import ApiError, CommandError
from tests.vectors.api import Vector, vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.cluster import Cluster
    from tests.vectors.api import Document

pytestmark = pytest.mark.controlplane

COLLECTIONS = {"SpeculativeModel": "speculativemodels", "ModelArtifact": "modelartifacts"}
ALL = {vector.name: vector for vector in vectors()}


NAMESPACE = "api-server-refuses"


@dataclass(frozen=True)
class Api:
    cluster: Cluster

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", *arguments, stdin=stdin)

    def send(self, document: Document, *arguments: str) -> str:
        """Create an object; return what the API server said, also when it refused."""
        try:
            return self.kubectl("create", "--filename=-", *arguments, stdin=json.dumps(document))
        except CommandError as refusal:
            return str(refusal)

    def refusals(self, document: Document) -> list[str]:
        """Try to create an object, without keeping it; return each refusal with its field, none if it was taken."""
        collection = f"/apis/specdec.dev/v1alpha1/namespaces/{NAMESPACE}/{COLLECTIONS[document['kind']]}"
        try:
            # JSON is YAML, of which the API server reads numbers as kubectl does.
            path = f"{collection}?dryRun=All&fieldValidation=Strict"
            self.cluster.client.create(path, document, content_type="application/yaml")
        except ApiError as refusal:
            status: Document = json.loads(str(refusal).partition(f": {refusal.status} ")[2])
            causes = [f"{cause['field']}: {cause['message']}" for cause in status.get("details", {}).get("causes", [])]
            return causes or status["message"].splitlines()
        return []


@pytest.fixture(scope="module")
def api(served: Cluster) -> Iterator[Api]:
    served.kubectl("create", "namespace", NAMESPACE)
    made = Api(served)
    yield made
    made.kubectl("delete", "specdec", "--all")
    served.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture
def created(api: Api) -> Document:
    document = copy.deepcopy(ALL["the smallest useful spec"].document)
    document["metadata"] = {"generateName": "created-"}
    answer: Document = json.loads(api.send(document, "--output=json"))
    return answer


@pytest.mark.parametrize("vector", ALL.values(), ids=ALL.keys())
def test_the_api_server_says_what_the_vector_says(api: Api, vector: Vector) -> None:
    said = api.refusals(vector.document)

    missing = [
        (wanted.path, wanted.server)
        for wanted in vector.refused_by
        if not any(wanted.path in refusal and wanted.server in refusal for refusal in said)
    ]
    assert missing == []
    assert bool(said) is bool(vector.refused_by), said


def test_an_object_that_no_operator_has_seen_is_not_current(created: Document) -> None:
    assert created["status"]["observedGeneration"] == -1


def test_an_object_that_no_operator_has_seen_is_pending(created: Document) -> None:
    [ready] = created["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "Unknown", "Pending")


def test_an_object_can_be_scaled(api: Api, created: Document) -> None:
    name = created["metadata"]["name"]
    api.kubectl("scale", "--replicas=3", f"specmodel/{name}")

    assert api.kubectl("get", "specmodel", name, "--output=jsonpath={.spec.replicas}") == "3"


def test_the_list_shows_method_and_status(api: Api, created: Document) -> None:
    table = api.kubectl("get", "specmodel", created["metadata"]["name"])
    heading, row = table.splitlines()

    assert heading.split() == ["NAME", "METHOD", "BACKEND", "STATUS", "READY", "REPLICAS", "AGE"]
    assert row.split()[1:5] == ["Eagle3", "Pending", "Unknown", "0"]


def test_the_endpoint_is_shown_when_asked_for(api: Api) -> None:
    assert "ENDPOINT" in api.kubectl("get", "specmodel", "--output=wide").splitlines()[0]


@pytest.mark.usefixtures("created")
def test_the_category_lists_the_models(api: Api) -> None:
    assert "speculativemodel.specdec.dev/created-" in api.kubectl("get", "specdec", "--output=name")


def test_explain_tells_what_a_field_means(api: Api) -> None:
    said = api.kubectl("explain", "specmodel.spec.speculation.maxDraftTokens")

    assert "The most tokens drafted for one step of the target." in " ".join(said.split())


def test_an_artifact_never_changes(api: Api) -> None:
    document = copy.deepcopy(ALL["an artifact that fetches"].document)
    api.send(document)
    document["spec"]["fetch"]["repository"] = "a/c"

    with pytest.raises(CommandError, match="an artifact never changes"):
        api.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=json.dumps(document))


def test_an_artifact_begins_pending(api: Api) -> None:
    document = copy.deepcopy(ALL["an artifact that fetches"].document)
    document["metadata"]["name"] = "pending"

    assert json.loads(api.send(document, "--output=json"))["status"]["state"] == "Pending"
