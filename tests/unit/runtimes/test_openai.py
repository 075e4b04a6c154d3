"""Triton's OpenAI front end in the place of the server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.serving_request import serving_request
from specdec_operator.runtimes.openai import with_front_end
from tests.unit.specs import BASELINE, BASELINE_ENGINE, facts_of, model, plan_of, resolution_of

if TYPE_CHECKING:
    from specdec_operator.runtimes.serving import ServingFiles

Json = dict[str, Any]
MAIN = "/opt/tritonserver/python/openai/openai_frontend/main.py"
VLLM: Json = {**BASELINE, "runtime": {"backend": "VLLM", "release": "26.08"}}


def files_of(spec: Json = VLLM, **options: Any) -> ServingFiles:
    return plan_of(model(spec, serving={"openAIFrontEnd": options})).files


def test_the_front_end_is_the_process() -> None:
    assert files_of().argv == (
        "python3",
        MAIN,
        "--model-repository=/repository",
        "--tokenizer=/models/target",
        "--backend=vllm",
        "--host=0.0.0.0",
        "--openai-port=9000",
        "--enable-kserve-frontends",
        "--kserve-http-port=8000",
        "--kserve-grpc-port=8001",
        "--model-control-mode=explicit",
        "--load-model=vllm_model",
    )


def test_engines_are_asked_in_their_own_words() -> None:
    files = files_of(BASELINE_ENGINE)

    assert "--backend=tensorrtllm" in files.argv
    assert files.environment["TRTLLM_ORCHESTRATOR"] == "1"
    assert not any("control" in argument for argument in files.argv)


def test_the_model_repository_is_the_same_as_without() -> None:
    assert files_of().templates == plan_of(model(VLLM)).files.templates


def test_the_canary_goes_through_the_same_model() -> None:
    plain = plan_of(model(VLLM)).files

    assert (files_of().endpoint_model, files_of().tensors) == (plain.endpoint_model, plain.tensors)


def test_metrics_are_on_the_front_end_s_own_port() -> None:
    assert (files_of().metrics_port, files_of().open_ai_port) == (9000, 9000)


def test_a_length_of_its_own_is_passed_on() -> None:
    assert "--default-max-tokens=512" in files_of(defaultMaxTokens=512).argv


def test_the_usual_length_is_left_to_front_ends_that_know_no_other() -> None:
    assert not any("max-tokens" in argument for argument in files_of().argv)


def test_an_older_front_end_has_no_model_control_and_so_no_health_check() -> None:
    files = files_of({**VLLM, "runtime": {"backend": "VLLM", "release": "26.02"}})

    assert not any("control" in argument for argument in files.argv)
    assert "ENABLE_VLLM_HEALTH_CHECK" not in files.templates[0].parameters


def test_without_a_wish_nothing_changes() -> None:
    files = plan_of(model(VLLM)).files

    assert (files.open_ai_port, files.metrics_port, files.argv[0]) == (None, 8002, "/opt/tritonserver/bin/tritonserver")


@pytest.mark.parametrize(
    ("backend", "changes"),
    [("LLMAPI", {}), ("TensorRTEngine", {"world_size": 2}), ("TensorRTEngine", {"method": "DraftTarget"})],
)
def test_what_it_can_not_serve_is_an_error(backend: Any, changes: Json) -> None:
    made = model(VLLM, serving={"openAIFrontEnd": {}})
    request = replace(serving_request(made.spec, resolution_of(made), facts_of(made)), **changes)

    with pytest.raises(ValueError, match="does not serve"):
        with_front_end(files_of(), request, backend=backend)
