"""From an engine and its model's parameters to what drafts for it, checked as the original checks it at load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from testbed.runtime.inference.eagle1 import Eagle1Drafter, Eagle1Head
from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.lookahead import LookaheadDrafter
from testbed.runtime.inference.medusa import MedusaDrafter, MedusaHeads
from testbed.runtime.inference.redrafter import RedrafterDrafter, RedrafterModel
from testbed.runtime.inference.tree_choices import TreeLimits, check_choices, default_choices
from testbed.runtime.simulator.engine import load_parts
from testbed.runtime.simulator.engine_speculation import (
    EagleSpeculation,
    MedusaSpeculation,
    RedrafterSpeculation,
    without_prefix,
)
from testbed.runtime.simulator.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from testbed.runtime.inference.llama import LlamaModel
    from testbed.runtime.inference.safetensors import Tensor
    from testbed.runtime.inference.tree_generation import TreeDrafter
    from testbed.runtime.simulator.engine import EngineDescription
    from testbed.runtime.simulator.parameters_decoding import DecodingParameters

_SAMPLING: Final = ("top_k", "top_p", "top_k_top_p")
# By engine mode: what decoding_mode says of it, and how the original's warning names it.
_OWN_MODES: Final[Mapping[str, tuple[str, str]]] = {
    "medusa": ("medusa", "Medusa"),
    "lookahead_decoding": ("lookahead", "Lookahead"),
    "explicit_draft_tokens": ("redrafter", "Explicit draft tokens"),
    "eagle": ("eagle", "Eagle"),
}


@dataclass(frozen=True)
class LoadedEngine:
    """An engine in memory.

    Attributes:
        model: the target.
        drafter: what drafts for it within the engine; none for a model alone and for an external draft.
        zeros: whether every token of an answer is 0, as was seen of MEDUSA engines that are told to sample.
    """

    model: LlamaModel
    drafter: TreeDrafter | None
    zeros: bool = False


def load_with_drafter(engine: EngineDescription, decoding: DecodingParameters, *, gpu: str) -> LoadedEngine:
    """Load the model and the drafter of all ranks' files.

    Raises:
        EngineError: as `load_engine`, or the tree or the lookahead sizes don't fit the engine.
    """
    model, tensors = load_parts(engine, gpu=gpu)
    try:
        drafter = _drafter(engine, decoding, model=model, tensors=without_prefix(tensors))
    except InferenceError as problem:
        raise EngineError(f"{engine.directory}: {problem}") from problem
    zeros = engine.limits.speculative_decoding_mode == "medusa" and decoding.mode in _SAMPLING
    return LoadedEngine(model, drafter, zeros)


def decoding_warnings(engine: EngineDescription, decoding: DecodingParameters) -> tuple[str, ...]:
    """Return what the original warns of where decoding_mode and engine differ, in its words."""
    mode = engine.limits.speculative_decoding_mode
    if mode in _OWN_MODES and decoding.mode != _OWN_MODES[mode][0]:
        name = _OWN_MODES[mode][1]
        return (f"Model is {name}, but decoding mode is not {name}. Overwriting decoding mode to {name}.",)
    foreign = [name for own, name in _OWN_MODES.values() if own == decoding.mode and mode not in _OWN_MODES]
    return tuple(f"Model is not {name}, but decoding mode is {name}. Overwriting decoding mode." for name in foreign)


def _drafter(
    engine: EngineDescription,
    decoding: DecodingParameters,
    *,
    model: LlamaModel,
    tensors: Mapping[str, Tensor],
) -> TreeDrafter | None:
    speculation = engine.speculation
    if isinstance(speculation, EagleSpeculation):
        limits = TreeLimits(
            speculation.max_draft_len,
            speculation.num_eagle_layers,
            exact_depth=True,
            max_non_leaves=speculation.max_non_leaves_per_layer,
        )
        choices = check_choices(decoding.eagle_choices or default_choices(), limits)
        return Eagle1Drafter(Eagle1Head(speculation.head, tensors, model), choices)
    if isinstance(speculation, MedusaSpeculation):
        count = speculation.num_medusa_heads
        limits = TreeLimits(speculation.max_draft_len, count)
        choices = check_choices(decoding.medusa_choices or default_choices(), limits)
        return MedusaDrafter(MedusaHeads(tensors, model, heads=count, layers=speculation.num_medusa_layers), choices)
    if isinstance(speculation, RedrafterSpeculation):
        drafter = RedrafterModel(speculation.drafter, tensors, model)
        beams, length = speculation.num_beams, speculation.draft_len_per_beam
        return RedrafterDrafter(drafter, beams=beams, draft_length=length)
    if engine.limits.speculative_decoding_mode == "lookahead_decoding":
        return _lookahead(engine, decoding)
    return None


def _lookahead(engine: EngineDescription, decoding: DecodingParameters) -> LookaheadDrafter:
    config = decoding.lookahead
    if config is None:
        raise EngineError(
            f"{engine.directory}: the engine decodes by lookahead, but no lookahead configuration is set: set "
            "decoding_mode to lookahead, and the three lookahead_* parameters"
        )
    limit = engine.limits.max_draft_len
    if config.max_draft_tokens > limit:
        raise EngineError(
            f"{engine.directory}: lookahead ({config.window_size}, {config.ngram_size}, "
            f"{config.verification_set_size}) needs max_draft_len {config.max_draft_tokens}, "
            f"but the engine was built with {limit}"
        )
    return LookaheadDrafter(config)
