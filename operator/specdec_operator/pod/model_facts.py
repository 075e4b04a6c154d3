"""What a model directory says of itself."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdec_operator.pod.document import camel_case
from specdec_operator.pod.draft_kind import (
    EAGLE3_HEAD,
    MEDUSA_HEADS,
    MODEL,
    REDRAFTER_HEAD,
    fused_width,
    kind_of,
    may_be_head,
    medusa_shape,
    names_layers,
)
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_files import content_digest, weight_files
from specdec_operator.pod.published_config import (
    ATTENTION_HEADS,
    CONTEXT_LENGTH,
    FULL_ATTENTION_INTERVAL,
    HIDDEN_SIZE,
    INTERMEDIATE_SIZE,
    KEY_VALUE_HEADS,
    LAYERS,
    NEXT_TOKEN_LAYERS,
    VOCABULARY_SIZE,
    PublishedConfig,
    read_object,
)
from specdec_operator.pod.tensors import Shapes, read_shapes
from specdec_operator.pod.tokenizer_digest import tokenizer_digests

WITHOUT_CONTEXT = 2**31 - 1
"""The context length of heads that attend to nothing: no text is too long for them."""
_MOST_END_TOKENS = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts of one model; the keys on the wire are those of ModelArtifact's `status.facts`."""

    architecture: str
    vocabulary_size: int
    draft_vocabulary_size: int | None
    tokenizer_digest: str
    bos_token_id: int | None
    eos_token_ids: tuple[int, ...]
    layers: int
    hidden_size: int
    attention_heads: int
    key_value_heads: int
    head_size: int
    data_type: str
    context_length: int
    weight_bytes: int
    commit: str
    content_digest: str
    vocabulary_digest: str = ""
    kind: str = MODEL
    model_type: str = ""
    intermediate_size: int | None = None
    full_attention_layers: int | None = None
    latent_size: int | None = None
    target_hidden_size: int | None = None
    medusa_heads: int | None = None
    medusa_layers: int | None = None
    next_token_layers: int | None = None
    declared_base: str = ""
    quantization: str = ""

    def to_wire(self) -> dict[str, Any]:
        """The facts with the keys of the API; what holds a default is left out."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        values = {name: value for name, value in dataclasses.asdict(self).items() if value != defaults[name]}
        return {**{camel_case(name): value for name, value in values.items()}, "eosTokenIds": list(self.eos_token_ids)}


def read_facts(directory: Path, *, commit: str = "") -> Facts:
    """The facts of a model directory.

    Args:
        directory: a directory in Hugging Face's layout: a whole model, an EAGLE head, MEDUSA heads or a ReDrafter
            drafter.
        commit: the hub's commit that it was downloaded from.

    Raises:
        ProgramFailure: NotAModel, UnsupportedConfig, UnreadableModel or WeightsMissing.
    """
    config = PublishedConfig.read(directory)
    weights = weight_files(directory)
    shapes = _shapes(directory, config, weights)
    kind = kind_of(config, shapes)
    if kind == MEDUSA_HEADS:
        own = _of_medusa_heads(config, shapes)
    elif kind == REDRAFTER_HEAD:
        own = _of_drafter(config)
    else:
        own = _of_transformer(config, kind, shapes)
    digests = tokenizer_digests(directory, vocabulary_size=own["vocabulary_size"])
    return Facts(
        **own,
        architecture=config.architecture() or _unnamed(config, kind),
        tokenizer_digest=digests.tokenizer,
        vocabulary_digest=digests.vocabulary,
        bos_token_id=next(iter(config.token_ids("bos_token_id")), None),
        eos_token_ids=config.token_ids("eos_token_id")[:_MOST_END_TOKENS],
        data_type=config.data_type("float16" if kind == MEDUSA_HEADS else "float32"),
        weight_bytes=sum(weights.values()),
        commit=commit,
        content_digest=content_digest(directory),
        kind=kind,
        model_type=config.family,
        declared_base=_declared_base(config),
        quantization=_quantization(config, directory),
    )


def _of_transformer(config: PublishedConfig, kind: str, shapes: Shapes) -> dict[str, Any]:
    hidden_size = config.integer(HIDDEN_SIZE)
    attention_heads = config.integer(ATTENTION_HEADS)
    latent = config.optional_integer(("kv_lora_rank",))
    return {
        "vocabulary_size": config.integer(VOCABULARY_SIZE),
        "draft_vocabulary_size": config.optional_integer(("draft_vocab_size",)),
        "layers": config.integer(LAYERS),
        "hidden_size": hidden_size,
        "attention_heads": attention_heads,
        "key_value_heads": _key_value_heads(config, attention_heads),
        "head_size": config.optional_integer(("head_dim",)) or max(1, hidden_size // attention_heads),
        "context_length": config.integer(CONTEXT_LENGTH),
        "intermediate_size": config.optional_integer(INTERMEDIATE_SIZE),
        "full_attention_layers": _full_attention_layers(config),
        "latent_size": latent + (config.optional_integer(("qk_rope_head_dim",)) or 0) if latent else None,
        "target_hidden_size": _target_hidden_size(config, kind, shapes),
        "next_token_layers": config.count(NEXT_TOKEN_LAYERS),
    }


def _key_value_heads(config: PublishedConfig, attention_heads: int) -> int:
    declared = config.optional_integer(KEY_VALUE_HEADS)
    if declared is None and config.values.get("multi_query") is True:
        return 1
    return declared or attention_heads


def _full_attention_layers(config: PublishedConfig) -> int | None:
    """How many layers look at the whole text; None if all of them do."""
    layers, kinds = config.integer(LAYERS), config.values.get("layer_types")
    if isinstance(kinds, list):
        full = kinds.count("full_attention")
    else:
        every = config.optional_integer(FULL_ATTENTION_INTERVAL)
        full = layers // every if every else layers
    return max(1, full) if full < layers else None


def _target_hidden_size(config: PublishedConfig, kind: str, shapes: Shapes) -> int | None:
    """The width of the target that an EAGLE-3 head was made for, where it is not the head's own."""
    if kind != EAGLE3_HEAD:
        return None
    declared = config.optional_integer(("target_hidden_size",))
    fused = fused_width(shapes)
    return declared or (fused // 3 if fused and fused % 3 == 0 else None)


def _of_medusa_heads(config: PublishedConfig, shapes: Shapes) -> dict[str, Any]:
    shown = medusa_shape(shapes)
    if shown is None:
        raise ProgramFailure(
            "UnsupportedConfig",
            f"{config.path.parent}: config.json speaks of MEDUSA heads and the weights hold none; give the directory "
            "with medusa_lm_head.safetensors or medusa_lm_head.pt",
        )
    vocabulary = shown.vocabulary or config.optional_integer(VOCABULARY_SIZE)
    if vocabulary is None:
        raise config.unsupported("vocab_size", "a positive integer, since the heads have no output of their own")
    layers = config.optional_integer(("medusa_num_layers",)) or shown.layers
    return {
        **_without_attention(shown.hidden_size),
        "vocabulary_size": vocabulary,
        "draft_vocabulary_size": None,
        "layers": layers,
        "medusa_heads": shown.heads,
        "medusa_layers": layers,
    }


def _of_drafter(config: PublishedConfig) -> dict[str, Any]:
    return {
        **_without_attention(config.integer(HIDDEN_SIZE)),
        "vocabulary_size": config.integer(VOCABULARY_SIZE),
        "draft_vocabulary_size": None,
        "layers": config.integer(("num_draft_layers",)),
        "intermediate_size": config.integer(("exit_dim",)),
    }


def _without_attention(hidden_size: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden_size,
        "attention_heads": 1,
        "key_value_heads": 1,
        "head_size": hidden_size,
        "context_length": WITHOUT_CONTEXT,
    }


def _unnamed(config: PublishedConfig, kind: str) -> str:
    if kind == MODEL:
        raise config.unsupported("architectures", "a list of at least one name")
    return kind


def _shapes(directory: Path, config: PublishedConfig, weights: Mapping[str, int]) -> Shapes:
    """The tensors of what may be a head; what can't be read shows nothing, and its loader will say why."""
    if not may_be_head(config):
        return {}
    shapes: Shapes = {}
    for name in weights:
        try:
            shapes.update(read_shapes(directory / name))
        except ProgramFailure:
            if not config.architecture() and not names_layers(config):
                raise
    return shapes


def _declared_base(config: PublishedConfig) -> str:
    speculators = config.part("speculators_config").get("verifier")
    name = speculators.get("name_or_path") if isinstance(speculators, dict) else None
    if isinstance(name, str) and name.isascii() and name.isprintable() and len(name) < 200:
        return name
    return config.text("base_model_name_or_path")


def _quantization(config: PublishedConfig, directory: Path) -> str:
    """How a model was published in lower precision, as in `fp8` or `modelopt_nvfp4`; empty if it was not."""
    declared = config.part("quantization_config")
    method = str(declared.get("quant_method") or "").lower()
    algorithm = str(declared.get("quant_algo") or "").lower()
    file = directory / "hf_quant_config.json"
    if not method and file.is_file():
        inner = read_object(file).get("quantization")
        algorithm = str(inner.get("quant_algo") or "").lower() if isinstance(inner, dict) else ""
        method = "modelopt" if algorithm else ""
    name = f"{method}_{algorithm}" if method == "modelopt" and algorithm else method or algorithm
    return "".join(letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "_-"))[:64]
