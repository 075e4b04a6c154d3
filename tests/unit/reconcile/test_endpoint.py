"""What status tells clients and owners of what is served."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.reconcile.conditions import Conditions
from specdec_operator.reconcile.model_status import Findings, render_status
from specdec_operator.reconcile.preparation import Prepared, derived_pins
from tests.unit.specs import BASELINE_VLLM, DRAFT_TARGET, EAGLE3_VLLM, model, plan_of

if TYPE_CHECKING:
    from specdec_operator.reconcile.preparation import Preparation
    from specdec_operator.reconcile.usage import Usage
    from specdec_operator.resources.serving import Revision


def endpoint(spec: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = model(spec, **changes)
    findings = Findings(
        usage=cast("Usage", SimpleNamespace(artifacts=[])),
        preparation=cast("Preparation", SimpleNamespace(resolution=None, pins=())),
        prepared=Prepared(plan=plan_of(made), revision=cast("Revision", None)),
    )
    conditions = Conditions((), generation=1, now="2026-01-01T00:00:00Z")
    found: dict[str, Any] = render_status(made, conditions, findings, OperatorConfiguration())["endpoint"]
    return found


def test_the_openai_protocol_has_its_address_where_it_is_served() -> None:
    served = endpoint(BASELINE_VLLM, serving={"openAIFrontEnd": {}})

    assert served["openAI"] == "http://llama-serving.team.svc.cluster.local:9000/v1"


def test_without_the_front_end_no_address_is_told() -> None:
    assert endpoint(BASELINE_VLLM)["openAI"] == ""


def test_metrics_stay_on_their_port_of_the_service() -> None:
    served = endpoint(BASELINE_VLLM, serving={"openAIFrontEnd": {}})

    assert served["metrics"] == "http://llama-serving.team.svc.cluster.local:8002/metrics"


def test_clients_are_told_what_to_send() -> None:
    assert endpoint(BASELINE_VLLM)["requestParameters"] == {"sampling_parameters": '"{\\"max_tokens\\": 256}"'}
    assert endpoint(DRAFT_TARGET)["requestParameters"]["num_draft_tokens"] == "10"


def test_what_a_backend_needs_other_than_declared_is_a_pin() -> None:
    (pin,) = derived_pins(plan_of(model(EAGLE3_VLLM, runtime__release="26.02")).files)

    assert (pin.name, pin.value) == ("serving.maxSequenceLength", "2048")
    assert "0.27.1" in pin.reason
