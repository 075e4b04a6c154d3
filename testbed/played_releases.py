"""The rows of the operator's capability table that the simulator images play."""

from __future__ import annotations

from typing import Any, Final

from testbed.runtime.image_config import PLAYED, Flavour, PlayedRelease

_LLM_API_METHODS: Final = ["Eagle3", "DraftTarget", "NGram", "MTP", "None"]
_VLLM_METHODS: Final = ["Eagle", "Eagle3", "DraftTarget", "Medusa", "NGram", "MTP", "None"]
_SOURCE: Final = "the testbed's simulator images"
REPORTING: Final = "26.02-simulator-reporting"
"""The row of a release whose answers carry true counts, which the image gives with SIMULATOR_REPORT_ACCEPTANCE=1."""


def release_name(triton: str) -> str:
    """Return the name of the row that plays a release of Triton."""
    return f"{triton}-simulator"


def default_parts() -> dict[str, Any]:
    """Return what the default row says of the backends without engines."""
    return {"LLMAPI": {"methods": _LLM_API_METHODS}, "VLLM": _vllm(PLAYED[0].release)}


def other_releases() -> list[dict[str, Any]]:
    """Return the rows beside the default one: other spellings and counts of the LLM API, an old vLLM and a new one."""
    newer = _image("26.04", Flavour.TENSORRT_LLM)
    reporting = {
        "name": REPORTING,
        "image": PLAYED[0].reference,
        "tensorrtLLM": PLAYED[0].version,
        "LLMAPI": {"methods": _LLM_API_METHODS},
        "perRequestAcceptance": True,
    }
    llm_api = {
        "name": release_name("26.04"),
        "image": newer.reference,
        "tensorrtLLM": newer.version,
        "LLMAPI": {"methods": _LLM_API_METHODS, "draftTargetDecodingType": "Draft_Target"},
    }
    old: dict[str, Any] = {
        "methods": ["Eagle", "DraftTarget", "Medusa", "NGram", "MTP", "None"],
        "configuration": "Flat",
        "wholePromptMethods": ["Eagle"],
    }
    rows: list[dict[str, Any]] = [
        llm_api,
        reporting,
        {"name": release_name("25.04"), "VLLM": _vllm("25.04", **old)},
        {"name": release_name("26.08"), "VLLM": _vllm("26.08", publishedMedusaHeads=True)},
    ]
    return [{**row, "simulator": True, "source": _SOURCE} for row in rows]


def _vllm(triton: str, **fields: Any) -> dict[str, Any]:
    image = _image(triton, Flavour.VLLM)
    return {"image": image.reference, "version": image.version, "methods": _VLLM_METHODS, **fields}


def _image(triton: str, flavour: Flavour) -> PlayedRelease:
    return next(each for each in PLAYED if (each.release, each.flavour) == (triton, flavour))
