"""Tokens of hubs and plain HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.planning.admission import refusals
from specdec_operator.planning.token_rules import token_refusals
from tests.unit.specs import BASELINE_ENGINE, CONFIGURATION, EAGLE3, TABLE, model

Json = dict[str, Any]
SOURCE: Json = {"repository": "someone/model", "tokenSecretRef": {"name": "hf"}}
PLAIN = "http://hub.example.com"


def paths(spec: Json, configuration: OperatorConfiguration = CONFIGURATION, **changes: Any) -> list[str]:
    return [refusal.path for refusal in token_refusals(model(spec, **changes).spec, configuration)]


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_token_for_an_address_without_encryption_is_refused(role: str) -> None:
    changes: Json = {f"{role}__source": {"huggingFace": {**SOURCE, "endpoint": PLAIN}}}

    assert paths(EAGLE3, **changes) == [f"spec.{role}.source.huggingFace.tokenSecretRef"]


def test_a_token_for_texts_of_a_quantizer_is_a_token_too() -> None:
    texts = {"format": "FP8", "calibration": {"source": {"huggingFace": {**SOURCE, "endpoint": PLAIN}}}}

    assert paths(BASELINE_ENGINE, target__quantization=texts) == [
        "spec.target.quantization.calibration.source.huggingFace.tokenSecretRef"
    ]


def test_the_operator_s_own_hub_counts_where_the_source_names_none() -> None:
    configuration = OperatorConfiguration(hugging_face_endpoint=PLAIN)

    assert len(paths(EAGLE3, configuration, target__source={"huggingFace": SOURCE})) == 1


@pytest.mark.parametrize(
    "source",
    [
        {**SOURCE, "endpoint": "https://hub.example.com"},
        {**SOURCE, "endpoint": PLAIN, "allowPlainHTTP": True},
        {"repository": "someone/model", "endpoint": PLAIN},
        SOURCE,
    ],
)
def test_a_token_that_is_safe_or_asked_for_and_a_hub_without_one_pass(source: Json) -> None:
    assert paths(EAGLE3, target__source={"huggingFace": source}) == []


def test_it_is_refused_with_the_spec() -> None:
    made = model(EAGLE3, target__source={"huggingFace": {**SOURCE, "endpoint": PLAIN}})

    assert [found.reason for found in refusals(made, table=TABLE, configuration=CONFIGURATION)] == ["TokenInPlainText"]
