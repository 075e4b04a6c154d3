"""Models, facts and what they resolve to, for the tests of the pure rooms."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel, parse
from specdec_operator.planning.acquire import acquire
from specdec_operator.planning.admission import admit
from specdec_operator.planning.calibration import acquire_texts
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.plan import ServingPlan, plan_serving
from specdec_operator.runtimes.table import CapabilityTable, load_table

if TYPE_CHECKING:
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.planning.resolution import Resolution

Json = dict[str, Any]
DATA_SET = DataSetFacts(content_digest="de" * 32)
PRODUCT = "NVIDIA-H100-80GB-HBM3"
CONFIGURATION = OperatorConfiguration()
TABLE: CapabilityTable = load_table()

_HUB = {"huggingFace": {"repository": "someone/target"}}
_ENGINES: Json = {
    "runtime": {"backend": "TensorRTEngine", "release": "26.04"},
    "engine": {"maxBatchSize": 4, "maxInputLength": 2048, "maxSequenceLength": 3072},
    "placement": {"gpu": {"product": PRODUCT}},
    "storage": {"claim": {"size": "100Gi"}},
}
EAGLE3: Json = {
    "target": {"source": _HUB},
    "draft": {"source": {"huggingFace": {"repository": "someone/head"}}},
    "speculation": {"method": "Eagle3"},
    "storage": {"claim": {"size": "100Gi"}},
}
BASELINE: Json = {
    "target": {"source": _HUB},
    "speculation": {"method": "None"},
    "storage": {"claim": {"size": "100Gi"}},
}
BASELINE_VLLM: Json = {**BASELINE, "runtime": {"backend": "VLLM"}}
BASELINE_ENGINE: Json = {**BASELINE, **_ENGINES}
DRAFT_TARGET: Json = {
    **_ENGINES,
    "target": {"source": _HUB, "parallelism": {"tensor": 4}},
    "draft": {"source": {"huggingFace": {"repository": "someone/draft"}}},
    "speculation": {"method": "DraftTarget", "maxDraftTokens": 10},
    "placement": {"gpu": {"product": PRODUCT}, "draftDevices": [0], "targetDevices": [1, 2, 3, 4]},
}
EAGLE3_VLLM: Json = {**EAGLE3, "runtime": {"backend": "VLLM"}}
NGRAM: Json = {**BASELINE, "speculation": {"method": "NGram"}}
DRAFT_TARGET_LLM_API: Json = {**EAGLE3, "runtime": {"backend": "LLMAPI"}, "speculation": {"method": "DraftTarget"}}
ALL = {
    "eagle3": EAGLE3,
    "eagle3-vllm": EAGLE3_VLLM,
    "n-gram": NGRAM,
    "baseline": BASELINE,
    "baseline-vllm": BASELINE_VLLM,
    "baseline-engine": BASELINE_ENGINE,
    "draft-target": DRAFT_TARGET,
    "draft-target-llm-api": DRAFT_TARGET_LLM_API,
}


def model(spec: Json, *, name: str = "llama", **changes: Any) -> SpeculativeModel:
    """A model of a spec.

    Args:
        changes: Values by path, with `__` for each dot and in the names of the API, as in `engine__maxBatchSize=4`;
            None removes a field.
    """
    document = copy.deepcopy(spec)
    for path, value in changes.items():
        *above, last = path.split("__")
        inside = document
        for step in above:
            inside = inside.setdefault(step, {})
        if value is None:
            inside.pop(last, None)
        else:
            inside[last] = copy.deepcopy(value)
    metadata = {"name": name, "namespace": "team", "uid": "11111111-2222-3333-4444-555555555555"}
    return parse(
        {"apiVersion": "specdec.dev/v1alpha1", "kind": "SpeculativeModel", "metadata": metadata, "spec": document}
    )


def facts(**changes: Any) -> ModelFacts:
    """Facts of a whole model, shaped like Llama 3.1 8B."""
    shape: Json = {
        "architecture": "LlamaForCausalLM",
        "vocabulary_size": 128256,
        "tokenizer_digest": "ab" * 32,
        "bos_token_id": 128000,
        "eos_token_ids": [128001, 128009],
        "layers": 32,
        "hidden_size": 4096,
        "attention_heads": 32,
        "key_value_heads": 8,
        "head_size": 128,
        "data_type": "bfloat16",
        "context_length": 131072,
        "weight_bytes": 16_000_000_000,
        "commit": "1" * 40,
        "content_digest": "cd" * 32,
    }
    return ModelFacts.model_validate({**shape, **changes}, by_name=True)


def head(**changes: Any) -> ModelFacts:
    """Facts of an EAGLE-3 head for `facts()`."""
    shape = {
        "architecture": "LlamaForCausalLMEagle3",
        "draft_vocabulary_size": 32000,
        "tokenizer_digest": "",
        "layers": 1,
        "context_length": 2048,
        "weight_bytes": 850_000_000,
        "commit": "2" * 40,
    }
    return facts(**{**shape, **changes})


def facts_of(made: SpeculativeModel) -> dict[str, ModelFacts]:
    """Facts per role that fit a model's method."""
    if made.spec.draft is None:
        return {"target": facts()}
    draft = head() if made.spec.speculation.method == "Eagle3" else facts(layers=16, commit="2" * 40)
    return {"target": facts(), "draft": draft}


def resolution_of(made: SpeculativeModel) -> Resolution:
    return admit(made, table=TABLE, configuration=CONFIGURATION)


def models_of(made: SpeculativeModel) -> tuple[ArtifactRequest, ...]:
    return acquire(made.spec, resolution_of(made), configuration=CONFIGURATION)


def engines_of(
    made: SpeculativeModel, known: dict[str, ModelFacts] | None = None, *, data_sets: DataSetFacts | None = None
) -> tuple[ArtifactRequest, ...]:
    resolution = resolution_of(made)
    models = acquire(made.spec, resolution, configuration=CONFIGURATION)
    texts = acquire_texts(made.spec, resolution, configuration=CONFIGURATION)
    places = {request.role: request.yields for request in (*models, *texts) if request.yields}
    return plan_engines(
        made.spec,
        resolution,
        facts=known or facts_of(made),
        models=places,
        data_sets={request.role: data_sets or DATA_SET for request in texts},
    )


def plan_of(made: SpeculativeModel, known: dict[str, ModelFacts] | None = None) -> ServingPlan:
    engines = engines_of(made, known)
    return plan_serving(
        made.spec,
        resolution_of(made),
        facts=known or facts_of(made),
        models=models_of(made),
        engines=engines,
        engine_digests={engine.role: "ef" * 32 for engine in engines},
    )
