from typing import Any

import pytest

from testbed.runtime.simulator.errors import ParameterError, RequestError
from testbed.runtime.simulator.vllm_arguments import SpeculativeFields, parse_arguments
from testbed.runtime.simulator.vllm_releases import Generation, VLLMRelease
from testbed.runtime.simulator.vllm_sampling import SamplingParameters, parse_sampling

DRAFT = {"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 4}
FLAT = {"speculative_model": "/models/draft", "num_speculative_tokens": 4}
NESTED_FROM = ("0.8.4", "0.9.2", "0.10.2", "0.13.0", "0.15.1", "0.24.0", "0.27.1")


def speculation(version: str, **keys: Any) -> SpeculativeFields:
    found = parse_arguments({"model": "/models/target", **keys}, version).speculation
    assert found is not None
    return found


@pytest.mark.parametrize("version", NESTED_FROM)
def test_the_nested_key_is_known_since_it_is_there(version: str) -> None:
    assert speculation(version, speculative_config=DRAFT).model == "/models/draft"


@pytest.mark.parametrize("version", NESTED_FROM)
def test_flat_keys_are_refused_since_the_nested_one_is_there(version: str) -> None:
    with pytest.raises(ParameterError, match="unexpected keyword argument 'num_speculative_tokens'"):
        speculation(version, **FLAT)


@pytest.mark.parametrize("version", ["0.6.3.post1", "0.7.0", "0.8.1"])
def test_old_releases_know_flat_keys_and_no_nested_one(version: str) -> None:
    assert speculation(version, **FLAT).num_speculative_tokens == 4
    with pytest.raises(ParameterError, match="unexpected keyword argument 'speculative_config'"):
        speculation(version, speculative_config=DRAFT)


def test_flat_n_gram_lookup_needs_its_longest_end() -> None:
    with pytest.raises(ParameterError, match="ngram_prompt_lookup_max=None must be > 0"):
        speculation("0.8.1", speculative_model="[ngram]", num_speculative_tokens=3)


def test_a_draft_length_without_a_draft_leaves_the_target_to_draft() -> None:
    assert speculation("0.7.3", num_speculative_tokens=3).model is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, (5, 5)), ({"prompt_lookup_max": 3}, (3, 3)), ({"prompt_lookup_min": 2, "prompt_lookup_max": 4}, (2, 4))],
)
def test_a_lookup_length_that_is_left_out_mirrors_the_other(fields: dict[str, int], expected: tuple[int, int]) -> None:
    config = {"method": "ngram", "num_speculative_tokens": 3, **fields}
    assert speculation("0.15.1", speculative_config=config).prompt_lookup == expected


@pytest.mark.parametrize(
    ("version", "change", "message"),
    [
        ("0.15.1", {"num_tokens": 3}, "num_tokens: Unexpected keyword argument"),
        ("0.27.1", {"disable_by_batch_size": 4}, "disable_by_batch_size: Unexpected keyword argument"),
        ("0.15.1", {"parallel_drafting": True}, "parallel_drafting: Unexpected keyword argument"),
        ("0.24.0", {"use_heterogeneous_vocab": True}, "use_heterogeneous_vocab: Unexpected keyword argument"),
        ("0.15.1", {"tensor_parallel_size": 1}, "Please pass 'draft_tensor_parallel_size' instead"),
        ("0.15.1", {"method": "eagle2"}, "method: Input should be"),
        ("0.15.1", {"num_speculative_tokens": 0}, "greater than zero"),
        ("0.15.1", {"num_speculative_tokens": "3"}, "num_speculative_tokens: Input should be a whole number"),
        ("0.15.1", {"prompt_lookup_min": 4, "prompt_lookup_max": 2}, "must be <= prompt_lookup_max=2"),
        ("0.15.1", {"disable_by_batch_size": 1}, "batch size threshold"),
        ("0.9.2", {"method": "mimo_mtp"}, "method: Input should be"),
    ],
)
def test_a_field_that_the_release_does_not_take_is_refused(version: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        speculation(version, speculative_config=DRAFT | change)


@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("0.15.1", "max_model_length"),
        ("0.13.0", "disable_log_requests"),
        ("0.10.1.1", "use_v2_block_manager"),
        ("0.19.0", "swap_space"),
        ("0.15.1", "enable_flashinfer_autotune"),
    ],
)
def test_an_engine_argument_that_the_release_does_not_know_is_refused(version: str, key: str) -> None:
    with pytest.raises(ParameterError, match=f"unexpected keyword argument '{key}'"):
        parse_arguments({"model": "/m", key: 1}, version)


def test_a_key_is_known_as_long_as_it_is_there() -> None:
    parse_arguments({"model": "/m", "disable_log_requests": True, "swap_space": 4}, "0.9.2")


def test_nvidias_mark_on_a_version_changes_nothing() -> None:
    assert VLLMRelease.read("0.15.1+abc.nv26.02").engine == VLLMRelease.read("0.15.1").engine


@pytest.mark.parametrize(
    ("version", "environment", "generation"),
    [
        ("0.7.3", {"VLLM_USE_V1": "1"}, Generation.V0),
        ("0.8.4", {}, Generation.V0),
        ("0.8.4", {"VLLM_USE_V1": "1"}, Generation.V1),
        ("0.10.1.1", {}, Generation.V0),
        ("0.10.2", {}, Generation.V1),
    ],
)
def test_the_background_thread_decides_the_engine(
    version: str, environment: dict[str, str], generation: Generation
) -> None:
    assert VLLMRelease.read(version).generation(environment) is generation


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError, match="is not a version"):
        parse_arguments({"model": "/m"}, "newest")


def test_sixteen_tokens_are_the_default() -> None:
    assert parse_sampling("{}", VLLMRelease.read("0.15.1")) == SamplingParameters(max_tokens=16, temperature=1.0)


def test_one_candidate_is_greedy() -> None:
    assert parse_sampling('{"top_k": 1}', VLLMRelease.read("0.15.1")).temperature == 0


@pytest.mark.parametrize(
    ("version", "text", "message"),
    [
        ("0.15.1", '{"max_new_tokens": 3}', "Unexpected keyword argument 'max_new_tokens'"),
        ("0.13.0", '{"best_of": 2}', "Unexpected keyword argument 'best_of'"),
        ("0.15.1", '{"max_tokens": -1}', "max_tokens must be at least 1"),
        ("0.15.1", '{"temperature": "warm"}', "sampling_parameters"),
        ("0.15.1", "[]", "must be a JSON object"),
        ("0.15.1", "{", "is not JSON"),
    ],
)
def test_bad_sampling_parameters_are_refused(version: str, text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        parse_sampling(text, VLLMRelease.read(version))
