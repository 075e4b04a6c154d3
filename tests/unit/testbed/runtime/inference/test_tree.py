"""Draft trees."""

from testbed.runtime.inference.tree import ROOT, DraftTree

TREE = DraftTree.from_paths([(5, 6, 7), (5, 8), (9,)])


def test_paths_that_begin_alike_share_their_nodes() -> None:
    assert (TREE.tokens, TREE.parents) == ((5, 6, 7, 8, 9), (ROOT, 0, 1, 0, ROOT))


def test_a_child_is_found_by_its_token_under_its_own_parent_alone() -> None:
    assert (TREE.child(ROOT, 5), TREE.child(0, 8), TREE.child(ROOT, 8)) == (0, 3, None)


def test_the_depth_is_of_the_longest_path() -> None:
    assert (TREE.depth, DraftTree((), ()).depth) == (3, 0)


def test_pruning_leaves_out_what_is_deeper() -> None:
    assert TREE.pruned(1) == DraftTree((5, 9), (ROOT, ROOT))


def test_pruning_renumbers_the_parents() -> None:
    mixed = DraftTree((5, 6, 7, 9, 4), (ROOT, 0, 1, ROOT, 3))
    assert mixed.pruned(2) == DraftTree((5, 6, 9, 4), (ROOT, 0, ROOT, 2))
