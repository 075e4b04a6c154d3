"""What drafts for vLLM's target: always a chain, even from heads that could draft a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from testbed.runtime.inference.drafters import DraftModelDrafter, Eagle3Drafter
from testbed.runtime.inference.eagle1 import Eagle1Drafter, Eagle1Head
from testbed.runtime.inference.eagle3 import Eagle3Head
from testbed.runtime.inference.llama import LlamaModel, read_json
from testbed.runtime.inference.medusa import MedusaDrafter, MedusaHeads, read_heads
from testbed.runtime.inference.mtp import MultiTokenDrafter, MultiTokenLayer
from testbed.runtime.inference.ngram import PromptLookupDrafter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from testbed.runtime.inference.arithmetic import Array
    from testbed.runtime.inference.drafters import Drafter, DraftSequence
    from testbed.runtime.inference.tree_generation import TreeDrafter, TreeSequence
    from testbed.runtime.simulator.vllm_speculation import SpeculationPlan


class ChainDrafter:
    """A drafter of trees that was given a tree of one path."""

    def __init__(self, drafter: TreeDrafter, target: LlamaModel) -> None:
        """Take the drafter and its target, whose final hidden states it reads."""
        self._drafter = drafter
        self.captured_layers = (target.final_state,)
        self.max_draft_tokens = drafter.max_path_length

    def begin(self, target: LlamaModel) -> DraftSequence:
        """Begin a new sequence; raises PairMismatchError as the drafter does."""
        return _ChainSequence(self._drafter.begin(target))


class _ChainSequence:
    def __init__(self, sequence: TreeSequence) -> None:
        self._sequence = sequence

    def propose(self, tokens: Sequence[int], features: Array, count: int) -> list[int]:
        return list(self._sequence.propose(tokens, features, count).tokens[:count])


def make_drafter(plan: SpeculationPlan, target: LlamaModel) -> Drafter:
    """Load what drafts.

    Raises:
        InferenceError: a model can't be loaded, or doesn't fit the target.
    """
    if plan.directory is None:
        shortest, longest = plan.lookup
        return PromptLookupDrafter(plan.count, shortest=shortest, longest=longest)
    return _LOADERS[plan.method](plan.directory, plan.count, target)


def _chain(length: int) -> tuple[tuple[int, ...], ...]:
    return tuple((0,) * level for level in range(1, length + 1))


def _draft_model(directory: Path, count: int, target: LlamaModel) -> Drafter:
    del target
    return DraftModelDrafter(LlamaModel.load(directory), count)


def _eagle(directory: Path, count: int, target: LlamaModel) -> Drafter:
    return ChainDrafter(Eagle1Drafter(Eagle1Head.load(directory, target), _chain(count)), target)


def _eagle3(directory: Path, count: int, target: LlamaModel) -> Drafter:
    return Eagle3Drafter(Eagle3Head.load(directory, target), count)


def _medusa(directory: Path, count: int, target: LlamaModel) -> Drafter:
    # As many heads as tokens are wanted; vLLM overrides what config.json says of their number.
    layers = int(read_json(directory / "config.json").get("medusa_num_layers", 1))
    heads = MedusaHeads(read_heads(directory), target, heads=count, layers=layers)
    return ChainDrafter(MedusaDrafter(heads, _chain(count)), target)


def _mtp(directory: Path, count: int, target: LlamaModel) -> Drafter:
    return MultiTokenDrafter(MultiTokenLayer.load(directory, target), count)


_LOADERS: Final[Mapping[str, Callable[[Path, int, LlamaModel], Drafter]]] = {
    "draft_model": _draft_model,
    "eagle": _eagle,
    "eagle3": _eagle3,
    "medusa": _medusa,
    "mtp": _mtp,
}
