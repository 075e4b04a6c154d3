"""What a backend needs of a pair beside that its models fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from specdec_operator.planning.engine_limits import engine_roles, serving_batch
from specdec_operator.planning.engine_rules import is_prebuilt
from specdec_operator.planning.pair_architectures import architecture_refusals
from specdec_operator.planning.pair_tasks import task_refusals
from specdec_operator.planning.pair_vllm import vllm_refusals
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.engine_builds import engine_builds
from specdec_operator.runtimes.gpus import compute_capability
from specdec_operator.runtimes.versions import at_least

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.quantization import QuantizationFormat
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

_OF_LLM_API: Final[Mapping[str, str]] = {"modelopt": "", "fp8": "", "mxfp4": "1.0"}
"""Published formats that TensorRT-LLM loads, and since when: `_update_from_hf_quant_config` in llmapi/llm_utils.py
stops at every other (read in a stored version of the 1.0 line). `fp8` alone stands for scales of blocks, the only ones
that it takes. That 1.2.1 is the same is inferred: compressed-tensors came to main in January 2026 (#10796)."""
_HARDWARE_FORMATS: Final[Mapping[str, QuantizationFormat]] = {"nvfp4": "NVFP4", "fp8": "FP8"}
"""Published formats, as parts of their names, whose arithmetic is the GPU's; vLLM has kernels for older ones too."""
_DRAFTS_SPLIT_ALIKE = "0.10.2"
"""From here on vLLM splits a draft model as its target."""


def backend_refusals(
    spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]
) -> list[Refusal]:
    """What the method on its backend and release can't do with these models."""
    method, target, draft = spec.speculation.method, facts["target"], facts.get("draft")
    refusals = _next_token_layers(target) if method == "MTP" else []
    refusals = refusals or architecture_refusals(spec, resolution, facts)
    if resolution.backend != "TensorRTEngine":
        refusals += task_refusals(facts)
        refusals += _length(spec, target)
        refusals += _draft_split(spec, resolution, draft) if method == "DraftTarget" and draft else []
    if resolution.backend != "VLLM":
        # What an engine computes in was settled when it was built.
        loaded = {role: fact for role, fact in facts.items() if not is_prebuilt(_engine_of(role, spec), spec)}
        refusals += [found for role, fact in loaded.items() for found in _published(role, resolution, fact)]
    if resolution.backend == "VLLM":
        refusals += vllm_refusals(spec, resolution, facts)
    if resolution.backend == "LLMAPI":
        refusals += _batched_tokens(spec, resolution)
    return refusals


def _engine_of(role: str, spec: SpeculativeModelSpec) -> str:
    return role if role in engine_roles(spec) else "target"


def _next_token_layers(target: ModelFacts) -> list[Refusal]:
    if target.next_token_layers:
        return []
    return [
        Refusal(
            reason="NoNextTokenLayers",
            path="spec.speculation.method",
            message=f"MTP drafts with the target's own next-token layers, and {target.architecture} declares none "
            "(num_nextn_predict_layers or mtp_num_hidden_layers in config.json): name a target that has them, or use "
            "NGram, or Eagle3 with a head",
        )
    ]


def _length(spec: SpeculativeModelSpec, target: ModelFacts) -> list[Refusal]:
    asked = spec.serving.max_sequence_length
    if asked is None or asked <= target.context_length:
        return []
    message = f"{asked} tokens exceed the target's context of {target.context_length}: lower it, or leave it out"
    return [Refusal(reason="ContextTooShort", path="spec.serving.maxSequenceLength", message=message)]


def _draft_split(spec: SpeculativeModelSpec, resolution: Resolution, draft: ModelFacts) -> list[Refusal]:
    """A draft model that can't be split as its target is."""
    support, ranks = resolution.release.vllm, spec.target.parallelism.tensor
    own = resolution.backend == "VLLM" and support is not None and not support.at_least(_DRAFTS_SPLIT_ALIKE)
    heads, shared = draft.attention_heads, draft.key_value_heads
    if own or (heads % ranks == 0 and (shared % ranks == 0 or ranks % shared == 0)):
        return []
    message = (
        f"{resolution.backend} splits a draft as its target, and the draft's {heads} attention heads and {shared} "
        f"key-value heads can't be split over {ranks} GPUs: choose a number that divides both, or another draft"
    )
    return [Refusal(reason="ParallelismMismatch", path="spec.target.parallelism.tensor", message=message)]


def _published(role: str, resolution: Resolution, facts: ModelFacts) -> list[Refusal]:
    """A published precision that TensorRT-LLM can't load, or the GPU can't compute in."""
    if resolution.backend == "LLMAPI" and not _is_loaded(facts.quantization, resolution):
        message = (
            f"LLMAPI loads no model published in {facts.quantization}: name the model in full precision or in FP8, "
            "or set runtime.backend to VLLM where the method allows it"
        )
        return [Refusal(reason="QuantizationUnsupported", path=f"spec.{role}.source", message=message)]
    found = compute_capability(resolution.gpu_product or "")
    name = next((name for part, name in _HARDWARE_FORMATS.items() if part in facts.quantization), None)
    least = engine_builds().formats[name].minimum_capability if name else None
    if found is None or least is None or found >= least:
        return []
    message = (
        f"the {role} is published in {facts.quantization}, which needs GPUs of compute capability {least[0]}."
        f"{least[1]}, and {resolution.gpu_product} has {found[0]}.{found[1]}: name newer GPUs, or the model in its "
        "full precision"
    )
    return [Refusal(reason="GpuTooOld", path=f"spec.{role}.source", message=message)]


def _is_loaded(published: str, resolution: Resolution) -> bool:
    """Whether the LLM API of the release loads a published format."""
    version = resolution.release.version_for("LLMAPI")
    known = published if published in _OF_LLM_API else published.partition("_")[0] if "modelopt" in published else ""
    since = _OF_LLM_API.get(known)
    return not published or (since is not None and at_least(version, since))


def _batched_tokens(spec: SpeculativeModelSpec, resolution: Resolution) -> list[Refusal]:
    asked, batch = spec.serving.max_batched_tokens, serving_batch(spec)
    needed = batch * (resolution.draft_tokens + 1)
    if asked is None or asked >= needed:
        return []
    message = (
        f"{asked} tokens are too few, since {batch} requests with {resolution.draft_tokens} drafted tokens and one of "
        f"their own each take {needed}: raise it to {needed}, or leave it out"
    )
    return [Refusal(reason="BatchedTokensTooFew", path="spec.serving.maxBatchedTokens", message=message)]
