"""Pairs that fit: what is said of them, and what to be aware of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.planning.pairs import ENGINE, VLLM, Json, checked, claim, drafter, eagle, medusa, small
from tests.unit.specs import facts, head

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts


SHAPE = "head and target share hidden size 4096 and vocabulary 128256"
UNKNOWN = "a head's files do not say which target it was trained for"
SHORT = (
    "the draft knows texts of at most 2048 tokens, and up to 131072 are served: beyond, it guesses badly or not at all"
)
FITTING: dict[str, tuple[str, ModelFacts | None, Json, tuple[str, str]]] = {
    "the baseline": ("None", None, {}, ("NoDraft", "the baseline has no draft")),
    "n-grams": ("NGram", None, {}, ("NoDraft", "NGram drafts without a model of its own")),
    "MTP": (
        "MTP",
        None,
        {"target": facts(architecture="DeepseekV3ForCausalLM", next_token_layers=1)},
        ("NoDraft", "the target's own next-token layers (1) draft"),
    ),
    "a draft with the target's tokens": (
        "DraftTarget",
        small(),
        {},
        ("Verified", "both tokenizers are equal, vocabulary 128256"),
    ),
    "tokenizers of two formats": (
        "DraftTarget",
        small(tokenizer_digest="cd" * 32, vocabulary_digest="ee" * 32),
        {"target": facts(vocabulary_digest="ee" * 32)},
        ("Verified", "both tokenizers are equal, vocabulary 128256"),
    ),
    "end tokens in another order": (
        "DraftTarget",
        small(eos_token_ids=[128009, 128001]),
        {},
        ("Verified", "both tokenizers are equal, vocabulary 128256"),
    ),
    "a draft as large as its target": (
        "DraftTarget",
        facts(),
        {},
        (
            "Verified",
            (
                "both tokenizers are equal, vocabulary 128256; but the draft is no smaller than the target "
                "(16000000000 and 16000000000 bytes of weights), so that it will slow the answers down"
            ),
        ),
    ),
    "a draft of short texts": (
        "DraftTarget",
        small(context_length=2048),
        {},
        ("Verified", f"both tokenizers are equal, vocabulary 128256; {SHORT}"),
    ),
    "a draft of short texts for short requests": (
        "DraftTarget",
        small(context_length=2048),
        {**ENGINE, "engine": {"maxSequenceLength": 2000}},
        ("Verified", "both tokenizers are equal, vocabulary 128256"),
    ),
    "a head of an unknown name": (
        "Eagle3",
        head(),
        {},
        ("ShapeCompatibleUnverified", f"{SHAPE}; {UNKNOWN}; {SHORT}"),
    ),
    "a head named as a whole model": (
        "Eagle3",
        head(kind="Eagle3Head", architecture="LlamaForCausalLM", context_length=131072),
        {},
        ("ShapeCompatibleUnverified", f"{SHAPE}; {UNKNOWN}"),
    ),
    "a narrow head for a wide target": (
        "Eagle3",
        head(hidden_size=6144, target_hidden_size=8192, context_length=131072),
        {"target": facts(hidden_size=8192)},
        (
            "ShapeCompatibleUnverified",
            f"head and target share hidden size 8192 and vocabulary 128256; {UNKNOWN}",
        ),
    ),
    "a known pair": (
        "Eagle3",
        head(context_length=131072),
        {"names": ("meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B")},
        ("Verified", f"{SHAPE}; the head is known to be made for meta-llama/Llama-3.1-8B-Instruct"),
    ),
    "a known pair with a quantized copy of the target": (
        "Eagle3",
        head(context_length=131072),
        {"names": ("nvidia/Llama-3.1-8B-Instruct-FP8", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B")},
        ("Verified", f"{SHAPE}; the head is known to be made for meta-llama/Llama-3.1-8B-Instruct"),
    ),
    "a known head with somebody's own target": (
        "Eagle3",
        head(context_length=131072),
        {"names": ("someone/Llama-3.1-8B-Tuned", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B")},
        (
            "ShapeCompatibleUnverified",
            (
                f"{SHAPE}; the head was made for meta-llama/Llama-3.1-8B-Instruct; whether someone/Llama-3.1-8B-Tuned "
                "is that model its files do not say"
            ),
        ),
    ),
    "heads that declare their target": (
        "Medusa",
        medusa(declared_base="lmsys/vicuna-7b-v1.3"),
        {"names": ("lmsys/vicuna-7b-v1.3", "someone/heads")},
        ("Verified", f"{SHAPE}; the head says that it is made for lmsys/vicuna-7b-v1.3"),
    ),
    "heads that declare a target on a claim": (
        "Medusa",
        medusa(declared_base="lmsys/vicuna-7b-v1.3"),
        {"target__source": claim("stock/other")},
        (
            "ShapeCompatibleUnverified",
            f"{SHAPE}; the head was made for lmsys/vicuna-7b-v1.3; whether other is that model its files do not say",
        ),
    ),
    "heads trained from a local directory": (
        "Medusa",
        medusa(declared_base="/data/models/vicuna-7b-v1.3/"),
        {"names": ("lmsys/vicuna-7b-v1.3", "someone/heads")},
        ("Verified", f"{SHAPE}; the head says that it is made for /data/models/vicuna-7b-v1.3/"),
    ),
    "published MEDUSA heads on a vLLM that takes them": (
        "Medusa",
        medusa(),
        {**VLLM, "runtime__release": "26.08", "speculation__maxDraftTokens": 4},
        ("ShapeCompatibleUnverified", f"{SHAPE}; {UNKNOWN}"),
    ),
    "EAGLE-3 on a vLLM whose classes tell": (
        "Eagle3",
        head(context_length=131072),
        {**VLLM, "runtime__release": "26.08", "target": facts(model_type="mistral")},
        ("ShapeCompatibleUnverified", f"{SHAPE}; {UNKNOWN}"),
    ),
    "a drafter": ("ReDrafter", drafter(), {}, ("ShapeCompatibleUnverified", f"{SHAPE}; {UNKNOWN}")),
    "an EAGLE head": (
        "Eagle",
        eagle(context_length=131072),
        {},
        ("ShapeCompatibleUnverified", f"{SHAPE}; {UNKNOWN}"),
    ),
}


@pytest.mark.parametrize("case", FITTING)
def test_a_pair_that_fits_is_told_what_was_compared_and_what_to_be_aware_of(case: str) -> None:
    method, draft, changes, wanted = FITTING[case]

    verdict = checked(method, draft, **changes)

    assert (verdict.reason, verdict.message) == wanted
