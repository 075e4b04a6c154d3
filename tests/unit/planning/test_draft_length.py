from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.v1alpha1.speculation import LookaheadOptions
from specdec_operator.planning.choices import tree_of
from specdec_operator.planning.draft_length import draft_tokens, lookahead_tokens
from tests.unit.specs import BASELINE, EAGLE3, model, resolution_of


def tokens(speculation: dict[str, Any], *, usual: int | None = 7) -> int:
    drafts = speculation["method"] in ("Eagle", "Eagle3", "Medusa", "DraftTarget", "ReDrafter")
    spec = model(EAGLE3 if drafts else BASELINE, speculation=speculation).spec
    return draft_tokens(spec, usual=usual, tree=tree_of(spec))


@pytest.mark.parametrize(
    ("window", "length", "verified", "expected"),
    [(7, 7, 7, 83), (2, 2, 1, 2), (1, 1, 0, 0), (5, 1, 5, 0), (4, 3, 4, 15)],
)
def test_lookahead_drafts_what_its_window_and_n_grams_amount_to(
    window: int, length: int, verified: int, expected: int
) -> None:
    options = LookaheadOptions(window_size=window, n_gram_size=length, verification_set_size=verified)

    assert lookahead_tokens(options) == expected


def test_lookahead_without_options_has_those_of_the_api() -> None:
    assert tokens({"method": "Lookahead"}, usual=None) == 83


@pytest.mark.parametrize(("options", "expected"), [(None, 25), ({"beams": 2, "draftLengthPerBeam": 3}, 6)])
def test_redrafter_drafts_beams_times_their_length(options: dict[str, int] | None, expected: int) -> None:
    asked = {"reDrafter": options} if options else {}

    assert tokens({"method": "ReDrafter", **asked}, usual=None) == expected


def test_a_tree_drafts_as_many_tokens_as_it_has_nodes() -> None:
    assert tokens({"method": "Eagle", "eagle": {"choices": {"paths": [[0], [0, 1, 2]]}}}) == 3


def test_the_tree_by_its_name_has_63_nodes() -> None:
    assert tokens({"method": "Medusa", "medusa": {"choices": {"preset": "mc_sim_7b_63"}}}) == 63


def test_a_declared_length_goes_before_a_tree_s() -> None:
    assert tokens({"method": "Eagle", "maxDraftTokens": 9, "eagle": {"choices": {"paths": [[0]]}}}) == 9


def test_what_a_spec_leaves_open_is_the_usual_length() -> None:
    assert tokens({"method": "NGram"}) == 7


@pytest.mark.parametrize(
    ("method", "backend", "expected"),
    [
        ("Eagle", "TensorRTEngine", 63),
        ("Eagle", "VLLM", 5),
        ("Medusa", "TensorRTEngine", 63),
        ("Medusa", "VLLM", 4),
        ("DraftTarget", "TensorRTEngine", 10),
        ("DraftTarget", "LLMAPI", 5),
        ("DraftTarget", "VLLM", 5),
        ("Eagle3", "LLMAPI", 3),
        ("NGram", "LLMAPI", 4),
        ("MTP", "VLLM", 1),
        ("Lookahead", "TensorRTEngine", 83),
        ("ReDrafter", "TensorRTEngine", 25),
        ("None", "VLLM", 0),
    ],
)
def test_a_backend_has_its_usual_draft_length_for_a_method(method: str, backend: str, expected: int) -> None:
    drafts = method in ("Eagle", "Eagle3", "Medusa", "DraftTarget", "ReDrafter")
    spec = EAGLE3 if drafts else BASELINE
    placement = {"gpu": {"product": "NVIDIA-H100-80GB-HBM3"}}
    made = model(spec, speculation={"method": method}, runtime={"backend": backend}, placement=placement)

    assert resolution_of(made).draft_tokens == expected
