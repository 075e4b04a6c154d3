"""How requests are served."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.rules import Rule
from specdec_operator.api.v1alpha1.quantity_rules import bounded
from specdec_operator.api.v1alpha1.scalars import Bytes


class KvCache(ApiModel):
    """The key-value cache of one model."""

    free_gpu_memory_percent: Annotated[int | None, Field(ge=1, le=95, alias="freeGPUMemoryPercent")] = None
    """The part of the GPU memory left after the model is loaded that the cache takes; on VLLM the part of the whole
    GPU's memory that the server takes. Left out: 80, on VLLM 90, or what two models on one GPU leave to each other."""
    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """The most tokens that the cache holds."""
    host_memory: Bytes | None = None
    """Host memory that takes what the GPU's does not hold, on LLMAPI and TensorRTEngine."""
    reuse: bool = True
    """Share cache blocks between requests with the same prefix. DraftTarget on TensorRTEngine needs it."""

    RULES: ClassVar[tuple[Rule, ...]] = (bounded("hostMemory", "host_memory"),)


class Instances(ApiModel):
    """Copies of the models around the engine, on TensorRTEngine.

    Left out: 1, or maxBatchSize where the draft proposes through Triton.
    """

    preprocessing: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Of the model that turns text into tokens."""
    postprocessing: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Of the model that turns tokens into text."""
    business_logic: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Of the model that lets draft and target take turns: as many requests speculate at once."""


class Tokenizer(ApiModel):
    """How text becomes tokens and back."""

    mode: Literal["Auto", "Slow"] = "Auto"
    """Auto: the fast tokenizer where there is one. On LLMAPI and VLLM."""
    add_special_tokens: bool = True
    """Whether a prompt gets the model's own marks, on TensorRTEngine."""
    skip_special_tokens: bool = True
    """Whether the answer is freed of them, on TensorRTEngine."""


class OpenAIFrontEnd(ApiModel):
    """Triton's OpenAI-compatible front end on port 9000 of the Service, beside Triton's own protocol."""

    default_max_tokens: Annotated[int, Field(ge=1, le=1048576)] = 16
    """The length of an answer whose request names none, in tokens."""


class Serving(ApiModel):
    """How requests are served."""

    max_batch_size: Annotated[int, Field(ge=1, le=2048)] | None = None
    """The most requests that are served at once. Left out: engine.maxBatchSize, or 8."""
    max_queue_delay_microseconds: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """How long Triton waits to fill a batch, in microseconds; on TensorRTEngine."""
    max_queue_size: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The most requests that wait; 0 for no limit. On TensorRTEngine."""
    max_sequence_length: Annotated[int, Field(ge=2, le=2097152)] | None = None
    """The longest prompt with its answer, in tokens; on LLMAPI and VLLM (engines are built for a length). Left out: the
    model's own context."""
    max_batched_tokens: Annotated[int, Field(ge=1, le=1048576)] | None = None
    """The most tokens in one step; on LLMAPI and VLLM."""
    streaming: bool = False
    """Answer in pieces as they are made (Triton's decoupled mode). Without effect on VLLM, which always serves in that
    mode: there each request asks for pieces or for one answer, by its input `stream`."""
    scheduler_policy: Literal["GuaranteedNoEvict", "MaxUtilization"] = "GuaranteedNoEvict"
    """Whether a request that was begun may be set back when the cache is full; on LLMAPI and TensorRTEngine."""
    chunked_context: bool | None = None
    """Take long prompts in pieces. Left out: the backend's default."""
    max_attention_window: Annotated[int, Field(ge=1, le=2097152)] | None = None
    """How far back a token looks, in tokens; on LLMAPI and TensorRTEngine."""
    normalize_log_probabilities: bool | None = None
    """On TensorRTEngine. Left out: the backend's default."""
    accumulate_tokens: bool = False
    """Whether a streamed piece holds all tokens so far; on TensorRTEngine."""
    decoding_mode: Literal["TopK", "TopP", "TopKTopP"] | None = None
    """How tokens are sampled, on TensorRTEngine with the methods DraftTarget and None; other methods decide it
    themselves."""
    kv_cache: KvCache = KvCache()
    """The target's key-value cache."""
    draft_kv_cache: KvCache | None = None
    """The draft's, with the method DraftTarget on TensorRTEngine; as the target's if left out."""
    instances: Instances = Instances()
    """Copies of the models around the engine."""
    tokenizer: Tokenizer = Tokenizer()
    """How text becomes tokens and back."""
    log_verbosity: Annotated[int, Field(ge=0, le=9)] = 0
    """How much Triton writes to its log; 0 for warnings and what it loads."""
    open_ai_front_end: Annotated[OpenAIFrontEnd | None, Field(alias="openAIFrontEnd")] = None
    """Serve OpenAI's protocol as well; Triton's alone if left out."""
