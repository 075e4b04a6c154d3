from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_operator.api.v1alpha1.speculation import Choices, EagleOptions
from specdec_operator.planning.choices import (
    depth,
    eagle_layers,
    eagle_non_leaves,
    expand,
    non_leaves,
    preset,
    refusals,
    tree_of,
)
from testbed.runtime.inference.tree_choices import TreeLimits, check_choices, default_choices
from tests.unit.specs import model
from tests.vectors.engine_rows import rows

SPECS = {row.name: row.spec for row in rows()}
Json = dict[str, Any]
PATHS = st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=6), min_size=1, max_size=20)


def refused(method: str, *, heads: int | None = None, backend: Any = "TensorRTEngine", **changes: Any) -> list[str]:
    spec = model(SPECS[method], **changes).spec
    return [str(refusal) for refusal in refusals(spec, backend, counted_heads=heads)]


def wide(count: int) -> list[list[int]]:
    """Paths whose tree has that many nodes on its second level, and as few as it can on its first."""
    return [[first, second] for first in range(16) for second in range(16)][:count]


def test_the_named_tree_is_the_one_that_the_engines_take_by_default() -> None:
    assert preset("mc_sim_7b_63") == default_choices()


def test_the_named_tree_has_63_nodes_on_four_levels() -> None:
    tree = preset("mc_sim_7b_63")

    assert (len(tree), depth(tree), non_leaves(tree)) == (63, 4, 10)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        preset("other")


def test_a_tree_by_name_is_that_tree() -> None:
    assert expand(Choices(preset="mc_sim_7b_63")) == preset("mc_sim_7b_63")


def test_nodes_on_the_way_to_a_path_are_added_before_it() -> None:
    assert expand(Choices(paths=[[1, 0, 2], [0]])) == ((0,), (1,), (1, 0), (1, 0, 2))


def test_a_node_that_is_given_twice_is_there_once() -> None:
    assert expand(Choices(paths=[[0], [0, 1], [0]])) == ((0,), (0, 1))


def test_the_paths_of_the_documentation_s_picture_are_its_nine_candidates() -> None:
    paths = [[0, 0, 0, 0], [0, 1, 0], [1, 0], [1, 1]]
    nodes = [[0], [0, 0], [0, 0, 0], [0, 0, 0, 0], [0, 1], [0, 1, 0], [1], [1, 0], [1, 1]]

    assert set(expand(Choices(paths=paths))) == {tuple(node) for node in nodes}


@given(paths=PATHS)
def test_every_expanded_tree_is_one_that_the_engine_takes(paths: list[list[int]]) -> None:
    tree = expand(Choices(paths=paths))

    limits = TreeLimits(max_draft_tokens=256, max_path_length=depth(tree), exact_depth=True, max_non_leaves=len(tree))
    assert check_choices(tree, limits) == tree


@given(paths=PATHS)
def test_an_engine_is_built_for_what_its_tree_needs(paths: list[list[int]]) -> None:
    options = EagleOptions(choices=Choices(paths=paths))
    tree = expand(Choices(paths=paths))

    limits = TreeLimits(
        max_draft_tokens=len(tree),
        max_path_length=eagle_layers(options, tree),
        exact_depth=True,
        max_non_leaves=eagle_non_leaves(options, tree),
    )
    assert check_choices(tree, limits)


def test_an_engine_without_choices_is_built_for_the_default_tree() -> None:
    assert (eagle_layers(EagleOptions(), None), eagle_non_leaves(EagleOptions(), None)) == (4, 10)


def test_declared_limits_of_an_engine_stay() -> None:
    options = EagleOptions(layers=4, max_non_leaves_per_layer=12)

    assert (eagle_layers(options, None), eagle_non_leaves(options, None)) == (4, 12)


@pytest.mark.parametrize("row", SPECS)
def test_the_documented_rows_have_fitting_trees(row: str) -> None:
    assert refused(row) == []


def test_a_method_without_a_tree_has_none() -> None:
    assert tree_of(model(SPECS["lookahead"]).spec) is None


def test_a_guess_too_large_to_tell_apart_is_refused_at_its_path() -> None:
    assert refused("eagle", speculation__eagle={"choices": {"paths": [[0], [15], [0, 16]]}}) == [
        (
            "spec.speculation.eagle.choices.paths[2]: the guess 16 is larger than 15, which is the most that "
            "TensorRT-LLM can tell apart on one level: guesses count from 0"
        )
    ]


