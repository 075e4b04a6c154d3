from typing import Any

import pytest

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.llm_arguments import KnownKeys, LLMArguments, parse_arguments

EAGLE = {"decoding_type": "Eagle", "speculative_model_dir": "/models/head", "max_draft_len": 3}


def parse(**changes: Any) -> LLMArguments:
    document = {"model": "/models/target", "triton_config": {"max_batch_size": 0, "decoupled": False}, **changes}
    return parse_arguments(document, KnownKeys.read())


def test_a_head_and_its_length_are_read() -> None:
    speculation = parse(speculative_config=EAGLE).speculation
    assert speculation is not None
    assert (speculation.method, speculation.max_draft_len) == ("Eagle3", 3)


def test_no_speculative_config_means_no_draft() -> None:
    assert parse().speculation is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"tensor_paralel_size": 2}, "tensor_paralel_size"),
        ({"kv_cache_config": {"fraction": 0.5}}, "fraction"),
        ({"triton_config": {"max_batch_size": 0, "decoupled": False, "port": 1}}, "port"),
        ({"speculative_config": EAGLE | {"speculative_model": "/x"}}, "speculative_model"),
    ],
)
def test_an_unknown_key_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError, match=f"{named}: Extra inputs are not permitted"):
        parse(**changes)


@pytest.mark.parametrize("spelling", ["Eagle3", "Draft_Target"])
def test_the_spellings_of_later_releases_are_refused(spelling: str) -> None:
    with pytest.raises(ParameterError, match=f"Invalid decoding type: {spelling}"):
        parse(speculative_config=EAGLE | {"decoding_type": spelling})


@pytest.mark.parametrize("method", ["Medusa", "Lookahead"])
def test_methods_without_a_pytorch_path_are_refused(method: str) -> None:
    with pytest.raises(ParameterError, match="Invalid decoding type"):
        parse(speculative_config={"decoding_type": method, "max_draft_len": 3})


def test_a_draft_length_of_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match="max_draft_len must be greater than 0"):
        parse(speculative_config=EAGLE | {"max_draft_len": 0})


def test_pipeline_parallelism_with_a_draft_is_refused() -> None:
    with pytest.raises(ParameterError, match="pipeline parallelism"):
        parse(speculative_config=EAGLE, pipeline_parallel_size=2)


def test_a_model_yaml_without_triton_config_is_refused() -> None:
    with pytest.raises(ParameterError, match="triton_config"):
        parse_arguments({"model": "/models/target"}, KnownKeys.read())
