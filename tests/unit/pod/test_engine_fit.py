"""Whether an engine is what the plan counts on."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.pod.engine_config import EngineConfig
from specdec_operator.pod.engine_fit import require_fit
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import EngineExpectation

SAYS = EngineConfig(
    tensorrt_llm_version="1.2.1",
    logits_data_type="float32",
    speculative_mode="draft_tokens_external",
    draft_tokens=10,
    batch=4,
    tensor=2,
    pipeline=1,
    sequence_length=3082,
)
WANTED: dict[str, Any] = {
    "directory": "/engines/target",
    "ranks": 2,
    "logits_data_type": "float32",
    "speculative_mode": "draft_tokens_external",
    "draft_tokens": 10,
    "batch": 4,
    "tensor": 2,
    "pipeline": 1,
}


def fit(config: EngineConfig = SAYS, **changes: Any) -> None:
    require_fit(config, EngineExpectation(**{**WANTED, **changes}), tensorrt_llm_version="1.2.1")


def mismatch(config: EngineConfig = SAYS, **changes: Any) -> str:
    with pytest.raises(ProgramFailure) as caught:
        fit(config, **changes)
    assert (caught.value.reason, caught.value.terminal) == ("EngineMismatch", True)
    return caught.value.message


def test_an_engine_as_planned_is_taken() -> None:
    fit()


@pytest.mark.parametrize("changes", [{"draft_tokens": 4}, {"batch": 1}])
def test_an_engine_may_do_more_than_is_asked(changes: dict[str, Any]) -> None:
    fit(**changes)


def test_what_an_engine_does_not_say_is_not_judged() -> None:
    fit(EngineConfig(tensorrt_llm_version="", logits_data_type=""))


def test_another_mode_is_refused() -> None:
    assert mismatch(speculative_mode="medusa") == (
        "/engines/target: it is built for the speculative decoding mode draft_tokens_external, spec.speculation.method "
        "needs medusa of the target. Delete the directory and build again"
    )


def test_a_plain_engine_verifies_nothing() -> None:
    plain = EngineConfig("1.2.1", "float32", speculative_mode="none")

    assert "the speculative decoding mode none" in mismatch(plain)


def test_fewer_drafted_tokens_are_refused() -> None:
    assert "it takes 10 drafted tokens, spec.speculation needs 16" in mismatch(draft_tokens=16)


def test_fewer_requests_are_refused() -> None:
    assert "it takes 4 requests at once, spec.serving.maxBatchSize is 8" in mismatch(batch=8)


def test_another_split_is_refused() -> None:
    message = mismatch(tensor=1, pipeline=2)

    assert "its tensor parallelism is 2, spec.target.parallelism.tensor says 1" in message
    assert "its pipeline parallelism is 1, spec.target.parallelism.pipeline says 2" in message


def test_whose_engine_it_is_decides_the_remedy() -> None:
    assert mismatch(batch=8, prebuilt=True, role="draft").endswith(
        "Build it anew, name another directory in spec.engine.prebuilt.draft, or change the spec"
    )


def test_shorter_requests_are_refused() -> None:
    assert (
        "it takes requests of 3082 tokens, spec.engine.maxSequenceLength with what is drafted needs 4096"
        in mismatch(sequence_length=4096)
    )
