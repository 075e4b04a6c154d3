"""A draft that is a model of its own: its tokens must mean what the target's mean.

Vocabulary sizes must be equal exactly, since padded sizes differ within one family (TensorRT-LLM issue 2789).
Tokenizers are compared by content, since chat templates differ in equal tokenizers; where they are kept in different
formats, by what each token's number stands for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec

_PATH = "spec.draft.source"


def model_refusals(target: ModelFacts, draft: ModelFacts) -> list[Refusal]:
    """What keeps a draft model's tokens from being the target's."""
    refusals = []
    if draft.vocabulary_size != target.vocabulary_size:
        refusals.append(mismatch("VocabularyMismatch", "vocabulary", draft.vocabulary_size, target.vocabulary_size))
    if not _same_tokens(target, draft):
        refusals.append(_tokenizer(target, draft))
    if draft.bos_token_id != target.bos_token_id or set(draft.eos_token_ids) != set(target.eos_token_ids):
        refusals.append(
            mismatch(
                "TokenizerMismatch",
                "bos and eos tokens",
                (draft.bos_token_id, draft.eos_token_ids),
                (target.bos_token_id, target.eos_token_ids),
            )
        )
    return refusals


def model_words(spec: SpeculativeModelSpec, *, target: ModelFacts, draft: ModelFacts) -> str:
    """What was compared, and what to be aware of."""
    words = [f"both tokenizers are equal, vocabulary {target.vocabulary_size}"]
    if draft.weight_bytes >= target.weight_bytes:
        words.append(
            f"but the draft is no smaller than the target ({draft.weight_bytes} and {target.weight_bytes} bytes of "
            "weights), so that it will slow the answers down"
        )
    return "; ".join([*words, *context_words(spec, target=target, draft=draft)])


def context_words(spec: SpeculativeModelSpec, *, target: ModelFacts, draft: ModelFacts) -> list[str]:
    """A warning where the draft knows shorter texts than are served."""
    built = spec.engine.max_sequence_length if spec.engine else None
    served = spec.serving.max_sequence_length or built or target.context_length
    if draft.context_length >= min(served, target.context_length):
        return []
    return [
        (
            f"the draft knows texts of at most {draft.context_length} tokens, and up to "
            f"{min(served, target.context_length)} are served: beyond, it guesses badly or not at all"
        )
    ]


def mismatch(reason: str, what: str, draft: object, target: object) -> Refusal:
    """Something that must be equal and is not."""
    return Refusal(
        reason=reason,
        path=_PATH,
        message=f"the draft's {what} {draft} differs from the target's {target}: name a draft made for this target",
    )


def _same_tokens(target: ModelFacts, draft: ModelFacts) -> bool:
    if not target.tokenizer_digest or not draft.tokenizer_digest:
        return False
    same_vocabulary = bool(target.vocabulary_digest) and target.vocabulary_digest == draft.vocabulary_digest
    return target.tokenizer_digest == draft.tokenizer_digest or same_vocabulary


def _tokenizer(target: ModelFacts, draft: ModelFacts) -> Refusal:
    missing = [role for role, facts in (("target", target), ("draft", draft)) if not facts.tokenizer_digest]
    if missing:
        text = f"no tokenizer was found with the {' and the '.join(missing)}: add tokenizer.json or tokenizer.model"
    else:
        text = "draft and target turn text into different tokens: name a draft with the target's tokenizer"
    path = "spec.target.source" if missing == ["target"] else _PATH
    return Refusal(reason="TokenizerMismatch", path=path, message=text)
