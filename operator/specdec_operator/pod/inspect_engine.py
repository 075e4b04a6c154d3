"""Look at an engine that somebody else built, before anything asks for a GPU."""

import sys
from pathlib import Path
from typing import Any

from specdec_operator.pod.engine_config import read_engine_config
from specdec_operator.pod.engine_fit import require_fit
from specdec_operator.pod.inputs import InspectEngineInput
from specdec_operator.pod.model_files import list_files
from specdec_operator.pod.prebuilt_engine import require_prebuilt
from specdec_operator.pod.program import run


def inspect_engine(given: InspectEngineInput) -> dict[str, Any]:
    """The engine's digest, bytes and ranks.

    Raises:
        ProgramFailure: it is no whole engine, or not what the spec needs.
    """
    engine = given.engine
    directory = Path(engine.directory)
    digest = require_prebuilt(directory, ranks=engine.ranks, digest=engine.digest)
    require_fit(read_engine_config(directory), engine, tensorrt_llm_version=given.tensorrt_llm_version)
    return {"digest": digest, "bytes": sum(list_files(directory).values()), "ranks": engine.ranks}


if __name__ == "__main__":
    sys.exit(run(InspectEngineInput, inspect_engine))
