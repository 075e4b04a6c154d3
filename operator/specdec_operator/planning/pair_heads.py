"""A draft that is a head: made for the hidden states of one target, which its shapes alone can't prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.choices import refusals as tree_refusals
from specdec_operator.planning.known_pairs import is_repository, known_pairs, name_of
from specdec_operator.planning.pair_kinds import WORDS, kind_of
from specdec_operator.planning.pair_models import context_words, mismatch
from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution

_PATH = "spec.draft.source"


def head_refusals(
    spec: SpeculativeModelSpec, resolution: Resolution, *, target: ModelFacts, head: ModelFacts
) -> list[Refusal]:
    """What keeps a head from drafting for the target."""
    refusals = []
    width = head.target_hidden_size or head.hidden_size
    if width != target.hidden_size:
        refusals.append(mismatch("HiddenSizeMismatch", "hidden size", width, target.hidden_size))
    if head.vocabulary_size != target.vocabulary_size:
        refusals.append(mismatch("VocabularyMismatch", "vocabulary", head.vocabulary_size, target.vocabulary_size))
    if head.draft_vocabulary_size is not None and head.draft_vocabulary_size > head.vocabulary_size:
        refusals.append(
            Refusal(
                reason="VocabularyMismatch",
                path=_PATH,
                message=f"the draft's own vocabulary {head.draft_vocabulary_size} exceeds the {head.vocabulary_size} "
                "tokens that it is a part of: name a head made for this target",
            )
        )
    return [*refusals, *_base(spec), *_declared_base(spec, head), *_medusa(spec, resolution, head)]


def head_verdict(spec: SpeculativeModelSpec, *, target: ModelFacts, head: ModelFacts) -> tuple[str, str]:
    """The reason and the message of a head that fits."""
    shape = f"head and target share hidden size {target.hidden_size} and vocabulary {target.vocabulary_size}"
    warnings = context_words(spec, target=target, draft=head)
    reason, origin = _origin(spec, head)
    return reason, "; ".join([shape, origin, *warnings])


def _origin(spec: SpeculativeModelSpec, head: ModelFacts) -> tuple[str, str]:
    """What is known of the target that a head was made for."""
    target = name_of(spec.target.source)
    known = _known_targets(spec)
    for declared, origin in ((known, "is known to be"), ([head.declared_base], "says that it is")):
        same = [name for name in declared if name and known_pairs().is_same(name, target)]
        if same and is_repository(spec.target.source):
            return "Verified", f"the head {origin} made for {same[0]}"
    unverified = "ShapeCompatibleUnverified"
    named = [*known, *([head.declared_base] if head.declared_base else [])]
    if named:
        return unverified, (
            f"the head was made for {' or '.join(dict.fromkeys(named))}; whether {target or 'the target'} is that "
            "model its files do not say"
        )
    return unverified, "a head's files do not say which target it was trained for"


def _known_targets(spec: SpeculativeModelSpec) -> list[str]:
    if spec.draft is None or not is_repository(spec.draft.source):
        return []
    return list(known_pairs().targets_of(name_of(spec.draft.source)))


def _base(spec: SpeculativeModelSpec) -> list[Refusal]:
    """A publicly known head with another target than its own."""
    known = _known_targets(spec)
    if not known or not is_repository(spec.target.source):
        return []
    target = name_of(spec.target.source)
    if not all(known_pairs().is_other(name, target) for name in known):
        return []
    return [_other_base(f"the head is known to be made for {' or '.join(known)}", target)]


def _declared_base(spec: SpeculativeModelSpec, head: ModelFacts) -> list[Refusal]:
    """A head that names another target in its configuration."""
    target = name_of(spec.target.source)
    if _known_targets(spec) or not is_repository(spec.target.source):
        return []
    if not known_pairs().is_other(head.declared_base, target):
        return []
    return [_other_base(f"the head's config.json says that it is made for {head.declared_base}", target)]


def _other_base(said: str, target: str) -> Refusal:
    return Refusal(
        reason="BaseModelMismatch",
        path=_PATH,
        message=f"{said}, and the target is {target}: equal shapes do not help, it would guess badly. Name a head made "
        "for the target, or the target that it is made for",
    )


def _medusa(spec: SpeculativeModelSpec, resolution: Resolution, head: ModelFacts) -> list[Refusal]:
    """Fewer MEDUSA heads than are asked for."""
    if kind_of(head) != "MedusaHeads" or head.medusa_heads is None:
        return []
    options = spec.speculation.medusa
    declared = options.heads if options else None
    if declared is not None and declared > head.medusa_heads:
        return [_too_few("spec.speculation.medusa.heads", f"{declared} heads are asked for", head.medusa_heads)]
    if resolution.backend != "TensorRTEngine" and resolution.draft_tokens > head.medusa_heads:
        asked = f"{resolution.draft_tokens} tokens are to be drafted, each by a head of its own"
        return [_too_few("spec.speculation.maxDraftTokens", asked, head.medusa_heads)]
    if resolution.backend == "TensorRTEngine":
        return tree_refusals(spec, resolution.backend, counted_heads=head.medusa_heads)
    return []


def _too_few(path: str, asked: str, found: int) -> Refusal:
    return Refusal(
        reason="TooFewHeads",
        path=path,
        message=f"{asked}, and the draft's weights hold {found}: set it to at most {found}, or name "
        f"{WORDS['MedusaHeads']} with more",
    )
