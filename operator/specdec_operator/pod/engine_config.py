"""A published engine: its manifest, its ranks, and what its config.json says."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.manifest import Manifest, file_sha256, require_whole

ENGINE = "Engine"
_RANK_FILE = re.compile(r"rank(\d+)\.engine")
_DATA_TYPES = {"TYPE_FP32": "float32", "TYPE_FP16": "float16", "fp32": "float32", "fp16": "float16"}


@dataclass(frozen=True)
class EngineConfig:
    """What TensorRT-LLM wrote into an engine's config.json; empty where it says nothing."""

    tensorrt_llm_version: str
    logits_data_type: str


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
        pretrained = value.get("pretrained_config") or {}
        return EngineConfig(_text(value, "version"), normal_data_type(_text(pretrained, "logits_dtype")))
    except (OSError, ValueError, AttributeError) as error:
        raise _damaged(directory, f"config.json can't be read: {error}") from error


def normal_data_type(name: str) -> str:
    """TensorRT-LLM's name of a logits data type, also from Triton's."""
    return _DATA_TYPES.get(name, name)


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _damaged(directory: Path, what: str) -> ProgramFailure:
    return ProgramFailure("EngineDamaged", f"{directory}: {what}; delete the directory and build again")
