"""What a backend needs of a pair's files, beside that they fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.refusal import Refused
from tests.unit.planning.pairs import ENGINE, VLLM, Json, checked, small
from tests.unit.specs import facts, head

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts

LLM_API: Json = {"runtime__backend": "LLMAPI"}
AMPERE: Json = {"placement__gpu": {"product": "NVIDIA-A100-SXM4-80GB"}}


def refused(method: str, draft: ModelFacts | None = None, **changes: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(Refused) as caught:
        checked(method, draft, **changes)
    return [(refusal.reason, refusal.path, refusal.message) for refusal in caught.value.refusals]


@pytest.mark.parametrize(
    ("architecture", "remedy"),
    [
        ("Glm4MoeForCausalLM", "from TensorRT-LLM 1.2.0 on it is: name a newer release in runtime.release"),
        ("MiMoForCausalLM", "nor in any other"),
    ],
)
def test_the_llm_api_drafts_with_the_layers_of_targets_that_its_version_knows(architecture: str, remedy: str) -> None:
    target = facts(architecture=architecture, model_type="", next_token_layers=1)
    message = (
        f"{architecture} is not among the targets of MTP in TensorRT-LLM 1.1.0 of release 26.02; {remedy}, or name "
        "another target, backend or method"
    )

    assert refused("MTP", target=target, **LLM_API) == [("UnsupportedArchitecture", "spec.target.source", message)]


@pytest.mark.parametrize("backend", [LLM_API, VLLM])
def test_longer_texts_than_the_target_s_context_are_refused(backend: dict[str, Any]) -> None:
    target = facts(context_length=4096)

    assert refused("None", target=target, serving={"maxSequenceLength": 4097}, **backend) == [
        (
            "ContextTooShort",
            "spec.serving.maxSequenceLength",
            "4097 tokens exceed the target's context of 4096: lower it, or leave it out",
        )
    ]


@pytest.mark.parametrize("backend", [LLM_API, VLLM])
def test_the_target_s_whole_context_may_be_served(backend: dict[str, Any]) -> None:
    checked("None", None, target=facts(context_length=4096), serving={"maxSequenceLength": 4096}, **backend)


@pytest.mark.parametrize("backend", [LLM_API, VLLM])
def test_a_draft_that_can_not_be_split_as_its_target_is_refused(backend: dict[str, Any]) -> None:
    name, draft = backend["runtime__backend"], small(attention_heads=12, key_value_heads=12)

    assert refused("DraftTarget", draft, target__parallelism={"tensor": 8}, **backend) == [
        (
            "ParallelismMismatch",
            "spec.target.parallelism.tensor",
            (
                f"{name} splits a draft as its target, and the draft's 12 attention heads and 12 "
                "key-value heads can't be split over 8 GPUs: choose a number that divides both, or another draft"
            ),
        )
    ]


def test_vllm_s_first_engine_splits_no_draft() -> None:
    draft = small(attention_heads=12, key_value_heads=12)

    checked("DraftTarget", draft, target__parallelism={"tensor": 8}, runtime__release="25.08", **VLLM)


UNKNOWN_TO_LLM_API = [
    "gptq",
    "awq",
    "bitsandbytes",
    "compressed-tensors",
    "hqq",
    "gguf",
    "torchao",
    "fp8_dynamic",
    "new",
]


@pytest.mark.parametrize("published", UNKNOWN_TO_LLM_API)
def test_formats_that_the_llm_api_can_not_load_are_refused(published: str) -> None:
    assert refused("None", target=facts(quantization=published), **LLM_API) == [
        (
            "QuantizationUnsupported",
            "spec.target.source",
            (
                f"LLMAPI loads no model published in {published}: name the model in full precision or in FP8, or set "
                "runtime.backend to VLLM where the method allows it"
            ),
        )
    ]


@pytest.mark.parametrize("role", ["target", "draft"])
def test_the_format_of_either_model_counts(role: str) -> None:
    pair = {"target": facts(), "draft": small(), role: small(quantization="hqq")}

    assert [found[:2] for found in refused("DraftTarget", pair["draft"], target=pair["target"], **LLM_API)] == [
        ("QuantizationUnsupported", f"spec.{role}.source")
    ]


@pytest.mark.parametrize("published", ["", "fp8", "mxfp4", "modelopt_nvfp4", "modelopt_w4a8_awq"])
def test_formats_that_the_llm_api_loads_pass(published: str) -> None:
    checked("None", None, target=facts(quantization=published), placement__gpu={"product": "NVIDIA-B200"}, **LLM_API)


def test_mxfp4_is_loaded_from_tensorrt_llm_1_0_on() -> None:
    older: Json = {**LLM_API, "runtime__release": "25.07"}

    assert refused("None", target=facts(quantization="mxfp4"), **older)[0][0] == "QuantizationUnsupported"


@pytest.mark.parametrize("published", UNKNOWN_TO_LLM_API)
def test_vllm_is_left_to_judge_published_formats_itself(published: str) -> None:
    checked("None", None, target=facts(quantization=published), **VLLM)


READERS = [
    ("BertForMaskedLM", "bert"),
    ("BertLMHeadModel", "bert"),
    ("RobertaForCausalLM", ""),
    ("XLMRobertaForSequenceClassification", "xlm-roberta"),
    ("DistilBertForSequenceClassification", "distilbert"),
    ("ModernBertForMaskedLM", "modernbert"),
    ("DebertaV2ForTokenClassification", "deberta-v2"),
    ("T5ForConditionalGeneration", "t5"),
    ("MT5ForConditionalGeneration", "mt5"),
    ("T5GemmaForConditionalGeneration", "t5gemma"),
    ("BartForConditionalGeneration", "bart"),
    ("MBartForConditionalGeneration", "mbart"),
    ("PegasusForConditionalGeneration", "pegasus"),
    ("WhisperForConditionalGeneration", "whisper"),
    ("LlamaForSequenceClassification", "llama"),
    ("Qwen2ForSequenceClassification", "qwen2"),
    ("Qwen3ForTokenClassification", "qwen3"),
    ("Qwen2ForRewardModel", "qwen2"),
    ("Qwen3ForTextEmbedding", "qwen3"),
    ("GPT2ForSequenceClassification", "gpt2"),
    ("MistralModel", "mistral"),
]


@pytest.mark.parametrize("backend", [LLM_API, VLLM])
@pytest.mark.parametrize(("architecture", "family"), READERS)
def test_models_that_continue_no_text_are_refused(backend: Json, architecture: str, family: str) -> None:
    target = facts(architecture=architecture, model_type=family)

    assert [found[:2] for found in refused("None", target=target, **backend)] == [
        ("UnsupportedArchitecture", "spec.target.source")
    ]


@pytest.mark.parametrize("backend", [LLM_API, VLLM])
@pytest.mark.parametrize(
    ("architecture", "family"),
    [
        ("LlamaForCausalLM", "llama"),
        ("GPT2LMHeadModel", "gpt2"),
        ("ChatGLMModel", "chatglm"),
        ("InternVLChatModel", "internvl_chat"),
        ("Gemma3ForConditionalGeneration", "gemma3_text"),
        ("Qwen2_5_VLForConditionalGeneration", "qwen2"),
        ("MiniCPMV", "minicpmv"),
        ("BaichuanForCausalLM", "baichuan"),
    ],
)
def test_decoders_of_every_name_pass(backend: Json, architecture: str, family: str) -> None:
    checked("None", None, target=facts(architecture=architecture, model_type=family), **backend)


@pytest.mark.parametrize(
    ("published", "backend", "needed"),
    [
        ("modelopt_fp8", {"runtime__backend": "TensorRTEngine"}, "8.9"),
        ("fp8", LLM_API, "8.9"),
        ("modelopt_nvfp4", LLM_API, "10.0"),
    ],
)
def test_a_published_precision_that_the_gpu_lacks_is_refused(
    published: str, backend: dict[str, Any], needed: str
) -> None:
    assert refused("None", target=facts(quantization=published), **backend, **AMPERE) == [
        (
            "GpuTooOld",
            "spec.target.source",
            (
                f"the target is published in {published}, which needs GPUs of compute capability {needed}, and "
                "NVIDIA-A100-SXM4-80GB has 8.0: name newer GPUs, or the model in its full precision"
            ),
        )
    ]


@pytest.mark.parametrize("backend", [ENGINE, LLM_API])
def test_fp8_as_published_is_taken_by_gpus_that_have_it(backend: dict[str, Any]) -> None:
    checked("None", None, target=facts(quantization="modelopt_fp8"), **backend)


def test_a_prebuilt_engine_is_not_judged_by_its_model_s_published_precision() -> None:
    given: Json = {"runtime__backend": "TensorRTEngine", "engine": {"prebuilt": {"target": {"claimName": "engines"}}}}

    checked("None", None, target=facts(quantization="modelopt_fp8"), **given, **AMPERE)


def test_vllm_takes_fp8_on_older_gpus() -> None:
    checked("None", None, target=facts(quantization="fp8"), **VLLM, **AMPERE)


def test_steps_too_small_for_every_request_s_drafts_are_refused() -> None:
    serving = {"maxBatchSize": 4, "maxBatchedTokens": 15}
    message = (
        "15 tokens are too few, since 4 requests with 3 drafted tokens and one of their own each take 16: raise it to "
        "16, or leave it out"
    )

    assert refused("Eagle3", head(), serving=serving, **LLM_API) == [
        ("BatchedTokensTooFew", "spec.serving.maxBatchedTokens", message)
    ]


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_vllm_s_next_token_layers_draft_whole_rounds(tokens: int) -> None:
    target = facts(architecture="Qwen3NextForCausalLM", next_token_layers=2)

    checked("MTP", None, target=target, speculation__maxDraftTokens=tokens, **VLLM)


def test_a_part_of_a_round_of_next_token_layers_is_refused() -> None:
    message = (
        "vLLM drafts with all 2 next-token layers of the target, once or some whole times, and 3 are more and no "
        "multiple of 2: set it to 2"
    )
    target = facts(architecture="Qwen3NextForCausalLM", next_token_layers=2)

    assert refused("MTP", target=target, speculation__maxDraftTokens=3, **VLLM) == [
        ("OptionContradiction", "spec.speculation.maxDraftTokens", message)
    ]


@pytest.mark.parametrize(
    ("release", "architecture"), [("25.03", "DeepseekV3ForCausalLM"), ("25.08", "MiMoForCausalLM")]
)
def test_old_versions_run_next_token_layers_once(release: str, architecture: str) -> None:
    target = facts(architecture=architecture, next_token_layers=1)
    options = {"target": target, "speculation__maxDraftTokens": 2, **VLLM, "runtime__release": release}

    assert [(reason, field) for reason, field, _ in refused("MTP", **options)] == [
        ("OptionContradiction", "spec.speculation.maxDraftTokens")
    ]


@pytest.mark.parametrize(("length", "tokens"), [(4096, 4095), (4097, 4100), (None, 16)])
def test_a_vllm_cache_that_holds_no_request_is_refused(length: int | None, tokens: int) -> None:
    served = length or 8192
    serving = {"kvCache": {"maxTokens": tokens}, **({"maxSequenceLength": length} if length else {})}
    message = (
        f"a cache of {tokens} tokens, in blocks of 16, holds no request of {served}: raise it to "
        f"{-(-served // 16) * 16}, or lower serving.maxSequenceLength"
    )

    assert refused("None", target=facts(context_length=8192), serving=serving, **VLLM) == [
        ("CacheTooSmall", "spec.serving.kvCache.maxTokens", message)
    ]


@pytest.mark.parametrize(("release", "fits"), [("25.12", True), ("26.08", False)])
def test_a_vllm_cache_holds_what_is_served_with_a_short_head(release: str, fits: bool) -> None:  # noqa: FBT001 - a row
    short = head(context_length=2048)
    changes = {"runtime__release": release, "serving": {"kvCache": {"maxTokens": 2048}}, **VLLM}

    if fits:
        checked("Eagle3", short, target=facts(model_type="llama"), **changes)
    else:
        assert [reason for reason, _, _ in refused("Eagle3", short, **changes)] == ["CacheTooSmall"]
