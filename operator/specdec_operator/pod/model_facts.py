"""What a model directory says of itself."""

import dataclasses
from pathlib import Path
from typing import Any

from specdec_operator.pod.document import camel_case
from specdec_operator.pod.draft_kind import (
    MEDUSA_HEADS,
    MODEL,
    REDRAFTER_HEAD,
    kind_of,
    may_be_head,
)
from specdec_operator.pod.model_files import content_digest, weight_files
from specdec_operator.pod.model_shape import of_drafter, of_medusa_heads, of_transformer
from specdec_operator.pod.published_config import PublishedConfig
from specdec_operator.pod.published_quantization import published_quantization
from specdec_operator.pod.tensors import read_weights
from specdec_operator.pod.tokenizer_digest import tokenizer_digests

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
    unstretched_context_length: int | None = None
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
    if config.values.get("is_encoder_decoder") is True:
        raise config.unsupported("is_encoder_decoder", "false")
    weights = weight_files(directory)
    shapes = read_weights(directory, weights)
    kind = kind_of(config, shapes if may_be_head(config) else {})
    if kind == MEDUSA_HEADS:
        own = of_medusa_heads(config, shapes)
    elif kind == REDRAFTER_HEAD:
        own = of_drafter(config)
    else:
        own = of_transformer(config, kind, shapes)
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
        quantization=published_quantization(config, directory),
    )


def _unnamed(config: PublishedConfig, kind: str) -> str:
    if kind == MODEL:
        raise config.unsupported("architectures", "a list of at least one name")
    return kind


def _declared_base(config: PublishedConfig) -> str:
    speculators = config.part("speculators_config").get("verifier")
    name = speculators.get("name_or_path") if isinstance(speculators, dict) else None
    if isinstance(name, str) and name.isascii() and name.isprintable() and len(name) < 200:
        return name
    return config.text("base_model_name_or_path")
