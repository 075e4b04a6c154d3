"""Choices: the shape of a draft tree, as `medusa_choices` and `eagle_choices` write it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from testbed.runtime.inference.errors import InferenceError

Choices: TypeAlias = tuple[tuple[int, ...], ...]

_LARGEST_CHOICE = 15
_DEEPEST_CHOICE = 16
_TEXT = re.compile(r"\s*\{\s*\d+(\s*,\s*\d+)*\s*\}(\s*,\s*\{\s*\d+(\s*,\s*\d+)*\s*\})*\s*")

# How many children, by node, the tree mc_sim_7b_63 has: 63 nodes, four levels, ten nodes with children on the first.
_DEFAULT_CHILDREN: Mapping[tuple[int, ...], int] = {
    (): 10,
    (0,): 10,
    (1,): 7,
    (2,): 3,
    (3,): 2,
    (4,): 1,
    (5,): 1,
    (6,): 1,
    (7,): 1,
    (8,): 1,
    (9,): 1,
    (0, 0): 10,
    (0, 1): 3,
    (0, 2): 2,
    (0, 3): 1,
    (0, 4): 1,
    (0, 5): 1,
    (0, 6): 1,
    (0, 7): 1,
    (1, 0): 2,
    (2, 0): 1,
    (0, 0, 0): 2,
}


class ChoicesError(InferenceError):
    """A tree that the engine can't run."""


@dataclass(frozen=True)
class TreeLimits:
    """What an engine can run.

    Attributes:
        max_draft_tokens: nodes of a tree.
        max_path_length: tokens on a path: heads, or passes of the head.
        exact_depth: whether the deepest path must have just that length.
        max_non_leaves: nodes with children on one level; none for any number.
    """

    max_draft_tokens: int
    max_path_length: int
    exact_depth: bool = False
    max_non_leaves: int | None = None


def default_choices() -> Choices:
    """Return mc_sim_7b_63, the tree of engines whose choices are not set."""
    nodes = [(*parent, rank) for parent, count in _DEFAULT_CHILDREN.items() for rank in range(count)]
    return tuple(sorted(nodes, key=lambda node: (len(node), node)))


def parse_choices(text: str) -> Choices:
    """Read `{0}, {0, 0}, {1}`.

    Raises:
        ValueError: it is written otherwise.
    """
    if not _TEXT.fullmatch(text):
        raise ValueError(f"{text!r} is not of the form {{0}}, {{0, 0}}, {{1}}")
    return tuple(tuple(int(rank) for rank in group.split(",")) for group in re.findall(r"\{([^}]*)\}", text))


def check_choices(choices: Choices, limits: TreeLimits) -> Choices:
    """Return the choices, level by level and in order.

    Raises:
        ChoicesError: the tree is larger or deeper than the engine takes, or a node's parent is not listed.
    """
    ordered = tuple(sorted(choices, key=lambda node: (len(node), node)))
    _check_size(ordered, limits)
    _check_connected(ordered)
    _check_depth(ordered, limits)
    _check_non_leaves(ordered, limits)
    return ordered


def _check_size(choices: Choices, limits: TreeLimits) -> None:
    if len(choices) > limits.max_draft_tokens:
        raise ChoicesError(
            "Assertion failed: numChoices <= speculativeDecodingModule.getMaxDecodingDraftTokens() "
            f"({len(choices)} choices, the engine takes {limits.max_draft_tokens})"
        )
    too_wide = [rank for node in choices for rank in node if rank > _LARGEST_CHOICE]
    if too_wide:
        raise ChoicesError(f"Provided choices have too large node degree ({too_wide[0]}).")
    if any(len(node) > _DEEPEST_CHOICE for node in choices):
        raise ChoicesError(f"Provided choices have depth ({len(choices[-1])}) larger than Prefix can fit (16).")
    doubled = [node for node, count in Counter(choices).items() if count > 1]
    if doubled:
        raise ChoicesError(f"choices list the node {_text(doubled[0])} twice")


def _check_connected(choices: Choices) -> None:
    depths = sorted({len(node) for node in choices})
    if depths != list(range(1, len(depths) + 1)):
        raise ChoicesError(f"Assertion failed: depth + 1 == curDepth (choices have depths {depths})")
    known = {(), *choices}
    orphans = [node for node in choices if node[:-1] not in known]
    if orphans:
        raise ChoicesError(
            f"choices list the node {_text(orphans[0])} without its parent {_text(orphans[0][:-1])}: "
            "list every node, not only the leaves"
        )


def _check_depth(choices: Choices, limits: TreeLimits) -> None:
    depth = len(choices[-1]) if choices else 0
    if depth > limits.max_path_length:
        raise ChoicesError(
            "Choices require larger maxPathLen than the engine was built with. "
            f"({depth} levels, the engine has {limits.max_path_length})"
        )
    if limits.exact_depth and depth != limits.max_path_length:
        raise ChoicesError(
            f"the deepest choice has {depth} levels, but the engine has {limits.max_path_length} EAGLE layers"
        )


def _check_non_leaves(choices: Choices, limits: TreeLimits) -> None:
    if limits.max_non_leaves is None:
        return
    parents = Counter(len(parent) for parent in {node[:-1] for node in choices} if parent)
    for level, count in sorted(parents.items()):
        if count > limits.max_non_leaves:
            raise ChoicesError(
                f"level {level} of the choices has {count} nodes with children, but the engine was built with "
                f"max_non_leaves_per_layer {limits.max_non_leaves}"
            )


def _text(node: Sequence[int]) -> str:
    return "{" + ", ".join(str(rank) for rank in node) + "}"
