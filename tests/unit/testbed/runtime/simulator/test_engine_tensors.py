from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from testbed.runtime.inference.lookahead import LookaheadConfig
from testbed.runtime.simulator.engine_tensors import EngineCall, TensorReader, answer_tensors, parse_call
from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.executor import EngineResult

if TYPE_CHECKING:
    from numpy.typing import NDArray


def call(**tensors: Any) -> EngineCall:
    given: dict[str, NDArray[Any]] = {
        "input_ids": np.asarray([[1, 2, 3]], dtype=np.int32),
        "input_lengths": np.asarray([[3]], dtype=np.int32),
        "request_output_len": np.asarray([[4]], dtype=np.int32),
        "end_id": np.asarray([[2]], dtype=np.int32),
    }
    given |= {name: np.asarray(value) for name, value in tensors.items()}
    return parse_call(TensorReader(given.get), exclude_input=False, fast_logits=False, logits_type=np.float32)


def test_an_answer_holds_the_prompt_unless_it_is_excluded() -> None:
    result = EngineResult(tokens=(8, 9))
    with_prompt = answer_tensors(call(), result)["output_ids"].tolist()
    without = answer_tensors(call(exclude_input_in_output=[[True]]), result)["output_ids"].tolist()
    assert (with_prompt, without) == ([[[1, 2, 3, 8, 9]]], [[[8, 9]]])


def test_acceptance_comes_only_when_it_is_asked_for() -> None:
    result = EngineResult(tokens=(8,), drafted=4, accepted=1)
    assert "acceptance_rate" not in answer_tensors(call(), result)
    assert answer_tensors(call(return_perf_metrics=[[True]]), result)["acceptance_rate"].tolist() == [[0.25]]


def test_a_temperature_without_top_k_or_top_p_stays_greedy() -> None:
    assert call(temperature=[[0.7]]).request.temperature == 0
    assert call(temperature=[[0.5]], runtime_top_k=[[40]]).request.temperature == 0.5


def test_as_many_tokens_at_least_as_at_most_ignore_the_end_mark() -> None:
    assert call(min_tokens=[[4]]).request.end_id == -1


def test_logits_of_another_type_than_the_engines_are_misread_silently() -> None:
    result = EngineResult(tokens=(8,), logits=np.asarray([[1.0, 5.0, 2.0]], dtype=np.float32))
    read = [
        answer_tensors(replace(call(), written_type=written), result)["generation_logits"]
        for written in ("float32", "float16")
    ]
    assert [logits.shape for logits in read] == [(1, 1, 1, 3)] * 2
    assert int(read[0].argmax()) == 1
    assert not np.array_equal(read[0], read[1])


def test_an_input_length_beyond_the_input_is_refused() -> None:
    with pytest.raises(RequestError, match="input_lengths is 5"):
        call(input_lengths=[[5]])


def test_beam_search_is_refused() -> None:
    with pytest.raises(RequestError, match="beam_width"):
        call(beam_width=[[2]])


def test_lookahead_sizes_come_all_three_or_not_at_all() -> None:
    sizes = {"lookahead_window_size": [[4]], "lookahead_ngram_size": [[3]], "lookahead_verification_set_size": [[2]]}
    assert call(**sizes).request.lookahead == LookaheadConfig(4, 3, 2)
    with pytest.raises(RequestError, match="Failed to extract lookahead_ngram_size"):
        call(**{name: size for name, size in sizes.items() if name != "lookahead_ngram_size"})


def test_lookahead_sizes_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(RequestError, match="ngramSize=1 requires windowSize=1"):
        call(lookahead_window_size=[[4]], lookahead_ngram_size=[[1]], lookahead_verification_set_size=[[0]])
