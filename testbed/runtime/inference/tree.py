"""Draft trees: several guesses at once, which share their first tokens and are verified together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ROOT = -1


@dataclass(frozen=True)
class DraftTree:
    """Guessed tokens; a node's children are guesses of the token after it.

    Attributes:
        tokens: per node, parents before their children.
        parents: per node the number of its parent; `ROOT` where it follows the tokens that stand already.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[int]]) -> "DraftTree":
        """Make a tree of guesses in a row; what two of them begin with alike is one path."""
        known: dict[tuple[int, int], int] = {}
        for path in paths:
            node = ROOT
            for token in path:
                node = known.setdefault((node, token), len(known))
        return cls(tuple(token for _, token in known), tuple(parent for parent, _ in known))

    @property
    def size(self) -> int:
        """The number of guessed tokens."""
        return len(self.tokens)

    @property
    def depth(self) -> int:
        """The number of tokens on the longest path."""
        return max(self._depths(), default=0)

    def child(self, node: int, token: int) -> int | None:
        """Return the child of a node (or of `ROOT`) that guesses this token, if there is one."""
        for number, (parent, guess) in enumerate(zip(self.parents, self.tokens, strict=True)):
            if parent == node and guess == token:
                return number
        return None

    def pruned(self, depth: int) -> "DraftTree":
        """Return the tree without its nodes deeper than `depth`."""
        kept = [node for node, own in enumerate(self._depths()) if own <= depth]
        numbers = {ROOT: ROOT} | {node: number for number, node in enumerate(kept)}
        return DraftTree(tuple(self.tokens[node] for node in kept), tuple(numbers[self.parents[node]] for node in kept))

    def _depths(self) -> list[int]:
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return depths
