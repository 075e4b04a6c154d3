"""An engine directory that somebody else built: no manifest tells what it was."""

import hashlib
import json
from pathlib import Path

from specdec_operator.pod.engine_config import missing_ranks
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.manifest import file_sha256
from specdec_operator.pod.model_files import list_files


def require_prebuilt(directory: Path, *, ranks: int, digest: str = "") -> str:
    """The digest of a prebuilt engine: of file names, sizes and config.json. No engine file is read.

    Args:
        directory: the engine.
        ranks: engine files that it must have.
        digest: what it was when it was inspected; any if empty.

    Raises:
        ProgramFailure: EngineMissing, EngineIncomplete or EngineDamaged.
    """
    if not (directory / "config.json").is_file():
        raise ProgramFailure(
            "EngineMissing",
            f"{directory} holds no engine (no config.json); spec.engine.prebuilt must name the directory with "
            "config.json and the rankN.engine files",
        )
    missing = missing_ranks(directory, ranks)
    if missing:
        raise ProgramFailure(
            "EngineIncomplete",
            f"{directory} doesn't have {ranks} ranks: {', '.join(missing)}; parallelism in the spec must be what the "
            "engine was built with",
        )
    found = _digest(directory)
    if digest not in ("", found):
        raise ProgramFailure(
            "EngineDamaged", f"{directory} has changed since it was inspected; it is looked at again before it serves"
        )
    return found


def _digest(directory: Path) -> str:
    entries = [[path, size] for path, size in sorted(list_files(directory).items())]
    text = json.dumps([entries, file_sha256(directory / "config.json")], separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
