"""Specs over the whole schema of the API: every field, values at and past every bound, facts of any fit."""

from __future__ import annotations

import copy
import functools
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from specdec_operator.api.crd import object_schema
from specdec_operator.api.v1alpha1.kinds import SPECULATIVE_MODEL
from specdec_operator.api.v1alpha1.speculation import DRAFTING_METHODS, METHODS
from specdec_operator.planning.pair_kinds import KINDS
from tests.unit.specs import TABLE, facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.runtime import Backend

Json = dict[str, Any]
Step = str | int

PRODUCTS = ("NVIDIA-A10", "NVIDIA-H100-80GB-HBM3", "Tesla-V100-SXM2-32GB", "A-GPU", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")
UNICODE = "Grüße, 世界 \U0001f680 $(HOME) {{ x }} \"'\\"
_NAMES = ("a", "models", "a" * 253, "a.b-c")
_STRINGS: dict[str, tuple[object, ...]] = {
    "repository": ("someone/model", "o" * 96 + "/" + "n" * 96, "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "a/b"),
    "revision": ("main", "1" * 40, "r" * 128),
    "endpoint": ("https://hub.example.com",),
    "key": ("token", "k" * 253),
    "subPath": ("a", "a/b", "x" * 512, "models/Llama-3.1-8B-Instruct"),
    "reference": ("example.com/image:1", "example.com/a/b@sha256:" + "a" * 64),
    "release": (*(release.name for release in TABLE.releases), "99.01"),
    "resourceName": ("nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "example.com/gpu"),
    "product": PRODUCTS,
    "allowPatterns[]": ("*.json", "*"),
    "ignorePatterns[]": ("*.bin",),
    "tolerations[].key": ("nvidia.com/gpu", "example.com/taint"),
    "tolerations[].value": ("", "v" * 63),
    "environment[].name": ("NOTE", "LD_PRELOAD", "N" * 253, "PYTHONPATH"),
    "environment[].value": ("", UNICODE, "v" * 4096),
    "nodeSelector{}": ("", "v", "NVIDIA-A10"),
    "labels{}": ("", "v" * 63),
    "annotations{}": ("", UNICODE, "v" * 4096),
    "extraBuildArguments{}": ("", "enable", "1", "v" * 128),
}
_KEYS: dict[str, tuple[str, ...]] = {
    "nodeSelector": ("nvidia.com/gpu.product", "zone", "example.com/" + "n" * 63),
    "labels": ("team", "specdec.dev/model", "example.com/name"),
    "annotations": ("note", "specdec.dev/revision", "example.com/note"),
    "extraBuildArguments": ("multiple_profiles", "max_batch_size", "workers", "gemm_plugin", "a" * 64),
}
_QUANTITIES: tuple[object, ...] = (0, 1, "16Gi", "1000m", "0.5", "40Gi", 2**40, "1Ei")
_SMALL = {"tensor": (1, 1, 1, 2, 4, 3, 64), "pipeline": (1, 1, 1, 2, 16)}
# One draw per spec: a draw per field takes a hundred times as long.
_SEEDS = st.integers(0, 2**32 - 1).map(Random)
_BACKENDS: tuple[Backend, ...] = ("LLMAPI", "TensorRTEngine", "VLLM")
_ONE_OF = frozenset({"source", "storage", "choices"})
_OWN_OPTIONS = {
    "Eagle": "eagle",
    "Medusa": "medusa",
    "DraftTarget": "draftTarget",
    "NGram": "nGram",
    "Lookahead": "lookahead",
    "ReDrafter": "reDrafter",
}


@functools.cache
def spec_schema() -> Json:
    """The schema of a SpeculativeModel's spec."""
    schema: Json = object_schema(SPECULATIVE_MODEL)["properties"]["spec"]
    return schema


def whole_cases() -> st.SearchStrategy[tuple[Json, dict[str, ModelFacts]]]:
    """Specs that keep most rules of the API, with any of its fields, and facts of models of any kind and size."""
    return _SEEDS.map(_case)


def specs_past_a_bound() -> st.SearchStrategy[tuple[Json, str]]:
    """Specs with one value past its bound, and the path of that value."""
    return _SEEDS.map(_past_a_bound)


def _case(random: Random) -> tuple[Json, dict[str, ModelFacts]]:
    spec = _spec(random)
    wanted = KINDS.get(spec["speculation"]["method"]) if random.random() < 0.9 else None
    target, draft = _facts(random, kind="Model"), _facts(random, kind=wanted)
    return spec, {"target": target, "draft": draft} if "draft" in spec else {"target": target}


def _spec(random: Random) -> Json:
    method = random.choice(METHODS)
    spec: Json = _object(random, spec_schema(), often=0.12)
    speculation: Json = {"method": method}
    if method not in ("None", "Lookahead", "ReDrafter") and random.random() < 0.5:
        speculation["maxDraftTokens"] = random.choice([1, 3, 10, 63, 255])
    own = _OWN_OPTIONS.get(method)
    if own and random.random() < 0.6:
        speculation[own] = _object(random, spec_schema()["properties"]["speculation"]["properties"][own], often=0.5)
    spec["speculation"] = speculation
    able = [backend for backend in _BACKENDS if TABLE.with_method(backend, method)]
    spec.setdefault("runtime", {})["backend"] = random.choice(able if able and random.random() < 0.9 else _BACKENDS)
    if random.random() < 0.7:
        spec["runtime"].pop("release", None)
    if method in DRAFTING_METHODS:
        spec.setdefault("draft", _object(random, spec_schema()["properties"]["draft"], often=0.2))
    else:
        spec.pop("draft", None)
    if method != "DraftTarget" and "draft" in spec:
        spec["draft"].pop("parallelism", None)
    if spec["runtime"]["backend"] != "TensorRTEngine":
        spec.pop("engine", None)
        for role in ("target", "draft"):
            spec.get(role, {}).pop("quantization" if random.random() < 0.9 else "", None)
    spec.setdefault("storage", {"claimName": "store"})
    spec.setdefault("placement", {}).setdefault("gpu", {}).setdefault("product", random.choice(PRODUCTS))
    _place(random, spec)
    return spec


def _place(random: Random, spec: Json) -> None:
    """Devices that fit the split, or none."""
    places = spec["speculation"]["method"] == "DraftTarget" and spec["runtime"]["backend"] == "TensorRTEngine"
    placement = spec["placement"]
    for field in ("draftDevices", "targetDevices"):
        placement.pop(field, None)
    if "resourceName" in placement["gpu"]:
        placement["gpu"].pop("resourceClaimTemplate", None)
    if "resourceClaimTemplate" not in placement["gpu"] or spec["runtime"]["backend"] != "TensorRTEngine":
        placement["gpu"].pop("buildResourceClaimTemplate", None)
    if not places:
        spec.get("serving", {}).pop("draftKvCache", None)
        return
    spec.get("serving", {}).get("kvCache", {}).pop("reuse", None)
    target, draft = (_ranks(spec[role]) for role in ("target", "draft"))
    shared = random.random() < 0.5
    if target + draft <= 64 and random.random() < 0.7:
        placement["draftDevices"] = [*range(draft)]
        first = 0 if shared else draft
        placement["targetDevices"] = [*range(first, first + target)]


def _ranks(model: Json) -> int:
    split = model.get("parallelism", {})
    ranks: int = split.get("tensor", 1) * split.get("pipeline", 1)
    return ranks


def _object(random: Random, schema: Json, *, often: float, path: str = "") -> Json:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if path.rpartition(".")[2] in _ONE_OF:
        name = random.choice([*properties])
        return {name: _value(random, properties[name], often=often, path=f"{path}.{name}")}
    return {
        name: _value(random, part, often=often, path=f"{path}.{name}")
        for name, part in properties.items()
        if name in required or random.random() < often
    }


def _value(random: Random, schema: Json, *, often: float, path: str) -> Any:
    name = path.rpartition(".")[2]
    if schema.get("type") == "array":
        return _array(random, schema, often=often, path=path)
    if schema.get("type") != "object":
        return random.choice(_scalars(random, schema, path=path, name=name))
    if "additionalProperties" in schema:
        keys = random.sample(_KEYS[name], random.choice([0, 1, 1]))
        inner = schema["additionalProperties"]
        return {key: _value(random, inner, often=often, path=f"{path}{{}}") for key in keys}
    return _object(random, schema, often=often, path=path)


def _scalars(random: Random, schema: Json, *, path: str, name: str) -> Sequence[object]:
    if schema.get("x-kubernetes-int-or-string"):
        return _QUANTITIES
    if "enum" in schema:
        enum: list[object] = schema["enum"]
        return enum
    if schema["type"] == "integer":
        return _SMALL.get(name) or _integers(random, schema)
    return (True, False) if schema["type"] == "boolean" else _strings(path)


def _array(random: Random, schema: Json, *, often: float, path: str) -> list[Any]:
    least = schema.get("minItems", 0)
    values = [
        _value(random, schema["items"], often=often, path=f"{path}[]")
        for _ in range(random.choice([least, least + 1, min(schema.get("maxItems", 4), 4)]))
    ]
    return [value for place, value in enumerate(values) if value not in values[:place]]


def _integers(random: Random, schema: Json) -> tuple[int, ...]:
    least, most = schema.get("minimum", 0), schema.get("maximum", 2**31 - 1)
    return (least, least, least + 1, most, most - 1, random.randint(least, min(most, least + 16)))


def _strings(path: str) -> tuple[object, ...]:
    parts = path.split(".")
    for words in range(1, 3):
        found = _STRINGS.get(".".join(parts[-words:]))
        if found:
            return found
    return _NAMES


def _facts(random: Random, *, kind: str | None = None) -> ModelFacts:
    chosen = kind or random.choice(["Model", "EagleHead", "Eagle3Head", "MedusaHeads", "ReDrafterHead"])
    heads = chosen == "MedusaHeads"
    usual = random.random() < 0.75
    changes: Json = {
        "kind": chosen,
        "architecture": random.choice(
            ["LlamaForCausalLM", "Qwen2ForCausalLM", "OPTForCausalLM", "MambaForCausalLM", "DeepseekV3ForCausalLM"]
        ),
        "layers": random.choice([1, 16, 80]),
        "next_token_layers": random.choice([None, 1]),
        "medusa_heads": random.choice([1, 4, 5]) if heads else None,
        "declared_base": random.choice(["", "lmsys/vicuna-7b-v1.3", "/data/model"]),
        "weight_bytes": random.choice([0, 2**20, 2**30, 2**34, 2**46]),
        "commit": random.choice(["", "1" * 40]),
        "eos_token_ids": random.choice([[], [2], [128001, 128009]]),
        "bos_token_id": random.choice([None, 128000]),
    }
    if not usual:
        changes |= {
            "vocabulary_size": random.choice([1, 32000, 2**31 - 1]),
            "hidden_size": random.choice([1, 4096, 2**31 - 1]),
            "attention_heads": random.choice([1, 7, 64]),
            "key_value_heads": random.choice([1, 8, 64]),
            "context_length": random.choice([1, 8, 256, 2**31 - 1]),
            "tokenizer_digest": random.choice(["", "ab" * 32]),
            "data_type": random.choice(["float16", "float32", "fp8", ""]),
            "quantization": random.choice(["", "fp8"]),
            "latent_size": random.choice([None, 576]),
            "full_attention_layers": random.choice([None, 1]),
            "model_type": random.choice(["", "llama", "mamba"]),
        }
    return facts(**changes)


def _past_a_bound(random: Random) -> tuple[Json, str]:
    spec = copy.deepcopy(_spec(random))
    places = [*_bounded(spec, spec_schema(), ())]
    steps, value = random.choice(places)
    inside: Any = spec
    for step in steps[:-1]:
        inside = inside[step]
    inside[steps[-1]] = value
    return spec, "spec" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _bounded(value: Any, schema: Json, steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], object]]:
    """Where a spec holds something bounded, and something past that bound."""
    if isinstance(value, dict) and "properties" in schema:
        for name, part in value.items():
            yield from _bounded(part, schema["properties"][name], (*steps, name))
        yield (*steps, "unknownField"), 1
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _bounded(part, schema["items"], (*steps, place))
        if "maxItems" in schema and value and steps[-1] not in ("draftDevices", "targetDevices"):
            yield steps, value[:1] * (schema["maxItems"] + 1)
    elif "enum" in schema:
        yield steps, UNICODE
    elif schema.get("type") == "integer" and "maximum" in schema:
        yield from ((steps, past) for past in (schema["minimum"] - 1, schema["maximum"] + 1, 2**70, "1", 0.5))
    elif schema.get("type") == "string" and "maxLength" in schema:
        yield from ((steps, past) for past in ("a" * (schema["maxLength"] + 1), 7, ["a"]))
        if not str(steps[-1]).startswith("value") and "annotations" not in steps:
            yield steps, UNICODE
