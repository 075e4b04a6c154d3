"""What kind of model a directory holds: a whole one, or one of the heads that draft.

Heads are told by their configuration and by the names and shapes of their tensors, never by the name of their
architecture alone: published EAGLE heads say `LlamaForCausalLM`, as whole models do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.published_config import LAYERS, VOCABULARY_SIZE, PublishedConfig
from specdec_operator.pod.tensors import Shapes

MODEL = "Model"
EAGLE_HEAD = "EagleHead"
EAGLE3_HEAD = "Eagle3Head"
MEDUSA_HEADS = "MedusaHeads"
REDRAFTER_HEAD = "ReDrafterHead"

MOST_LAYERS_OF_A_HEAD = 4
_SPECULATORS: Mapping[str, str] = {"eagle": EAGLE_HEAD, "eagle3": EAGLE3_HEAD}
_FUSION = re.compile(r"(?:model\.|eagle_module\.)?fc\.weight")
_EAGLE3_TENSOR = re.compile(r"(?:model\.|eagle_module\.)?(?:d2t|t2d|midlayer\..*)")
# FasterDecoding's `0.0.linear.weight`, `medusa_head.0.1.weight`; vLLM's `blocks.0.layers.0.weight`
_MEDUSA_TENSOR = re.compile(r"(?:medusa_head\.|model\.)?(?:(?:blocks|lm_heads)\.)?(\d+)\.(?:\d+\.|layers\.|weight)")
_MEDUSA_BLOCK = re.compile(
    r"(?:medusa_head\.|model\.)?(?:\d+\.(\d+)\.linear\.weight|blocks\.\d+\.layers\.(\d+)\.weight)"
)


@dataclass(frozen=True)
class MedusaShape:
    """What the tensors of MEDUSA heads show.

    Attributes:
        heads: How many there are, whatever config.json says.
        layers: Residual blocks of each.
        hidden_size: Width of the target that they are for.
        vocabulary: Rows of their output; None if none of them has an output of its own.
    """

    heads: int
    layers: int
    hidden_size: int
    vocabulary: int | None


def names_layers(config: PublishedConfig) -> bool:
    """Whether the configuration is that of a transformer: without, only the tensors tell what there is."""
    return any(config.values.get(key) is not None for key in LAYERS)


def may_be_head(config: PublishedConfig) -> bool:
    """Whether the tensors have to be looked at to tell."""
    layers = next((config.values[key] for key in LAYERS if config.values.get(key) is not None), None)
    return not isinstance(layers, int) or layers <= MOST_LAYERS_OF_A_HEAD


def kind_of(config: PublishedConfig, shapes: Shapes) -> str:
    """One of MODEL, EAGLE_HEAD, EAGLE3_HEAD, MEDUSA_HEADS and REDRAFTER_HEAD.

    Args:
        shapes: Names and shapes of the tensors; empty for a whole model, whose need not be read.

    Raises:
        ProgramFailure: UnsupportedConfig, a head of a kind that nothing here serves.
    """
    speculator = config.text("speculators_model_type")
    if speculator:
        if speculator not in _SPECULATORS:
            raise config.unsupported("speculators_model_type", f"one of {', '.join(_SPECULATORS)}")
        return _SPECULATORS[speculator]
    if _is_medusa(config, shapes):
        return MEDUSA_HEADS
    if config.values.get("num_draft_layers") is not None and config.values.get("exit_dim") is not None:
        return REDRAFTER_HEAD
    return _eagle_kind(config, shapes)


def _is_medusa(config: PublishedConfig, shapes: Shapes) -> bool:
    if config.family == "medusa":
        return True
    named = "medusa_num_heads" in config.values or "medusa_num_layers" in config.values
    return not names_layers(config) and (named or medusa_shape(shapes) is not None)


def _eagle_kind(config: PublishedConfig, shapes: Shapes) -> str:
    names = f"{config.architecture()} {config.family}".lower()
    fused = next((shape for name, shape in shapes.items() if _FUSION.fullmatch(name)), None)
    third = (
        config.values.get("draft_vocab_size") is not None
        or "eagle3" in names
        or bool(config.part("eagle_config"))
        or any(_EAGLE3_TENSOR.fullmatch(name) for name in shapes)
    )
    if third:
        return EAGLE3_HEAD
    if fused is not None and len(fused) == 2:
        return EAGLE3_HEAD if fused[1] == 3 * fused[0] else EAGLE_HEAD
    return EAGLE_HEAD if "eagle" in names else MODEL


def draft_vocabulary(config: PublishedConfig, shapes: Shapes) -> int | None:
    """An EAGLE-3 head's own reduced vocabulary; None if it has none.

    Raises:
        ProgramFailure: UnsupportedConfig, the tensors that map it to the target's tokens contradict config.json: vLLM
            and the LLM API would load them into others of another size, or draft other tokens than the head means.
    """
    whole, declared = config.integer(VOCABULARY_SIZE), config.optional_integer(("draft_vocab_size",))
    rows = {key: shape[0] for key in ("d2t", "t2d", "lm_head.weight") if (shape := _tensor(shapes, key))}
    own = declared or rows.get("d2t")
    wanted = {"d2t": own, "t2d": whole, "lm_head.weight": own or whole}
    for key, found in rows.items():
        if found != wanted[key]:
            raise _contradicts(config, f"the tensor {key} has {found} rows, and config.json makes them {wanted[key]}")
    if own is not None and own < whole and "d2t" not in rows:
        raise _contradicts(config, f"of {whole} tokens it drafts {own}, and no tensor d2t says which")
    return own


def _contradicts(config: PublishedConfig, what: str) -> ProgramFailure:
    return ProgramFailure(
        "UnsupportedConfig",
        f"{config.path.parent}: an EAGLE-3 head that contradicts itself: {what} (vocab_size, draft_vocab_size); take "
        "config.json and weights from one publication",
    )


def _tensor(shapes: Shapes, name: str) -> tuple[int, ...] | None:
    found = (shapes.get(f"{prefix}{name}") for prefix in ("", "model.", "eagle_module."))
    return next((shape for shape in found if shape), None)


def fused_width(shapes: Shapes) -> int | None:
    """Columns of an EAGLE head's first layer, which joins what it takes in; None if it has none."""
    return next((shape[1] for name, shape in shapes.items() if _FUSION.fullmatch(name) and len(shape) == 2), None)


def medusa_shape(shapes: Shapes) -> MedusaShape | None:
    """What the tensors show of MEDUSA heads; None if these are none."""
    numbers = {int(found[1]) for found in map(_MEDUSA_TENSOR.match, shapes) if found}
    blocks = {
        int(found[1] or found[2]): shapes[name]
        for name, found in ((name, _MEDUSA_BLOCK.fullmatch(name)) for name in shapes)
        if found and len(shapes[name]) == 2
    }
    if not numbers or not blocks:
        return None
    width = next(iter(blocks.values()))[1]
    outputs = [shape[0] for shape in shapes.values() if len(shape) == 2 and shape[1] == width and shape[0] != width]
    return MedusaShape(max(numbers) + 1, len(blocks), width, max(outputs) if outputs else None)
