from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.simulator.engine import describe_engine
from testbed.runtime.simulator.engine_drafters import load_with_drafter
from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.executor import EngineExecutor, EngineRequest
from testbed.runtime.simulator.parameters_decoding import DecodingParameters

GPU = "NVIDIA H100 80GB HBM3"


@pytest.fixture(scope="module")
def executor(target_engine: Path) -> EngineExecutor:
    description = describe_engine(target_engine)
    return EngineExecutor(load_with_drafter(description, DecodingParameters(), gpu=GPU), description.limits)


@pytest.fixture(scope="module")
def plain(models: Path) -> EngineRequest:
    tokenizer = TextTokenizer.load(models / "tiny-llama")
    prompt = tuple(tokenizer.encode("The capital of France is"))
    return EngineRequest(tokens=prompt, max_tokens=6, end_id=tokenizer.end_id)


def test_right_draft_tokens_are_all_accepted(executor: EngineExecutor, plain: EngineRequest) -> None:
    answer = executor.run(plain).tokens
    judged = executor.run(replace(plain, draft_tokens=answer[:5]))
    assert (judged.tokens, judged.drafted, judged.accepted) == (answer, 5, 5)


def test_a_wrong_draft_token_is_replaced_by_the_targets_own(executor: EngineExecutor, plain: EngineRequest) -> None:
    answer = executor.run(plain).tokens
    wrong = (answer[0], (answer[1] + 1) % 512, answer[2])
    judged = executor.run(replace(plain, draft_tokens=wrong))
    assert (judged.tokens, judged.accepted) == (answer[:2], 1)


def test_more_draft_tokens_than_the_engine_was_built_for_are_refused(
    executor: EngineExecutor, plain: EngineRequest
) -> None:
    with pytest.raises(RequestError, match=r"Number of draft tokens \(6\) is larger than maximum .* \(5\)"):
        executor.run(replace(plain, draft_tokens=(7,) * 6))


def test_logits_come_with_the_tokens_that_they_choose(executor: EngineExecutor, plain: EngineRequest) -> None:
    result = executor.run(replace(plain, return_logits=True))
    assert result.logits is not None
    assert tuple(result.logits.argmax(axis=-1).tolist()) == result.tokens


def test_draft_logits_of_other_tokens_are_refused(executor: EngineExecutor, plain: EngineRequest) -> None:
    logits = np.eye(2, 512, dtype=np.float32)
    with pytest.raises(RequestError, match="largest entries are other tokens"):
        executor.run(replace(plain, draft_tokens=(7, 8), draft_logits=logits))


def test_a_prompt_longer_than_the_engine_is_refused(executor: EngineExecutor, plain: EngineRequest) -> None:
    with pytest.raises(RequestError, match=r"Prompt length \(128\) exceeds maximum input length \(127\)"):
        executor.run(replace(plain, tokens=(5,) * 128))


def test_of_equal_draft_logits_either_token_may_have_been_chosen(
    executor: EngineExecutor, plain: EngineRequest
) -> None:
    logits = np.zeros((2, 512), dtype=np.float32)
    assert executor.run(replace(plain, draft_tokens=(7, 8), draft_logits=logits)).drafted == 2
