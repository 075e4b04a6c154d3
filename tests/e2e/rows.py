"""A model for each row of what is served, by backend: tiny models, one store per namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from testbed.played_releases import REPORTING, release_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.e2e.place import Place

Json = dict[str, Any]
# Many servers share one small machine: what they ask for must fit beside each other.
POD: Json = {
    "serverResources": {"cpu": "20m", "memory": "512Mi"},
    "jobResources": {"cpu": "20m", "memory": "256Mi"},
}
DRAFT_TOKENS: Final = 4


def entering(rows: Mapping[str, Json]) -> Callable[[Place], None]:
    """Return what makes a namespace and applies these rows in it."""

    def enter(place: Place) -> None:
        place.create_namespace()
        for name, spec in rows.items():
            place.apply_model(name, {"pod": POD, **spec})

    return enter


def _hub(repository: str) -> Json:
    return {"source": {"huggingFace": {"repository": f"specdec-testbed/{repository}"}}}


def _row(backend: str, method: str, *, draft: str = "", target: str = "tiny-llama", **fields: Any) -> Json:
    speculation: Json = {"method": method, **fields.pop("speculation", {})}
    drafted = {"draft": _hub(draft)} if draft else {}
    runtime = {"backend": backend, **fields.pop("runtime", {})}
    return {"target": _hub(target), **drafted, "speculation": speculation, "runtime": runtime, **fields}


def _served(backend: str, method: str, **fields: Any) -> Json:
    """Return a row of a backend without engines."""
    length = {} if method == "None" else {"maxDraftTokens": DRAFT_TOKENS}
    length |= fields.pop("speculation", {})
    return _row(backend, method, speculation=length, serving={"maxBatchSize": 1, **fields.pop("serving", {})}, **fields)


VLLM_ROWS: Mapping[str, Json] = {
    "baseline": _served("VLLM", "None"),
    "eagle": _served("VLLM", "Eagle", draft="tiny-llama-eagle"),
    "draft-model": _served("VLLM", "DraftTarget", draft="tiny-llama-draft"),
    "n-gram": _served("VLLM", "NGram", speculation={"nGram": {"minMatchingLength": 1, "maxMatchingLength": 2}}),
    "eagle3-open-ai": _served("VLLM", "Eagle3", draft="tiny-llama-eagle3", serving={"openAIFrontEnd": {}}),
    "flat-keys": _served("VLLM", "Eagle", draft="tiny-llama-eagle", runtime={"release": release_name("25.04")}),
}

LLM_API_ROWS: Mapping[str, Json] = {
    "draft-target": _served("LLMAPI", "DraftTarget", draft="tiny-llama-draft"),
    "other-spelling": _served(
        "LLMAPI", "DraftTarget", draft="tiny-llama-draft", runtime={"release": release_name("26.04")}
    ),
    "n-gram": _served("LLMAPI", "NGram", speculation={"nGram": {"maxMatchingLength": 2}}),
    "mtp": _served(
        "LLMAPI",
        "MTP",
        target="tiny-llama-mtp",
        speculation={"maxDraftTokens": 1},
        runtime={"release": release_name("26.04")},
    ),
    "reporting": _served(
        "LLMAPI",
        "Eagle3",
        draft="tiny-llama-eagle3",
        runtime={"release": REPORTING},
        pod={**POD, "environment": [{"name": "SIMULATOR_REPORT_ACCEPTANCE", "value": "1"}]},
    ),
}

LLM_API_REFUSED: Mapping[str, Json] = {
    "medusa": _row("LLMAPI", "Medusa", draft="tiny-llama-medusa"),
    "lookahead": _row("LLMAPI", "Lookahead"),
    "redrafter": _row("LLMAPI", "ReDrafter", draft="tiny-llama-redrafter"),
}

SMALL_ENGINE: Mapping[str, int] = {"maxBatchSize": 1, "maxInputLength": 64, "maxSequenceLength": 128}


def _engine(method: str, **fields: Any) -> Json:
    return _row("TensorRTEngine", method, engine={**SMALL_ENGINE, **fields.pop("engine", {})}, **fields)


def _pair(transfer: str, *, draft_devices: list[int], target_devices: list[int], **target: Any) -> Json:
    spec = _engine(
        "DraftTarget",
        draft="tiny-llama-draft",
        speculation={"maxDraftTokens": DRAFT_TOKENS, "draftTarget": {"logitsTransfer": transfer}},
        placement={"draftDevices": draft_devices, "targetDevices": target_devices},
    )
    return {**spec, "target": {**spec["target"], **target}}


ENGINE_ROWS: Mapping[str, Json] = {
    "eagle": _engine(
        "Eagle",
        draft="tiny-llama-eagle",
        speculation={"eagle": {"choices": {"paths": [[0, 0, 0], [0, 1], [1, 0]]}}},
    ),
    "medusa": _engine(
        "Medusa",
        draft="tiny-llama-medusa",
        speculation={"medusa": {"choices": {"paths": [[0, 0, 0], [0, 1], [1]]}}},
    ),
    "one-gpu": _pair("Disabled", draft_devices=[0], target_devices=[0], quantization={"format": "FP8"}),
    "own-gpus": _pair("Standard", draft_devices=[0], target_devices=[1, 2], parallelism={"tensor": 2}),
    "lookahead": _engine(
        "Lookahead",
        speculation={"lookahead": {"windowSize": 3, "nGramSize": 3, "verificationSetSize": 3}},
    ),
    "redrafter": _engine(
        "ReDrafter",
        draft="tiny-llama-redrafter",
        speculation={"reDrafter": {"beams": 2, "draftLengthPerBeam": 3}},
    ),
    "pipeline": {**_engine("None"), "target": {**_hub("tiny-llama"), "parallelism": {"pipeline": 2}}},
}

ENGINE_REFUSED: Mapping[str, Json] = {"eagle2": _row("TensorRTEngine", "Eagle2", draft="tiny-llama-eagle")}

PREBUILT: Json = _row(
    "TensorRTEngine",
    "None",
    engine={"prebuilt": {"target": {"claimName": "models", "subPath": "engine"}}},
    serving={"maxBatchSize": 2},
)
"""A row whose engine somebody else built: it is applied once the engine is there."""
