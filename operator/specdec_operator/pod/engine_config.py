"""An engine directory: its manifest, its ranks, and what its config.json says."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.manifest import Manifest, file_sha256, require_whole

ENGINE = "Engine"
_RANK_FILE = re.compile(r"rank(\d+)\.engine")
_MODES = {
    1: "none",
    2: "draft_tokens_external",
    4: "medusa",
    8: "lookahead_decoding",
    16: "explicit_draft_tokens",
    32: "eagle",
}
_DATA_TYPES = {"TYPE_FP32": "float32", "TYPE_FP16": "float16", "fp32": "float32", "fp16": "float16"}


@dataclass(frozen=True)
class EngineConfig:
    """What TensorRT-LLM wrote into an engine's config.json; empty or 0 where it says nothing.

    Attributes:
        speculative_mode: trtllm-build's word, or none.
        draft_tokens: the most tokens that may be drafted for one step.
        batch: the most requests in one batch.
        sequence_length: the most tokens of a request, drafted ones included.
        tensor: ranks that share each layer.
        pipeline: groups of ranks that share the layers among them.
    """

    tensorrt_llm_version: str
    logits_data_type: str
    speculative_mode: str = ""
    draft_tokens: int = 0
    batch: int = 0
    tensor: int = 0
    pipeline: int = 0
    sequence_length: int = 0


def require_engine(directory: Path, *, ranks: int, digest: str) -> Manifest:
    """The manifest of a whole engine. No engine file is read, only its size.

    Args:
        directory: the published engine.
        ranks: engine files that it must have.
        digest: the manifest's digest; any if empty.

    Raises:
        ProgramFailure: EngineMissing or EngineDamaged.
    """
    manifest = require_whole(directory, kind=ENGINE)
    if digest not in ("", manifest.digest()):
        raise _damaged(directory, f"its digest is {manifest.digest()}, expected {digest}")
    missing = missing_ranks(directory, ranks)
    if missing:
        raise _damaged(directory, f"{', '.join(missing)} missing of {ranks} ranks")
    for file in manifest.files:
        if file.path == "config.json" and file_sha256(directory / file.path) != file.sha256:
            raise _damaged(directory, "config.json has been changed")
    read_engine_config(directory)
    return manifest


def missing_ranks(directory: Path, ranks: int) -> list[str]:
    """Names of the engine files and config.json that aren't there; `rankN.engine` too many are named as well."""
    wanted = {f"rank{rank}.engine" for rank in range(ranks)} | {"config.json"}
    present = {
        path.name for path in directory.iterdir() if _RANK_FILE.fullmatch(path.name) or path.name == "config.json"
    }
    return sorted(wanted - present) + sorted(f"{name} (too many)" for name in present - wanted)


def read_engine_config(directory: Path) -> EngineConfig:
    """Read an engine's config.json.

    Raises:
        ProgramFailure: EngineDamaged, it is no JSON object.
    """
    try:
        value = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        return _config(value)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise _damaged(directory, f"config.json can't be read: {error}") from error


def _config(value: dict[str, Any]) -> EngineConfig:
    pretrained = value.get("pretrained_config") or {}
    build = value.get("build_config") or {}
    mapping = pretrained.get("mapping") or {}
    mode = build.get("speculative_decoding_mode")
    return EngineConfig(
        tensorrt_llm_version=_text(value, "version"),
        logits_data_type=normal_data_type(_text(pretrained, "logits_dtype")),
        # TensorRT-LLM writes the number of the mode's flag
        speculative_mode=mode.lower()
        if isinstance(mode, str)
        else _MODES.get(_number(build, "speculative_decoding_mode"), ""),
        draft_tokens=max(_number(build, "max_draft_len"), _number(pretrained, "max_draft_len")),
        batch=_number(build, "max_batch_size"),
        sequence_length=_number(build, "max_seq_len"),
        tensor=_number(mapping, "tp_size"),
        pipeline=_number(mapping, "pp_size"),
    )


def normal_data_type(name: str) -> str:
    """TensorRT-LLM's name of a logits data type, also from Triton's."""
    return _DATA_TYPES.get(name, name)


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _number(value: dict[str, Any], key: str) -> int:
    found = value.get(key)
    return found if isinstance(found, int) else 0


def _damaged(directory: Path, what: str) -> ProgramFailure:
    return ProgramFailure("EngineDamaged", f"{directory}: {what}; delete the directory and build again")
