"""The engine backend's model repository around the engines: the image's templates, each with every variable's value.

Each variable of a template has a value here, or is declared to stay empty; the assemble program refuses one that it
does not find in either list. Variables that only some releases' templates have are optional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.pod.inputs import ModelTemplate
from specdec_operator.runtimes.serving import ENGINE_DIRECTORIES, MODEL_DIRECTORIES, ServingRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.runtimes.table import EngineSupport

TARGET, DRAFT, BLS, ENSEMBLE = "tensorrt_llm", "tensorrt_llm_draft", "tensorrt_llm_bls", "ensemble"
_LOGITS = {"float32": "TYPE_FP32", "float16": "TYPE_FP16"}


def ensemble(request: ServingRequest, support: EngineSupport) -> ModelTemplate:
    """The model that calls preprocessing, one engine and postprocessing in turn."""
    return template(support, ENSEMBLE, values={**batch(request), **logits(request)})


def business_logic(request: ServingRequest, support: EngineSupport) -> ModelTemplate:
    """The model that calls the others from a program (Triton's business logic scripting).

    It lets a draft propose and its target verify, and accumulates the tokens of a streamed answer.
    """
    drafts = request.method == "DraftTarget"
    return template(
        support,
        BLS,
        values={
            **batch(request),
            **logits(request),
            "decoupled_mode": "true" if request.serving.streaming else "false",
            "bls_instance_count": str(request.serving.instances.business_logic or request.batch),
            "accumulate_tokens": "true" if request.serving.accumulate_tokens else "false",
            "tensorrt_llm_model_name": TARGET,
            **({"tensorrt_llm_draft_model_name": DRAFT} if drafts else {}),
        },
        optional={"prompt_embedding_table_data_type": "TYPE_FP16"},
        unset=("multimodal_encoders_name", *(() if drafts else ("tensorrt_llm_draft_model_name",))),
    )


def tokenizing(request: ServingRequest, support: EngineSupport) -> tuple[ModelTemplate, ModelTemplate]:
    """The models that turn text into tokens and back."""
    return _preprocessing(request, support), _postprocessing(request, support)


def _preprocessing(request: ServingRequest, support: EngineSupport) -> ModelTemplate:
    return template(
        support,
        "preprocessing",
        values={
            **batch(request),
            "tokenizer_dir": MODEL_DIRECTORIES["target"],
            "preprocessing_instance_count": _instances(request, request.serving.instances.preprocessing),
            "add_special_tokens": _word(request.serving.tokenizer.add_special_tokens),
        },
        optional={"engine_dir": ENGINE_DIRECTORIES["target"], "tokenizer_type": "auto", **queue(request)},
        unset=("multimodal_model_path", "visual_model_path", "max_num_images", "hf_model_path"),
    )


def _postprocessing(request: ServingRequest, support: EngineSupport) -> ModelTemplate:
    return template(
        support,
        "postprocessing",
        values={
            **batch(request),
            "tokenizer_dir": MODEL_DIRECTORIES["target"],
            "postprocessing_instance_count": _instances(request, request.serving.instances.postprocessing),
            "skip_special_tokens": _word(request.serving.tokenizer.skip_special_tokens),
        },
        optional={"tokenizer_type": "auto"},
    )


def template(
    support: EngineSupport,
    name: str,
    *,
    values: Mapping[str, str],
    source: str | None = None,
    optional: Mapping[str, str] | None = None,
    unset: tuple[str, ...] = (),
    expected: Mapping[str, str] | None = None,
) -> ModelTemplate:
    """A model of the repository, made from the image's template of that name or of `source`."""
    return ModelTemplate(
        name=name,
        candidates=tuple(f"{root}/{source or name}" for root in support.templates),
        values=dict(values),
        optional_values=dict(optional or {}),
        unset=unset,
        expected_parameters=dict(expected or {}),
    )


def batch(request: ServingRequest) -> dict[str, str]:
    """The variable for the most requests that Triton hands over at once."""
    return {"triton_max_batch_size": str(request.batch)}


def logits(request: ServingRequest) -> dict[str, str]:
    """The variable for the type of logits: one for the whole repository."""
    return {"logits_datatype": _LOGITS[request.logits_data_type]}


def queue(request: ServingRequest) -> dict[str, str]:
    """The variables for the requests that wait."""
    return {
        "max_queue_delay_microseconds": str(request.serving.max_queue_delay_microseconds),
        "max_queue_size": str(request.serving.max_queue_size),
    }


def _instances(request: ServingRequest, declared: int | None) -> str:
    # A drafting request calls these models itself, one request per instance of the business logic.
    return str(declared or (request.batch if request.method == "DraftTarget" else 1))


def _word(flag: bool) -> str:  # noqa: FBT001 - one word for one flag
    return "true" if flag else "false"