def test_a_tree_of_more_nodes_than_drafted_tokens_is_refused() -> None:
    changes: Json = {"speculation__medusa": {"choices": {"paths": [[0, 0], [1]]}}, "speculation__maxDraftTokens": 2}

    assert refused("medusa", **changes) == [
        (
            "spec.speculation.medusa.choices: the tree has 3 nodes, those on the way to a path counted, more than "
            "maxDraftTokens 2: remove paths, or raise maxDraftTokens or leave it out"
        )
    ]


def test_a_tree_of_just_as_many_nodes_as_drafted_tokens_is_taken() -> None:
    changes: Json = {"speculation__medusa": {"choices": {"paths": [[0, 0], [1]]}}, "speculation__maxDraftTokens": 3}

    assert refused("medusa", **changes) == []


def test_the_default_tree_is_refused_where_fewer_tokens_may_be_drafted() -> None:
    assert refused("medusa", speculation__maxDraftTokens=62) == [
        (
            "spec.speculation.maxDraftTokens: the default tree mc_sim_7b_63 has 63 nodes, those on the way to a path "
            "counted, more than maxDraftTokens 62: give spec.speculation.medusa.choices with at most 62 nodes, or "
            "leave maxDraftTokens out"
        )
    ]


def test_a_tree_of_more_nodes_than_any_engine_takes_is_refused() -> None:
    # 15 nodes of the first level and 240 of the second, then one of each more.
    assert refused("medusa", speculation__medusa={"choices": {"paths": wide(240)}}) == []
    assert refused("medusa", speculation__medusa={"choices": {"paths": wide(241)}}) == [
        (
            "spec.speculation.medusa.choices: the tree has 257 nodes, those on the way to a path counted, and 255 is "
            "the most: remove paths"
        )
    ]


def test_an_eagle_tree_must_be_as_deep_as_the_layers() -> None:
    changes: Json = {"speculation__eagle": {"layers": 3, "choices": {"paths": [[0, 0]]}}}

    assert refused("eagle", **changes) == [
        (
            "spec.speculation.eagle.layers: the tree is 2 levels deep, and it must be as deep as layers says, 3: leave "
            "layers out, or give choices of that depth"
        )
    ]


def test_the_default_tree_needs_four_layers() -> None:
    assert refused("eagle", speculation__eagle={"layers": 5}) == [
        (
            "spec.speculation.eagle.layers: the default tree mc_sim_7b_63 is 4 levels deep, and it must be as deep as "
            "layers says, 5: leave layers out, or give choices of that depth"
        )
    ]


def test_an_eagle_tree_must_have_no_more_nodes_with_followers_than_the_engine() -> None:
    changes: Json = {"speculation__eagle": {"maxNonLeavesPerLayer": 1, "choices": {"paths": [[0, 0], [1, 0]]}}}

    assert refused("eagle", **changes) == [
        (
            "spec.speculation.eagle.maxNonLeavesPerLayer: the tree has a level with 2 nodes that have followers, more "
            "than maxNonLeavesPerLayer 1: leave it out or raise it, or give choices with fewer"
        )
    ]


def test_a_medusa_tree_must_be_no_deeper_than_the_declared_heads() -> None:
    changes: Json = {"speculation__medusa": {"heads": 2, "choices": {"paths": [[0], [0, 0], [1, 0, 0]]}}}

    assert refused("medusa", **changes) == [
        (
            "spec.speculation.medusa.choices.paths[2]: the tree is 3 levels deep, and the draft has 2 heads, each for "
            "one level: give choices whose paths are no longer than that"
        )
    ]


def test_a_medusa_tree_must_be_no_deeper_than_the_heads_in_the_weights() -> None:
    assert refused("medusa", heads=4) == []
    assert refused("medusa", heads=3) == [
        (
            "spec.speculation.medusa.choices: the default tree mc_sim_7b_63 is 4 levels deep, and the draft has 3 "
            "heads, each for one level: give choices whose paths are no longer than that"
        )
    ]


def test_a_named_tree_is_refused_by_its_own_field() -> None:
    (refusal,) = refused("medusa", heads=3, speculation__medusa={"choices": {"preset": "mc_sim_7b_63"}})

    assert refusal.startswith("spec.speculation.medusa.choices: the tree is 4 levels deep")


def test_a_medusa_tree_may_leave_heads_unused() -> None:
    assert refused("medusa", heads=4, speculation__medusa={"choices": {"paths": [[0]]}}) == []


def test_other_backends_take_no_tree() -> None:
    changes: Json = {"speculation__eagle": {"choices": {"paths": [[0]]}}}

    assert refused("eagle", backend="VLLM", **changes) == [
        "spec.speculation.eagle.choices: a tree can be given on TensorRTEngine alone, not on VLLM: remove choices"
    ]
    assert refused("eagle", backend="VLLM") == []
