"""The simulated LLM API: every method drafts, and no answer changes."""

from pathlib import Path
from typing import Any

import pytest

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.llm import Sampling, SimulatedLLM
from testbed.runtime.simulator.llm_arguments import KnownKeys, parse_arguments

QUESTION = "What is the capital of France?"
ANSWER = " The capital of France is Paris, a city on the river Seine."
METHODS: dict[str, dict[str, Any]] = {
    "Eagle": {"speculative_model_dir": "tiny-llama-eagle3", "max_draft_len": 3},
    "DraftTarget": {"speculative_model_dir": "tiny-llama-draft", "max_draft_len": 3},
    "NGram": {"max_draft_len": 3, "max_matching_ngram_size": 2},
    "MTP": {"num_nextn_predict_layers": 2},
}


@pytest.fixture
def load(models: Path, gpus: dict[str, str]) -> Any:
    def run(target: str = "tiny-llama", *, version: str = "1.1.0", **speculation: Any) -> SimulatedLLM:
        if "speculative_model_dir" in speculation:
            speculation["speculative_model_dir"] = str(models / speculation["speculative_model_dir"])
        document: dict[str, Any] = {
            "model": str(models / target),
            "triton_config": {"max_batch_size": 0, "decoupled": False},
            "speculative_config": speculation or None,
        }
        return SimulatedLLM(parse_arguments(document, KnownKeys.read(version)), gpus)

    return run


@pytest.mark.parametrize("method", METHODS)
def test_each_method_drafts_and_changes_no_answer(load: Any, method: str) -> None:
    target, version = ("tiny-llama-mtp", "1.2.1") if method == "MTP" else ("tiny-llama", "1.1.0")
    done = load(target, version=version, decoding_type=method, **METHODS[method]).complete(
        QUESTION, Sampling(max_tokens=48)
    )
    assert (done.text, done.drafted >= done.accepted > 0) == (ANSWER, True)


def test_a_public_pool_knows_the_answer_the_second_time(load: Any) -> None:
    llm = load(decoding_type="NGram", max_draft_len=4, max_matching_ngram_size=2)
    first, second = (llm.complete(QUESTION, Sampling(max_tokens=48)) for _ in range(2))
    assert second.accepted > first.accepted


def test_multi_token_prediction_needs_a_target_with_the_layer(load: Any) -> None:
    with pytest.raises(ParameterError, match="num_nextn_predict_layers is not set"):
        load(decoding_type="MTP", num_nextn_predict_layers=1)


def test_a_release_drafts_with_the_layers_of_architectures_that_it_knows(load: Any) -> None:
    with pytest.raises(ParameterError, match="Glm4MoeForCausalLM is not supported for MTP"):
        load("tiny-llama-mtp", version="1.1.0", decoding_type="MTP", num_nextn_predict_layers=1)


def test_a_pair_that_does_not_fit_is_refused_at_the_start(load: Any) -> None:
    with pytest.raises(ParameterError, match="the draft's vocab_size is 384, the target's 512"):
        load(decoding_type="DraftTarget", max_draft_len=3, speculative_model_dir="tiny-llama-other-vocabulary")
