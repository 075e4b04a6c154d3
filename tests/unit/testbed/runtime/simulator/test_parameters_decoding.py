"""decoding_mode, trees and lookahead sizes in config.pbtxt."""

import pytest

from testbed.runtime.inference.lookahead import LookaheadConfig
from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.parameters_decoding import DecodingParameters, parse_decoding

SIZES = {"lookahead_window_size": "7", "lookahead_ngram_size": "5", "lookahead_verification_set_size": "3"}


def parse(**values: str | None) -> tuple[DecodingParameters, list[str]]:
    warnings: list[str] = []
    return parse_decoding(values, warnings), warnings


def test_choices_are_read() -> None:
    decoding, _ = parse(eagle_choices="{0}, {0, 0}, {1}")
    assert decoding.eagle_choices == ((0,), (0, 0), (1,))


@pytest.mark.parametrize("text", [None, "[[0]]"])
def test_unset_and_unreadable_choices_alike_only_warn_and_take_the_default_tree(text: str | None) -> None:
    decoding, warnings = parse(medusa_choices=text)
    assert decoding.medusa_choices is None
    assert "medusa_choices parameter is not specified. Will be using default mc_sim_7b_63 choices instead." in warnings


@pytest.mark.parametrize("text", [None, "speculate"])
def test_an_unknown_decoding_mode_only_warns(text: str | None) -> None:
    decoding, warnings = parse(decoding_mode=text)
    assert decoding.mode is None
    assert warnings[0].startswith("decoding_mode parameter is invalid or not specified (must be one of the {top_k,")


def test_lookahead_reads_its_three_sizes() -> None:
    assert parse(decoding_mode="lookahead", **SIZES)[0].lookahead == LookaheadConfig(7, 5, 3)


def test_lookahead_sizes_without_the_mode_are_ignored_silently() -> None:
    assert parse(**SIZES)[0].lookahead is None


@pytest.mark.parametrize("key", SIZES)
def test_a_missing_lookahead_size_ends_the_load(key: str) -> None:
    with pytest.raises(ParameterError, match=f"decoding_mode is lookahead, but {key} is not set"):
        parse(decoding_mode="lookahead", **{**SIZES, key: None})


@pytest.mark.parametrize(
    ("value", "refusal"), [("many", "'many' is not a number"), ("1", "ngramSize=1 requires windowSize=1")]
)
def test_lookahead_sizes_that_make_no_sense_end_the_load(value: str, refusal: str) -> None:
    with pytest.raises(ParameterError, match=refusal):
        parse(decoding_mode="lookahead", **{**SIZES, "lookahead_ngram_size": value})
