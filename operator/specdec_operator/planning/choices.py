"""Draft trees: the nodes that a head's guesses are checked at, as `eagle_choices` and `medusa_choices` list them.

The C++ backend wants every node, level by level. It attaches a node without its parent to the root, which is silently
another tree; therefore the nodes on the way to a path are always added here.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculation import Choices, EagleOptions
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec

Path = tuple[int, ...]
Tree = tuple[Path, ...]

LARGEST_GUESS = 15
"""TensorRT-LLM keeps four bits per level; a larger number would run into the next level's."""
MOST_NODES = 255
"""As the API bounds maxDraftTokens."""
_LEVELS = {
    "mc_sim_7b_63": (
        "0 1 2 3 4 5 6 7 8 9 "
        "00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 20 21 22 30 31 40 50 60 70 80 90 "
        "000 001 002 003 004 005 006 007 008 009 010 011 012 020 021 030 040 050 060 070 100 101 200 "
        "0000 0001"
    ),
}
"""Trees by name: one digit per level, one word per node."""
DEFAULT_TREE = "mc_sim_7b_63"
"""What TensorRT-LLM takes where no tree is given."""


@functools.cache
def preset(name: str) -> Tree:
    """A tree by its name.

    Raises:
        KeyError: No tree has that name.
    """
    return _sorted({tuple(int(digit) for digit in word) for word in _LEVELS[name].split()})


def expand(choices: Choices) -> Tree:
    """Every node of a tree once, parents before children and in order."""
    if choices.preset is not None:
        return preset(choices.preset)
    paths = choices.paths or []
    return _sorted({tuple(path[: depth + 1]) for path in paths for depth in range(len(path))})


def tree_of(spec: SpeculativeModelSpec) -> Tree | None:
    """The tree that a spec declares; None where the backend's own default applies, or the method has none."""
    declared = _declared(spec)
    return expand(declared) if declared else None


def depth(tree: Tree) -> int:
    """Levels below the root."""
    return max(len(path) for path in tree)


def non_leaves(tree: Tree) -> int:
    """The most nodes of one level below the root that have followers."""
    parents = Counter(len(parent) for parent in {path[:-1] for path in tree} if parent)
    return max(parents.values(), default=0)


def eagle_layers(options: EagleOptions, tree: Tree | None) -> int:
    """How many levels an EAGLE engine is built for, whose tree is the default one if None is declared."""
    return options.layers or depth(tree or preset(DEFAULT_TREE))


def eagle_non_leaves(options: EagleOptions, tree: Tree | None) -> int:
    """How many nodes with followers an EAGLE engine is built for on one level, likewise."""
    return options.max_non_leaves_per_layer or max(1, non_leaves(tree or preset(DEFAULT_TREE)))


def refusals(spec: SpeculativeModelSpec, backend: Backend, *, counted_heads: int | None = None) -> list[Refusal]:
    """What is wrong with a spec's tree, or with the default tree in an engine of other limits.

    Args:
        counted_heads: MEDUSA heads in the draft's weights, where they are known.
    """
    method = spec.speculation.method
    if method not in ("Eagle", "Medusa"):
        return []
    if backend != "TensorRTEngine":
        return _other_backend(spec, backend) if _declared(spec) else []
    tree = tree_of(spec) or preset(DEFAULT_TREE)
    found = _guesses(spec) or _count(spec, tree)
    if method == "Eagle":
        return found + _eagle(spec, tree)
    return found + _medusa(spec, tree, counted_heads)


def _sorted(paths: set[Path]) -> Tree:
    return tuple(sorted(paths, key=lambda path: (len(path), path)))


def _declared(spec: SpeculativeModelSpec) -> Choices | None:
    options = spec.speculation.eagle or spec.speculation.medusa
    return options.choices if options else None


def _option(spec: SpeculativeModelSpec, field: str) -> str:
    return f"spec.speculation.{spec.speculation.method.lower()}.{field}"


def _invalid(path: str, message: str) -> Refusal:
    return Refusal(reason="ChoicesInvalid", path=path, message=message)


def _other_backend(spec: SpeculativeModelSpec, backend: Backend) -> list[Refusal]:
    message = f"a tree can be given on TensorRTEngine alone, not on {backend}: remove choices"
    return [_invalid(_option(spec, "choices"), message)]


def _guesses(spec: SpeculativeModelSpec) -> list[Refusal]:
    declared = _declared(spec)
    return [
        _invalid(
            _option(spec, f"choices.paths[{index}]"),
            f"the guess {max(path)} is larger than {LARGEST_GUESS}, which is the most that TensorRT-LLM can tell apart "
            "on one level: guesses count from 0",
        )
        for index, path in enumerate((declared.paths if declared else None) or [])
        if max(path) > LARGEST_GUESS
    ]


def _count(spec: SpeculativeModelSpec, tree: Tree) -> list[Refusal]:
    limit, declared = spec.speculation.max_draft_tokens, _declared(spec)
    if len(tree) <= (limit or MOST_NODES):
        return []
    what = "the tree has" if declared else f"the default tree {DEFAULT_TREE} has"
    if limit is None:
        message = f"{what} {len(tree)} nodes, those on the way to a path counted, and {MOST_NODES} is the most: "
        return [_invalid(_option(spec, "choices"), message + "remove paths")]
    message = f"{what} {len(tree)} nodes, those on the way to a path counted, more than maxDraftTokens {limit}: "
    if declared:
        return [_invalid(_option(spec, "choices"), message + "remove paths, or raise maxDraftTokens or leave it out")]
    remedy = f"give {_option(spec, 'choices')} with at most {limit} nodes, or leave maxDraftTokens out"
    return [_invalid("spec.speculation.maxDraftTokens", message + remedy)]


def _eagle(spec: SpeculativeModelSpec, tree: Tree) -> list[Refusal]:
    options = spec.speculation.eagle
    if options is None:
        return []
    found = []
    if options.layers is not None and depth(tree) != options.layers:
        message = (
            f"{_which(spec)} is {depth(tree)} levels deep, and it must be as deep as layers says, {options.layers}: "
            "leave layers out, or give choices of that depth"
        )
        found.append(_invalid(_option(spec, "layers"), message))
    most = options.max_non_leaves_per_layer
    if most is not None and non_leaves(tree) > most:
        message = (
            f"{_which(spec)} has a level with {non_leaves(tree)} nodes that have followers, more than "
            f"maxNonLeavesPerLayer {most}: leave it out or raise it, or give choices with fewer"
        )
        found.append(_invalid(_option(spec, "maxNonLeavesPerLayer"), message))
    return found


def _medusa(spec: SpeculativeModelSpec, tree: Tree, counted_heads: int | None) -> list[Refusal]:
    options = spec.speculation.medusa
    heads = (options.heads if options else None) or counted_heads
    if heads is None or depth(tree) <= heads:
        return []
    message = (
        f"{_which(spec)} is {depth(tree)} levels deep, and the draft has {heads} heads, each for one level: give "
        "choices whose paths are no longer than that"
    )
    return [_invalid(_deepest(spec, heads), message)]


def _which(spec: SpeculativeModelSpec) -> str:
    return "the tree" if _declared(spec) else f"the default tree {DEFAULT_TREE}"


def _deepest(spec: SpeculativeModelSpec, heads: int) -> str:
    """The first path that is too long, or the field that would give another tree."""
    declared = _declared(spec)
    paths = (declared.paths if declared else None) or []
    index = next((index for index, path in enumerate(paths) if len(path) > heads), None)
    return _option(spec, "choices" if index is None else f"choices.paths[{index}]")
