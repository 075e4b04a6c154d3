"""Pairs that do not fit: every refusal with its exact words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.refusal import Refused
from tests.unit.planning.pairs import VLLM, Json, checked, drafter, eagle, medusa, small
from tests.unit.specs import facts, head

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts


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
                "LlamaForCausalLM (mistral) is not among the targets of Eagle3 in vLLM 0.11.1 of release 25.12; from "
                "vLLM 0.22.1 on it is: name a newer release in runtime.release, or name another target, backend or "
                "method"
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
