"""The LLM API backend: TensorRT-LLM's PyTorch path inside Triton's Python backend. No build; no MPI of ours.

`decoupled` and `max_batch_size` are written into config.pbtxt and model.yaml: servers started without
auto-completion read them from the first only, others from the second.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specdec_operator.api.yaml_text import write_yaml
from specdec_operator.pod.inputs import ModelTemplate, SpellingProbe
from specdec_operator.runtimes.environment import mpi_environment
from specdec_operator.runtimes.serving import (
    CANARY_PROMPT,
    CANARY_TOKENS,
    COUNTED_PROMPTS,
    COUNTED_TOKENS,
    EXIT_TIMEOUT_SECONDS,
    MODEL_DIRECTORIES,
    Derived,
    RequestTensor,
    ServingFiles,
    ServingRequest,
    server_command,
)

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.serving import Serving
    from specdec_operator.runtimes.table import LlmApiSupport

MODEL = "tensorrt_llm"
DRAFT_TARGET_PLACEHOLDER = "draft_target_decoding_type"
_REQUEST_BATCH = 0
"""Triton's own batching is off: the LLM API batches in flight and takes one prompt per request."""
_SCHEDULER_POLICIES = {"GuaranteedNoEvict": "GUARANTEED_NO_EVICT", "MaxUtilization": "MAX_UTILIZATION"}
_LOOKUP_TOKENS = 4
"""The longest text that NGram looks up where a spec names none: TensorRT-LLM's own default until it became 0."""


def render(request: ServingRequest) -> ServingFiles:
    """The files and the command of the LLM API backend.

    Raises:
        ValueError: The release has no LLM API; resolution refuses that before.
    """
    support = request.release.llm_api
    if support is None:
        raise ValueError(f"release {request.release.name} has no LLM API")
    streaming = request.serving.streaming
    template = ModelTemplate(
        name=MODEL,
        candidates=tuple(support.template),
        fields={"max_batch_size": _REQUEST_BATCH, "model_transaction_policy.decoupled": streaming},
        files={"1/model.yaml": write_yaml(_model(request, support))},
        probes=_probes(request, support),
    )
    counts = request.release.per_request_acceptance and request.draft_tokens > 0
    tensors = _request(counts=counts)
    return ServingFiles(
        templates=(template,),
        argv=(*server_command(log_verbosity=request.serving.log_verbosity), "--disable-auto-complete-config"),
        # The LLM API starts its workers through MPI itself.
        environment=mpi_environment(exit_timeout_seconds=EXIT_TIMEOUT_SECONDS),
        endpoint_model=MODEL,
        tensors=tensors,
        counted=tuple(_counted(tensors, prompt) for prompt in COUNTED_PROMPTS) if counts else (),
        decoupled=streaming,
        takes_at_once=True,
        derived=_derived(request),
    )


def _derived(request: ServingRequest) -> tuple[Derived, ...]:
    draft, target = request.draft_parallelism, request.target_parallelism.tensor
    if draft is None or draft.tensor == target:
        return ()
    reason = "the LLM API splits a draft as its target"
    return (Derived(name="draft.parallelism.tensor", value=str(target), reason=reason),)


def _request(*, counts: bool) -> tuple[RequestTensor, ...]:
    metrics = RequestTensor(name="sampling_param_return_perf_metrics", datatype="BOOL", shape=(1,), values=(True,))
    return (
        RequestTensor(name="text_input", datatype="BYTES", shape=(1,), values=(CANARY_PROMPT,)),
        RequestTensor(name="sampling_param_max_tokens", datatype="INT32", shape=(1,), values=(CANARY_TOKENS,)),
        RequestTensor(name="sampling_param_temperature", datatype="FP32", shape=(1,), values=(0.0,)),
        # Where the counts are always zero, they are not asked for.
        *((metrics,) if counts else ()),
    )


