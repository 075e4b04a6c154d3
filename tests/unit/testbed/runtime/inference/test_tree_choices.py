"""Trees of choices: how they are written, and which of them an engine takes."""

import pytest

from testbed.runtime.inference.tree_choices import (
    Choices,
    ChoicesError,
    TreeLimits,
    check_choices,
    default_choices,
    parse_choices,
)

EAGLE = TreeLimits(63, 4, exact_depth=True, max_non_leaves=10)


def test_choices_are_brace_lists() -> None:
    assert parse_choices("{0}, {0, 0},{1}") == ((0,), (0, 0), (1,))


@pytest.mark.parametrize("text", ["[[0], [0, 0]]", "{0} {1}", "{0}, {}", "{0}, {a}", "{0},", "{-1}", ""])
def test_anything_else_is_not_understood(text: str) -> None:
    with pytest.raises(ValueError, match="not of the form"):
        parse_choices(text)


def test_the_default_tree_has_63_nodes_on_four_levels() -> None:
    sizes = [sum(len(node) == depth for node in default_choices()) for depth in range(1, 6)]
    assert sizes == [10, 28, 23, 2, 0]


def test_the_default_tree_needs_ten_nodes_with_children_on_a_level() -> None:
    assert len(check_choices(default_choices(), EAGLE)) == 63
    with pytest.raises(ChoicesError, match="level 1 of the choices has 10 nodes with children"):
        check_choices(default_choices(), TreeLimits(63, 4, max_non_leaves=9))


def test_choices_may_be_listed_in_any_order() -> None:
    assert check_choices(((0, 0), (1,), (0,)), TreeLimits(3, 2)) == ((0,), (1,), (0, 0))


@pytest.mark.parametrize(
    ("choices", "limits", "refusal"),
    [
        (((0,), (1,)), TreeLimits(1, 1), r"2 choices, the engine takes 1"),
        (((0,), (0, 0)), TreeLimits(2, 1), "larger maxPathLen than the engine was built with"),
        (((0,), (0, 0)), EAGLE, "the deepest choice has 2 levels, but the engine has 4 EAGLE layers"),
        (((0,), (1, 0)), TreeLimits(9, 9), r"\{1, 0\} without its parent \{1\}"),
        (((0,), (0, 0, 0)), TreeLimits(9, 9), r"depth \+ 1 == curDepth"),
        (((0, 0),), TreeLimits(9, 9), r"depth \+ 1 == curDepth"),
        (((0,), (0,)), TreeLimits(9, 9), "twice"),
        (((16,),), TreeLimits(9, 9), r"too large node degree \(16\)"),
    ],
)
def test_a_tree_that_the_engine_cannot_run_is_refused(choices: Choices, limits: TreeLimits, refusal: str) -> None:
    with pytest.raises(ChoicesError, match=refusal):
        check_choices(choices, limits)
