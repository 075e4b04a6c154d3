from __future__ import annotations

import re

import pytest

from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.patterns import PATTERNS, Pattern, words_of

every_pattern = pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.expression)


@every_pattern
def test_a_pattern_is_anchored_at_both_ends(pattern: Pattern) -> None:
    assert re.fullmatch(r"\^.*\$", pattern.expression)


@every_pattern
def test_a_pattern_is_read_alike_by_every_engine(pattern: Pattern) -> None:
    assert not re.search(r"\\[wdsbAzZ]|\(\?", pattern.expression)


@every_pattern
def test_a_pattern_can_stand_in_a_raw_string_of_cel(pattern: Pattern) -> None:
    assert "'" not in pattern.expression


def test_every_pattern_is_listed() -> None:
    assert {part for part in vars(patterns).values() if isinstance(part, Pattern)} == set(PATTERNS)


def test_an_expression_of_nobody_has_no_words() -> None:
    with pytest.raises(KeyError):
        words_of("^a$")
