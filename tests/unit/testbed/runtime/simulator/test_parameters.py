from typing import Any

import pytest

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.parameters import parse_parameters

FILLED = {
    "gpt_model_type": "inflight_fused_batching",
    "gpt_model_path": "/engines/target",
    "gpu_device_ids": "1,2",
    "participant_ids": "2,3",
    "speculative_decoding_fast_logits": "true",
    "tokenizer_dir": "${tokenizer_dir}",
    "guided_decoding_backend": "${guided_decoding_backend}",
    "xgrammar_tokenizer_info_path": "${xgrammar_tokenizer_info_path}",
}


def config(**changes: str | None) -> dict[str, Any]:
    values = {key: value for key, value in {**FILLED, **changes}.items() if value is not None}
    parameters = {key: {"string_value": value} for key, value in values.items()}
    return {"name": "tensorrt_llm", "max_batch_size": 4, "parameters": parameters}


def test_lists_of_ranks_and_gpus_are_read() -> None:
    parsed = parse_parameters(config())
    assert (parsed.participant_ids, parsed.device_ids) == ((2, 3), (1, 2))


def test_an_unfilled_variable_warns_and_takes_the_default() -> None:
    parsed = parse_parameters(config(speculative_decoding_fast_logits="${speculative_decoding_fast_logits}"))
    assert not parsed.fast_logits
    assert "speculative_decoding_fast_logits is not specified, will use default value." in parsed.warnings


def test_an_unreadable_value_warns_and_takes_the_default() -> None:
    parsed = parse_parameters(config(kv_cache_free_gpu_mem_fraction="80%"))
    assert [line for line in parsed.warnings if line.startswith("kv_cache_free_gpu_mem_fraction has the value '80%'")]


@pytest.mark.parametrize("key", ["tokenizer_dir", "guided_decoding_backend", "xgrammar_tokenizer_info_path"])
def test_a_config_of_an_old_release_lacks_keys_and_is_refused(key: str) -> None:
    with pytest.raises(ParameterError, match=key):
        parse_parameters(config(**{key: None}))


def test_an_unknown_batching_strategy_is_refused() -> None:
    with pytest.raises(ParameterError, match="Invalid gpt_model_type"):
        parse_parameters(config(gpt_model_type="static"))


def test_an_unset_engine_directory_is_refused() -> None:
    with pytest.raises(ParameterError, match="engine_dir"):
        parse_parameters(config(gpt_model_path="${engine_dir}"))


def test_the_deprecated_worker_path_is_refused() -> None:
    with pytest.raises(ParameterError, match="executor_worker_path"):
        parse_parameters(config(worker_path="/worker"))
