"""Pairs for the tests of the pair check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specdec_operator.planning.pair import Verdict, check_pair
from tests.unit.specs import PRODUCT, facts, head, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts

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
