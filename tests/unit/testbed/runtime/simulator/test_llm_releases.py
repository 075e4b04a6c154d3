"""Which spellings each release of the LLM API takes."""

from typing import Any

import pytest

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.llm_arguments import KnownKeys, SpeculationArguments, parse_arguments


def speculation(version: str, **fields: Any) -> SpeculationArguments:
    document = {"model": "/m", "triton_config": {"max_batch_size": 0, "decoupled": False}, "speculative_config": fields}
    found = parse_arguments(document, KnownKeys.read(version=version)).speculation
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("version", "spelling", "key"),
    [
        ("0.20.0", "Eagle", "pytorch_eagle_weights_path"),
        ("0.21.0", "Eagle", "pytorch_weights_path"),
        ("0.21.0", "DraftTarget", "pytorch_weights_path"),
        ("1.0.0", "Eagle", "speculative_model_dir"),
        ("1.1.0", "DraftTarget", "speculative_model_dir"),
        ("1.2.0rc8", "DraftTarget", "speculative_model_dir"),
        ("1.2.1", "Eagle", "speculative_model_dir"),
        ("1.2.1", "Eagle3", "speculative_model"),
        ("1.2.1", "Draft_Target", "speculative_model"),
    ],
)
def test_a_draft_is_spelled_as_the_release_says(version: str, spelling: str, key: str) -> None:
    found = speculation(version, decoding_type=spelling, max_draft_len=3, **{key: "/draft"})
    assert (found.method, str(found.directory)) == ("Eagle3" if "Eagle" in spelling else "DraftTarget", "/draft")


@pytest.mark.parametrize(
    ("version", "spelling"),
    [
        ("1.1.0", "Draft_Target"),
        ("1.1.0", "Eagle3"),
        ("0.20.0", "NGram"),
        ("0.20.0", "DraftTarget"),
        ("1.2.1", "Medusa"),
    ],
)
def test_another_releases_spelling_is_refused(version: str, spelling: str) -> None:
    with pytest.raises(ParameterError, match=f"Invalid decoding type: {spelling}"):
        speculation(version, decoding_type=spelling, max_draft_len=3, speculative_model_dir="/draft")


def test_a_section_is_as_strict_as_its_release() -> None:
    with pytest.raises(ParameterError, match="pytorch_eagle_weights_path is required"):
        speculation("0.20.0", decoding_type="Eagle", max_draft_len=3, pytorch_weights_path="/draft")


@pytest.mark.parametrize(("version", "key"), [("1.1.0", "speculative_model"), ("1.0.0", "pytorch_weights_path")])
def test_another_releases_draft_key_is_refused(version: str, key: str) -> None:
    with pytest.raises(ParameterError, match=f"{key}: Extra inputs are not permitted"):
        speculation(version, decoding_type="Eagle", max_draft_len=3, **{key: "/draft"})


@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("0.21.0", "prompt_lookup_num_tokens"),
        ("1.1.0", "max_draft_len"),
        ("1.2.1", "max_draft_len"),
    ],
)
def test_n_gram_rules_are_read(version: str, key: str) -> None:
    rules = {key: 4, "max_matching_ngram_size": 3, "is_keep_all": False}
    found = speculation(version, decoding_type="NGram", **rules)
    assert found.max_draft_len == 4
    assert (found.pool.max_matching_ngram_size, found.pool.is_keep_all, found.directory) == (3, False, None)


@pytest.mark.parametrize(
    ("version", "fields", "length"),
    [
        ("1.1.0", {"num_nextn_predict_layers": 2}, 2),
        ("1.1.0", {"num_nextn_predict_layers": 2, "max_draft_len": 5}, 2),
        ("1.2.1", {}, 1),
    ],
)
def test_the_draft_length_of_mtp_has_a_key_per_release(version: str, fields: dict[str, int], length: int) -> None:
    assert speculation(version, decoding_type="MTP", **fields).max_draft_len == length


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"decoding_type": "NGram", "max_draft_len": 4, "is_keep_all": "yes"},
            "is_keep_all: Input should be a valid bool",
        ),
        ({"decoding_type": "NGram", "max_draft_len": True}, "max_draft_len: Input should be a valid integer"),
        ({"decoding_type": "NGram", "max_draft_len": 4, "max_matching_ngram_size": 0}, "must be greater than 0"),
        ({"decoding_type": "NGram", "max_draft_len": 4, "max_window_size": 4}, "max_window_size: Extra inputs"),
        ({"decoding_type": "MTP", "num_nextn_predict_layers": 0}, "num_nextn_predict_layers must be greater than 0"),
        ({"decoding_type": "DraftTarget", "max_draft_len": 4}, "speculative_model_dir is required"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        speculation("1.1.0", **fields)


@pytest.mark.parametrize(("version", "message"), [("0.9.0", "the oldest is 0.20"), ("main", "not a version")])
def test_a_release_that_is_not_known_is_refused(version: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KnownKeys.read(version)
