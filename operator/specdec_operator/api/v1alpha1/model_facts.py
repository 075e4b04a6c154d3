"""Facts of what an artifact holds: what a model says of itself, and what tells a data set from others."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from specdec_operator.api.model import StatusModel
from specdec_operator.api.v1alpha1.scalars import Digest

ModelKind = Literal["Model", "EagleHead", "Eagle3Head", "MedusaHeads", "ReDrafterHead"]


class ModelFacts(StatusModel):
    """What a model says of itself."""

    architecture: Annotated[str, Field(max_length=128)]
    """config.json's first architecture; the kind where it names none."""
    kind: ModelKind = "Model"
    """A whole model, or which draft head: told by configuration and tensors, not by the architecture's name."""
    model_type: Annotated[str, Field(max_length=64)] = ""
    """The language model's family, as in `llama`."""
    vocabulary_size: Annotated[int, Field(ge=1)]
    """Rows of the embedding, as config.json says."""
    draft_vocabulary_size: Annotated[int, Field(ge=1)] | None = None
    """An EAGLE-3 head's own reduced vocabulary."""
    tokenizer_digest: Digest = ""
    """Hash of vocabulary, added tokens and merges; empty if the directory holds no tokenizer."""
    vocabulary_digest: Digest = ""
    """Hash of each token's number and text alone, the same for every format of the tokenizer's files."""
    bos_token_id: int | None = None
    """The token that starts a text."""
    eos_token_ids: Annotated[list[int], Field(max_length=16)] = []
    """The tokens that end a text."""
    layers: Annotated[int, Field(ge=1)]
    """Transformer layers."""
    hidden_size: Annotated[int, Field(ge=1)]
    """Width of the residual stream."""
    attention_heads: Annotated[int, Field(ge=1)]
    """Attention heads."""
    key_value_heads: Annotated[int, Field(ge=1)]
    """Key-value heads."""
    head_size: Annotated[int, Field(ge=1)]
    """Width of one attention head."""
    data_type: Annotated[str, Field(max_length=32)]
    """float16, bfloat16 or float32."""
    context_length: Annotated[int, Field(ge=1)]
    """The longest text that the model was made for, in tokens, stretched as `rope_scaling` says; 2147483647 for heads
    that attend to nothing."""
    unstretched_context_length: Annotated[int, Field(ge=1)] | None = None
    """The longest text that TensorRT-LLM's LLM API takes, which does not stretch it by YaRN; left out if the same."""
    intermediate_size: Annotated[int, Field(ge=1)] | None = None
    """Width of the feed-forward layers."""
    full_attention_layers: Annotated[int, Field(ge=1)] | None = None
    """Layers that look at the whole text, where the others look at a window or keep a state."""
    latent_size: Annotated[int, Field(ge=1)] | None = None
    """Elements that a token leaves in each layer's cache, where keys and values are kept compressed (MLA)."""
    target_hidden_size: Annotated[int, Field(ge=1)] | None = None
    """The width of the target that an EAGLE-3 head was made for."""
    medusa_heads: Annotated[int, Field(ge=1)] | None = None
    """MEDUSA heads in the weights."""
    medusa_layers: Annotated[int, Field(ge=1)] | None = None
    """Residual blocks of each MEDUSA head."""
    next_token_layers: Annotated[int, Field(ge=1)] | None = None
    """The model's own layers that predict further tokens (MTP)."""
    declared_base: Annotated[str, Field(max_length=256)] = ""
    """The target that a head says it was made for: a hub repository or a path."""
    quantization: Annotated[str, Field(max_length=64)] = ""
    """The lower precision that the model was published in, as in `fp8`, `awq` or `modelopt_nvfp4`."""
    weight_bytes: Annotated[int, Field(ge=0, le=2**46)]
    """Bytes of the weight files."""
    commit: Annotated[str, Field(max_length=64)] = ""
    """The hub's commit that was downloaded; empty for a claim."""
    content_digest: Digest
    """Hash of file names, sizes and the weight index: the revision of a model on a claim."""


class DataSetFacts(StatusModel):
    """What tells texts for a quantizer from others; at least one of the members."""

    commit: Annotated[str, Field(max_length=64)] = ""
    """The hub's commit that was downloaded; empty for a claim."""
    content_digest: Digest = ""
    """Hash of file names and sizes, and of what JSON files hold: the revision of texts on a claim."""

    @property
    def revision(self) -> str:
        """What decides the content: the commit, or the digest where there is none."""
        return self.commit or self.content_digest
