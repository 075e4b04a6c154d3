"""Hypothesis strategies: specs that the API server takes, and facts of models."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from specdec_operator.api.findings import check_document
from tests.unit.specs import ALL, facts

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts

Json = dict[str, Any]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
_TENSOR = st.sampled_from([1, 2, 3, 4, 8, 40, 64])
_SOURCES = st.sampled_from(
    [
        {"huggingFace": {"repository": "someone/model"}},
        {"huggingFace": {"repository": "someone/other", "revision": "v1", "tokenSecretRef": {"name": "token"}}},
        {"persistentVolumeClaim": {"claimName": "models", "subPath": "a/b"}},
        {"persistentVolumeClaim": {"claimName": "models"}},
    ]
)
_POD = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.sampled_from(["team", "specdec.dev/model"]), st.just("a")),
        "annotations": st.dictionaries(st.sampled_from(["note", "example.com/note"]), TEXT),
        "environment": TEXT.map(lambda text: [{"name": "NOTE", "value": text}])
        | st.just([{"name": "LD_PRELOAD", "value": "x"}]),
        "nodeSelector": st.just({"nvidia.com/gpu.product": "NVIDIA-A10"}),
        "tolerations": st.just([{"operator": "Exists"}]),
        "serverResources": st.just({"cpu": "1500m", "memory": "1024Mi"}),
    },
)
_MODELS = st.fixed_dictionaries(
    {"source": _SOURCES}, optional={"parallelism": st.fixed_dictionaries({"tensor": _TENSOR})}
)


@st.composite
def specs(draw: st.DrawFn) -> Json:
    """A spec that the API server takes, served or refused."""
    method = draw(st.sampled_from(["Eagle3", "DraftTarget", "None"]))
    spec: Json = {
        "target": draw(_MODELS),
        "speculation": {"method": method},
        "pod": draw(_POD),
        "serving": draw(st.fixed_dictionaries({}, optional={"maxBatchSize": st.sampled_from([1, 4, 16])})),
    }
    if method != "None":
        spec["draft"] = draw(_MODELS)
        spec["speculation"] |= draw(st.fixed_dictionaries({}, optional={"maxDraftTokens": st.integers(1, 64)}))
    runtime: Json = draw(st.fixed_dictionaries({}, optional={"release": st.sampled_from(["25.10", "26.04", "99.01"])}))
    if method == "DraftTarget" or (method == "None" and draw(st.booleans())):
        runtime["backend"] = "TensorRTEngine"
        spec |= draw(st.fixed_dictionaries({}, optional={"engine": _ENGINE}))
    product = draw(st.sampled_from([None, "NVIDIA-A10", "NVIDIA-H100-80GB-HBM3"]))
    spec |= {"runtime": runtime, "placement": {"gpu": {"product": product}} if product else {}}
    spec |= draw(st.fixed_dictionaries({}, optional={"storage": st.just({"claim": {"size": "10Gi"}})}))
    return spec


@st.composite
def served_specs(draw: st.DrawFn) -> Json:
    """A spec that is served with the facts that `tests.unit.specs.facts_of` gives."""
    spec = copy.deepcopy(draw(st.sampled_from([*ALL.values()])))
    spec["target"]["parallelism"] = {"tensor": draw(st.sampled_from([1, 2, 4, 8]))}
    if spec["speculation"]["method"] == "DraftTarget" and "placement" in spec:
        spec["draft"]["parallelism"] = {"tensor": draw(st.sampled_from([1, 2, 4]))}
        spec["placement"] = {"gpu": spec["placement"]["gpu"]}
        if draw(st.booleans()):
            spec["placement"] |= draw(_devices(spec))
    if spec["speculation"]["method"] != "None":
        spec["speculation"]["maxDraftTokens"] = draw(st.integers(1, 16))
    spec["serving"] = {"maxBatchSize": draw(st.integers(1, 4))}
    spec["pod"] = {"annotations": {"note": draw(TEXT)}, "environment": [{"name": "NOTE", "value": draw(TEXT)}]}
    return spec


def _devices(spec: Json) -> st.SearchStrategy[Json]:
    target, draft = spec["target"]["parallelism"]["tensor"], spec["draft"]["parallelism"]["tensor"]
    return st.permutations(range(target + draft)).map(
        lambda devices: {"draftDevices": devices[:draft], "targetDevices": devices[draft:]}
    )


_ENGINE = st.fixed_dictionaries(
    {},
    optional={
        "maxBatchSize": st.sampled_from([1, 16, 64]),
        "maxInputLength": st.sampled_from([1, 100, 10000]),
        "maxSequenceLength": st.sampled_from([2, 20000, 200000]),
        "logitsDataType": st.sampled_from(["float16", "float32"]),
    },
)


def is_taken(spec: Json) -> bool:
    """Whether the API server takes a model of this spec."""
    document = {
        "apiVersion": "specdec.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "metadata": {"name": "model"},
        "spec": spec,
    }
    return not check_document(document)


def model_facts() -> st.SearchStrategy[ModelFacts]:
    """Facts of a whole model or a head, of any fit."""
    shapes = {
        "architecture": st.sampled_from(["LlamaForCausalLM", "LlamaForCausalLMEagle3", "MambaForCausalLM"]),
        "vocabulary_size": st.sampled_from([512, 128256]),
        "tokenizer_digest": st.sampled_from(["", "ab", "cd"]),
        "bos_token_id": st.none() | st.just(1),
        "eos_token_ids": st.lists(st.integers(0, 3), max_size=2, unique=True),
        "hidden_size": st.sampled_from([64, 4096]),
        "attention_heads": st.sampled_from([1, 8, 32]),
        "key_value_heads": st.sampled_from([1, 8]),
        "data_type": st.sampled_from(["float16", "bfloat16", "float32"]),
        "context_length": st.sampled_from([1, 8, 256, 131072]),
        "weight_bytes": st.integers(0, 2**40),
        "commit": st.sampled_from(["", "1" * 40]),
    }
    return st.fixed_dictionaries({}, optional=shapes).map(lambda shape: facts(**shape))
