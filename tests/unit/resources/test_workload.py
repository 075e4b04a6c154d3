from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.v1alpha1.storage import StorageClaim
from specdec_operator.resources.serving import Revision
from specdec_operator.resources.template import Templates
from specdec_operator.resources.workload import deployment, service, store_claim
from tests.unit.specs import BASELINE, BASELINE_VLLM, model

TEMPLATES = Templates()
REVISION = Revision(name="llama-1", template={"metadata": {"labels": {}}, "spec": {}}, data={})


def deployed(**changes: Any) -> dict[str, Any]:
    return deployment(model(BASELINE, **changes), REVISION, templates=TEMPLATES)


@pytest.mark.parametrize(("suspend", "replicas"), [(False, 3), (True, 0)])
def test_a_suspended_model_keeps_its_deployment_without_pods(replicas: int, *, suspend: bool) -> None:
    assert deployed(replicas=3, suspend=suspend)["spec"]["replicas"] == replicas


def test_an_old_pod_goes_before_its_new_one_starts() -> None:
    assert deployed()["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_a_surge_starts_new_pods_beside_the_old() -> None:
    strategy = deployed(update={"strategy": "Surge"})["spec"]["strategy"]

    assert strategy["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_a_slow_load_is_not_called_a_failure() -> None:
    assert deployed(update={"startupMinutes": 5})["spec"]["progressDeadlineSeconds"] > 5 * 60


def test_the_service_selects_what_the_deployment_starts() -> None:
    made = service(model(BASELINE), templates=TEMPLATES)

    assert made["spec"]["selector"] == deployed()["spec"]["selector"]["matchLabels"]


def test_the_service_has_the_three_ports_of_triton() -> None:
    ports = service(model(BASELINE), templates=TEMPLATES)["spec"]["ports"]

    assert {port["name"]: port["port"] for port in ports} == {"http": 8000, "grpc": 8001, "metrics": 8002}


def test_the_openai_front_end_has_a_port_and_shows_the_metrics() -> None:
    made = service(model(BASELINE_VLLM, serving={"openAIFrontEnd": {}}), templates=TEMPLATES)

    assert {port["name"]: (port["port"], port["targetPort"]) for port in made["spec"]["ports"]} == {
        "http": (8000, "http"),
        "grpc": (8001, "grpc"),
        "metrics": (8002, "openai"),
        "openai": (9000, "openai"),
    }


def test_the_service_is_of_the_declared_type_with_the_declared_annotations() -> None:
    declared = {"type": "LoadBalancer", "annotations": {"a": "b"}}
    made = service(model(BASELINE, service=declared), templates=TEMPLATES)

    assert (made["spec"]["type"], made["metadata"]["annotations"]) == ("LoadBalancer", {"a": "b"})


def test_a_store_outlives_the_models_that_use_it() -> None:
    assert "ownerReferences" not in store_claim(StorageClaim(size="1Gi"), namespace="a")["metadata"]


def test_a_store_s_size_is_spelt_as_the_api_server_spells_it() -> None:
    made = store_claim(StorageClaim(size="1024Gi"), namespace="a")

    assert made["spec"]["resources"]["requests"]["storage"] == "1Ti"


def test_the_cluster_s_default_class_is_left_to_the_cluster() -> None:
    assert "storageClassName" not in store_claim(StorageClaim(size="1Gi"), namespace="a")["spec"]


def test_a_declared_class_is_asked_for() -> None:
    made = store_claim(StorageClaim(size="1Gi", storage_class_name="fast"), namespace="a")

    assert made["spec"]["storageClassName"] == "fast"