def _counted(tensors: tuple[RequestTensor, ...], prompt: str) -> tuple[RequestTensor, ...]:
    asked: dict[str, str | int] = {"text_input": prompt, "sampling_param_max_tokens": COUNTED_TOKENS}
    return tuple(replace(t, values=(asked[t.name],)) if t.name in asked else t for t in tensors)


def _model(request: ServingRequest, support: LlmApiSupport) -> dict[str, Any]:
    serving = request.serving
    split = request.target_parallelism
    model: dict[str, Any] = {
        "model": MODEL_DIRECTORIES["target"],
        "backend": "pytorch",
        "tensor_parallel_size": split.tensor,
        "pipeline_parallel_size": split.pipeline,
        "max_batch_size": request.batch,
        **_limits(serving),
        "kv_cache_config": _cache(request),
        "scheduler_config": {"capacity_scheduler_policy": _SCHEDULER_POLICIES[serving.scheduler_policy]},
    }
    if serving.tokenizer.mode == "Slow":
        model["tokenizer_mode"] = "slow"
    if request.release.per_request_acceptance and request.draft_tokens > 0:
        model["return_perf_metrics"] = True
    if request.method in support.two_model_methods:
        section = support.overlap_scheduler_section
        knob = {"disable_overlap_scheduler": True}
        model |= {section: knob} if section else knob
    if request.method != "None":
        model["speculative_config"] = _speculation(request, support)
    model["triton_config"] = {"max_batch_size": _REQUEST_BATCH, "decoupled": serving.streaming}
    return model


def _limits(serving: Serving) -> dict[str, Any]:
    declared = {
        "max_seq_len": serving.max_sequence_length,
        "max_num_tokens": serving.max_batched_tokens,
        "enable_chunked_prefill": serving.chunked_context,
    }
    return {key: value for key, value in declared.items() if value is not None}


def _cache(request: ServingRequest) -> dict[str, Any]:
    cache, window = request.serving.kv_cache, request.serving.max_attention_window
    declared = {
        "max_tokens": cache.max_tokens,
        "host_cache_size": request.host_cache_bytes.get("target"),
        "max_attention_window": [window] if window is not None else None,
    }
    return {
        "enable_block_reuse": cache.reuse,
        "free_gpu_memory_fraction": (cache.free_gpu_memory_percent or 80) / 100,
        **{key: value for key, value in declared.items() if value is not None},
    }


def _speculation(request: ServingRequest, support: LlmApiSupport) -> dict[str, Any]:
    """The speculative part of model.yaml.

    Raises:
        ValueError: The LLM API has no such method; resolution refuses that before.
    """
    length = {"max_draft_len": request.draft_tokens}
    draft = {support.draft_model_key: MODEL_DIRECTORIES["draft"]}
    if request.method == "Eagle3":
        return {"decoding_type": support.eagle3_decoding_type, **draft, **length}
    if request.method == "DraftTarget":
        return {"decoding_type": f"${{{DRAFT_TARGET_PLACEHOLDER}}}", **draft, **length}
    if request.method == "NGram":
        options = request.speculation.n_gram
        longest = (options.max_matching_length if options else None) or _LOOKUP_TOKENS
        lookup = {support.n_gram_length_key: request.draft_tokens, "max_matching_ngram_size": longest}
        return {"decoding_type": "NGram", **lookup}
    if request.method == "MTP":
        return {"decoding_type": "MTP", support.mtp_length_key: request.draft_tokens}
    raise ValueError(f"the LLM API has no method {request.method}")


def _probes(request: ServingRequest, support: LlmApiSupport) -> tuple[SpellingProbe, ...]:
    """Draft-target's spelling is settled by no document: the image's own parser is asked."""
    if request.method != "DraftTarget":
        return ()
    return (
        SpellingProbe(
            name=DRAFT_TARGET_PLACEHOLDER,
            module="tensorrt_llm.llmapi.llm_args",
            dictionary="config_classes",
            class_name="DraftTargetDecodingConfig",
            field="decoding_type",
            expected=support.draft_target_decoding_type,
        ),
    )
