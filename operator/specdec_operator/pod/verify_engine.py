"""Check a published engine without a GPU: manifest, sizes, ranks, config.json."""

import sys
from pathlib import Path
from typing import Any

from specdec_operator.pod.engine_config import require_engine
from specdec_operator.pod.inputs import VerifyEngineInput
from specdec_operator.pod.program import run


def verify_engine(given: VerifyEngineInput) -> dict[str, Any]:
    """The engine's digest, bytes and ranks.

    Raises:
        ProgramFailure: EngineMissing or EngineDamaged.
    """
    manifest = require_engine(Path(given.directory), ranks=given.ranks, digest=given.digest)
    return {"digest": manifest.digest(), "bytes": manifest.total_bytes(), "ranks": given.ranks}


if __name__ == "__main__":
    sys.exit(run(VerifyEngineInput, verify_engine))
