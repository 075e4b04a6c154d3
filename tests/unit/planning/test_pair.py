"""Whether a target and its draft fit: every refusal with its exact words, and what is said of pairs that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.pair import Verdict, check_pair
from specdec_operator.planning.refusal import Refused
from tests.unit.specs import PRODUCT, facts, head, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_artifact import ModelFacts

Json = dict[str, Any]
ENGINE: Json = {"runtime__backend": "TensorRTEngine", "placement__gpu": {"product": PRODUCT}}
VLLM: Json = {"runtime__backend": "VLLM"}


def hub(repository: str) -> Json:
    return {"huggingFace": {"repository": repository}}


def claim(sub_path: str) -> Json:
    return {"persistentVolumeClaim": {"claimName": "models", "subPath": sub_path}}


def eagle(**changes: Any) -> ModelFacts:
    shape = {"architecture": "LlamaForCausalLM", "kind": "EagleHead", "draft_vocabulary_size": None}
    return head(**{**shape, **changes})


def medusa(**changes: Any) -> ModelFacts:
    shape = {
        "architecture": "MedusaHeads",
        "kind": "MedusaHeads",
        "draft_vocabulary_size": None,
        "attention_heads": 1,
        "key_value_heads": 1,
        "head_size": 4096,
        "context_length": 2**31 - 1,
        "medusa_heads": 4,
        "medusa_layers": 1,
    }
    return head(**{**shape, **changes})


def drafter(**changes: Any) -> ModelFacts:
    return medusa(**{"architecture": "Drafter", "kind": "ReDrafterHead", "medusa_heads": None, **changes})


def small(**changes: Any) -> ModelFacts:
    return facts(**{"layers": 16, "hidden_size": 2048, "weight_bytes": 2_500_000_000, **changes})


def checked(
    method: str,
    draft: ModelFacts | None,
    *,
    target: ModelFacts | None = None,
    names: tuple[str, str] = ("someone/target", "someone/draft"),
    **changes: Any,
) -> Verdict:
    spec: Json = {
        "target": {"source": hub(names[0])},
        "speculation": {"method": method},
        "storage": {"claim": {"size": "100Gi"}},
        "placement": {"gpu": {"product": PRODUCT}},
    }
    if draft is not None:
        spec["draft"] = {"source": hub(names[1])}
    made = model(spec, **changes)
    known = {"target": target or facts(), **({"draft": draft} if draft else {})}
    return check_pair(made.spec, resolution_of(made), known)


def refused(method: str, draft: ModelFacts | None, **changes: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(Refused) as caught:
        checked(method, draft, **changes)
    return [(refusal.reason, refusal.path, refusal.message) for refusal in caught.value.refusals]


DRAFT = "spec.draft.source"
MADE_FOR = "name a draft made for this target"
REFUSED: dict[str, tuple[str, ModelFacts | None, Json, tuple[str, str, str]]] = {
    "another hidden size": (
        "Eagle3",
        head(hidden_size=5120),
        {},
        ("HiddenSizeMismatch", DRAFT, f"the draft's hidden size 5120 differs from the target's 4096: {MADE_FOR}"),
    ),
    "a wide head for another target": (
        "Eagle3",
        head(hidden_size=4096, target_hidden_size=8192),
        {},
        ("HiddenSizeMismatch", DRAFT, f"the draft's hidden size 8192 differs from the target's 4096: {MADE_FOR}"),
    ),
    "another vocabulary": (
        "Eagle",
        eagle(vocabulary_size=32000),
        {},
        ("VocabularyMismatch", DRAFT, f"the draft's vocabulary 32000 differs from the target's 128256: {MADE_FOR}"),
    ),
    "a draft vocabulary that is none": (
        "Eagle3",
        head(draft_vocabulary_size=200000),
        {},
        (
            "VocabularyMismatch",
            DRAFT,
            (
                "the draft's own vocabulary 200000 exceeds the 128256 tokens that it is a part of: name a head made "
                "for this target"
            ),
        ),
    ),
    "MEDUSA heads of another width": (
        "Medusa",
        medusa(hidden_size=5120),
        {},
        ("HiddenSizeMismatch", DRAFT, f"the draft's hidden size 5120 differs from the target's 4096: {MADE_FOR}"),
    ),
    "a drafter of another vocabulary": (
        "ReDrafter",
        drafter(vocabulary_size=32000),
        {},
        ("VocabularyMismatch", DRAFT, f"the draft's vocabulary 32000 differs from the target's 128256: {MADE_FOR}"),
    ),
    "padded vocabularies of one family": (
        "DraftTarget",
        small(vocabulary_size=151936),
        {"target": facts(vocabulary_size=152064)},
        ("VocabularyMismatch", DRAFT, f"the draft's vocabulary 151936 differs from the target's 152064: {MADE_FOR}"),
    ),
    "another tokenizer": (
        "DraftTarget",
        small(tokenizer_digest="cd" * 32),
        {},
        (
            "TokenizerMismatch",
            DRAFT,
            "draft and target turn text into different tokens: name a draft with the target's tokenizer",
        ),
    ),
    "no tokenizer with the draft": (
        "DraftTarget",
        small(tokenizer_digest=""),
        {},
        (
            "TokenizerMismatch",
            DRAFT,
            "no tokenizer was found with the draft: add tokenizer.json or tokenizer.model",
        ),
    ),
    "no tokenizer with the target": (
        "DraftTarget",
        small(),
        {"target": facts(tokenizer_digest="")},
        (
            "TokenizerMismatch",
            "spec.target.source",
            "no tokenizer was found with the target: add tokenizer.json or tokenizer.model",
        ),
    ),
    "another first token": (
        "DraftTarget",
        small(bos_token_id=1),
        {},
        (
            "TokenizerMismatch",
            DRAFT,
            (
                "the draft's bos and eos tokens (1, [128001, 128009]) differs from the target's (128000, [128001, "
                f"128009]): {MADE_FOR}"
            ),
        ),
    ),
    "an EAGLE-1 head for EAGLE-3": (
        "Eagle3",
        eagle(),
        {},
        (
            "NotAnEagle3Head",
            DRAFT,
            (
                "the draft (LlamaForCausalLM) is an EAGLE head of the first generation, and Eagle3 takes an EAGLE-3 "
                "head: set speculation.method to Eagle, or name an EAGLE-3 head made for the target"
            ),
        ),
    ),
    "an EAGLE-3 head for EAGLE": (
        "Eagle",
        head(kind="Eagle3Head", architecture="LlamaForCausalLM"),
        {},
        (
            "NotAnEagleHead",
            DRAFT,
            (
                "the draft (LlamaForCausalLM) is an EAGLE-3 head, and Eagle takes an EAGLE head of the first "
                "generation: set speculation.method to Eagle3, or name an EAGLE head of the first generation made for "
                "the target"
            ),
        ),
    ),
    "a whole model for EAGLE-3": (
        "Eagle3",
        small(),
        {},
        (
            "NotAnEagle3Head",
            DRAFT,
            (
                "the draft (LlamaForCausalLM) is a whole model, and Eagle3 takes an EAGLE-3 head: set "
                "speculation.method to DraftTarget, or name an EAGLE-3 head made for the target"
            ),
        ),
    ),
    "a head for DraftTarget": (
        "DraftTarget",
        head(),
        {},
        (
            "NotADraftModel",
            DRAFT,
            (
                "the draft (LlamaForCausalLMEagle3) is an EAGLE-3 head, and DraftTarget takes a whole model: set "
                "speculation.method to Eagle3, or name a whole model made for the target"
            ),
        ),
    ),
    "a drafter for MEDUSA": (
        "Medusa",
        drafter(),
        {},
        (
            "NotMedusaHeads",
            DRAFT,
            (
                "the draft (Drafter) is a ReDrafter drafter, and Medusa takes a set of MEDUSA heads: set "
                "speculation.method to ReDrafter, or name a set of MEDUSA heads made for the target"
            ),
        ),
    ),
    "MEDUSA heads for ReDrafter": (
        "ReDrafter",
        medusa(),
        {},
        (
            "NotAReDrafterHead",
            DRAFT,
            (
                "the draft (MedusaHeads) is a set of MEDUSA heads, and ReDrafter takes a ReDrafter drafter: set "
                "speculation.method to Medusa, or name a ReDrafter drafter made for the target"
            ),
        ),
    ),
    "more MEDUSA heads than there are": (
        "Medusa",
        medusa(medusa_heads=2),
        {"speculation__medusa": {"heads": 4}},
        (
            "TooFewHeads",
            "spec.speculation.medusa.heads",
            (
                "4 heads are asked for, and the draft's weights hold 2: set it to at most 2, or name a set of MEDUSA "
                "heads with more"
            ),
        ),
    ),
    "more tokens than MEDUSA heads on vLLM": (
        "Medusa",
        medusa(model_type="medusa"),
        {**VLLM, "speculation__maxDraftTokens": 5},
        (
            "TooFewHeads",
            "spec.speculation.maxDraftTokens",
            (
                "5 tokens are to be drafted, each by a head of its own, and the draft's weights hold 4: set it to at "
                "most 4, or name a set of MEDUSA heads with more"
            ),
        ),
    ),
    "published MEDUSA heads on a vLLM that wants converted ones": (
        "Medusa",
        medusa(),
        {**VLLM, "runtime__release": "25.12", "speculation__maxDraftTokens": 3},
        (
            "MedusaHeadsNotConverted",
            DRAFT,
            (
                "vLLM 0.11.1 of release 25.12 loads MEDUSA heads only once they are converted (config.json with "
                "model_type medusa): name converted heads, another release in runtime.release, or the backend "
                "TensorRTEngine, which takes them as published"
            ),
        ),
    ),
    "EAGLE-3 for a family that vLLM does not draft for": (
        "Eagle3",
        head(),
        {**VLLM, "runtime__release": "25.12", "target": facts(model_type="mistral")},
        (
            "UnsupportedArchitecture",
            "spec.target.source",
            (
                "vLLM 0.11.1 of release 25.12 drafts with EAGLE-3 for targets of the families llama, qwen, not "
                "mistral: name a newer release in runtime.release, or use the backend LLMAPI"
            ),
        ),
    ),
    "MTP without layers for it": (
        "MTP",
        None,
        {},
        (
            "NoNextTokenLayers",
            "spec.speculation.method",
            (
                "MTP drafts with the target's own next-token layers, and LlamaForCausalLM declares none "
                "(num_nextn_predict_layers or mtp_num_hidden_layers in config.json): name a target that has them, or "
                "use NGram, or Eagle3 with a head"
            ),
        ),
    ),
    "a known head with another target of equal shape": (
        "Eagle",
        eagle(),
        {"names": ("meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE-LLaMA3-Instruct-8B")},
        (
            "BaseModelMismatch",
            DRAFT,
            (
                "the head is known to be made for meta-llama/Meta-Llama-3-8B-Instruct, and the target is "
                "meta-llama/Llama-3.1-8B-Instruct: equal shapes do not help, it would guess badly. Name a head made "
                "for the target, or the target that it is made for"
            ),
        ),
    ),
    "a head that declares another target": (
        "Medusa",
        medusa(declared_base="lmsys/vicuna-7b-v1.3"),
        {"names": ("lmsys/vicuna-7b-v1.5", "someone/heads")},
        (
            "BaseModelMismatch",
            DRAFT,
            (
                "the head's config.json says that it is made for lmsys/vicuna-7b-v1.3, and the target is "
                "lmsys/vicuna-7b-v1.5: equal shapes do not help, it would guess badly. Name a head made for the "
                "target, or the target that it is made for"
            ),
        ),
    ),
    "a head as target": (
        "None",
        None,
        {"target": head()},
        (
            "NotATarget",
            "spec.target.source",
            "LlamaForCausalLMEagle3 is an EAGLE-3 head, not a model that answers: swap target and draft",
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_pair_that_does_not_fit_is_refused_with_the_reason_and_the_remedy(case: str) -> None:
    method, draft, changes, wanted = REFUSED[case]

    assert refused(method, draft, **changes) == [wanted]


def test_a_default_tree_deeper_than_the_heads_is_refused() -> None:
    (refusal,) = refused("Medusa", medusa(medusa_heads=3))

    assert refusal[:2] == ("ChoicesInvalid", "spec.speculation.medusa.choices")


def test_everything_that_does_not_fit_is_said_at_once() -> None:
    assert len(refused("DraftTarget", small(vocabulary_size=1, tokenizer_digest="ee", bos_token_id=1))) == 3


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
        {"target": facts(next_token_layers=1)},
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
