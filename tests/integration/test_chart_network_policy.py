"""The NetworkPolicy that the chart makes by default, by what it allows: the testbed's network enforces none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.api.yaml_text import read_yaml_documents
from testbed.cluster.helm import built_helm
from testbed.operator.chart import CHART

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from testbed.cluster import Progress

JsonObject = dict[str, Any]
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def documents(progress: Progress) -> Iterator[list[JsonObject]]:
    with built_helm(progress) as helm:
        text = helm.run("template", "specdec-operator", str(CHART), "--namespace=specdec-system", "--skip-tests")
        yield [document for document in read_yaml_documents(text) if document]


def only(documents: Sequence[JsonObject], kind: str) -> JsonObject:
    (found,) = (document for document in documents if document["kind"] == kind)
    return found


MODELS_POD = {"app.kubernetes.io/managed-by": "specdec-operator"}


def allows(rules: Sequence[JsonObject], *, port: int | str, protocol: str = "TCP", labels: JsonObject | None) -> bool:
    """Whether egress rules let a packet out, by NetworkPolicy's semantics.

    Args:
        labels: of the pod that it goes to, in any namespace; None for an address outside the cluster.
    """
    return any(
        {"port": port, "protocol": protocol} in rule["ports"]
        and ("to" not in rule or (labels is not None and any(_selects(peer, labels) for peer in rule["to"])))
        for rule in rules
    )


def _selects(peer: JsonObject, labels: JsonObject) -> bool:
    assert set(peer) == {"namespaceSelector", "podSelector"}
    assert peer["namespaceSelector"] == {}, "any namespace"
    return bool(peer["podSelector"]["matchLabels"].items() <= labels.items())


@pytest.mark.parametrize(
    ("port", "protocol", "labels", "expected"),
    [
        (53, "UDP", {"k8s-app": "kube-dns"}, True),
        (53, "TCP", {"k8s-app": "kube-dns"}, True),
        (443, "TCP", None, True),
        (6443, "TCP", None, True),
        (8000, "TCP", MODELS_POD, True),
        (8000, "TCP", {"app": "other"}, False),
        (8000, "TCP", None, False),
        (8001, "TCP", MODELS_POD, False),
        (80, "TCP", None, False),
        (443, "UDP", None, False),
    ],
)
def test_by_default_the_operator_reaches_dns_the_api_server_and_its_models_and_nothing_else(
    documents: list[JsonObject], port: int, protocol: str, labels: JsonObject | None, *, expected: bool
) -> None:
    policy = only(documents, "NetworkPolicy")["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert allows(policy["egress"], port=port, protocol=protocol, labels=labels) == expected


def test_by_default_everybody_reaches_the_operators_metrics_and_nothing_else_of_it(documents: list[JsonObject]) -> None:
    assert only(documents, "NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]
    (container,) = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert [port["name"] for port in container["ports"]] == ["http"]


def test_the_network_policy_is_of_the_operators_pods(documents: list[JsonObject]) -> None:
    labels = only(documents, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert only(documents, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
