"""Models that read but do not write: encoders, classifiers, and those that write only what an encoder has read.

Neither the LLM API nor vLLM inside Triton answers prompts with them; vLLM would start and serve vectors or labels.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from specdec_operator.planning.pair_kinds import kind_of
from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts

_ENCODERS: Final = re.compile(
    r"(XLM-?)?(Roberta|Bert|Electra|Camembert)|(Distil|Al|Modern|Nomic|Mobile|Squeeze|Flau)Bert|BigBird|De[Bb]erta|MPNet"
    r"|(M|UM|Long|Switch|Pile)?T5|SwitchTransformers|(M|PL)?Bart|Pegasus|Marian|M2M100|Nllb|Blenderbot|LED"
    r"|(XLM)?ProphetNet|FSMT|EncoderDecoder|Whisper|Speech2Text|SeamlessM4T|CLIP|Siglip|ViT|Florence2|Moonshine"
)
"""How names of architectures begin whose models have an encoder of their own for texts, pictures or sounds."""
_FAMILIES: Final = re.compile(
    r"(xlm-)?roberta.*|bert|(distil|al|modern|nomic_|mobile|camem)bert|electra|deberta.*|mpnet|(m|um|long)?t5|(m|pl)?bart"
    r"|(bigbird_)?pegasus.*|marian|m2m_100|blenderbot.*|led|(xlm-)?prophetnet|fsmt|whisper|switch_transformers"
)
"""The same by `model_type`."""
_WRITES: Final = re.compile(r".*(ForCausalLM|ForConditionalGeneration|ChatModel|LMHeadModel)")
_READS: Final = re.compile(
    r".*(ForTextEncoding|ForTextEmbedding|EmbeddingModel|For\w*Classification|ClassificationModel|ForRewardModeling"
    r"|RewardModel|ForMaskedLM|ForQuestionAnswering|ForMultipleChoice|ForNextSentencePrediction|ForPreTraining"
    r"|EncoderModel)|(Llama|Mistral|Mixtral|Qwen[23]?(Moe)?|Gemma[23]?|Phi3?|Falcon|GPT2|GPTNeoX|OPT|Bloom)Model"
)
"""Ends of names, by what the model does: `_SUFFIX_TO_DEFAULTS` of vLLM's vllm/config/model.py (0.10.2 and later), and
`is_generation_model` of TensorRT-LLM's _torch/model_config.py; the further ones are Transformers' automatic classes."""


def task_refusals(facts: Mapping[str, ModelFacts]) -> list[Refusal]:
    """Whole models, of target or draft, that do not answer a text with a text of their own."""
    whole = {role: fact for role, fact in facts.items() if kind_of(fact) == "Model"}
    return [
        Refusal(
            reason="UnsupportedArchitecture",
            path=f"spec.{role}.source",
            message=f"{fact.architecture} is not a decoder that continues a text: an encoder, a classifier or a model "
            "with an encoder of its own can't be served here. Name a causal language model (…ForCausalLM)",
        )
        for role, fact in whole.items()
        if not _continues_texts(fact)
    ]


def _continues_texts(facts: ModelFacts) -> bool:
    name = facts.architecture
    if _ENCODERS.match(name) or _FAMILIES.fullmatch(facts.model_type):
        return False
    return bool(_WRITES.fullmatch(name)) or not _READS.fullmatch(name)
