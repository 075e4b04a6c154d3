"""Read the facts of a model directory that a claim already holds."""

import sys
from pathlib import Path
from typing import Any

from specdec_operator.pod.inputs import InspectInput
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.pod.program import run


def inspect_model(given: InspectInput) -> dict[str, Any]:
    """The model's facts, as the program's result.

    Raises:
        ProgramFailure: the directory holds no supported model.
    """
    return {"facts": read_facts(Path(given.directory)).to_wire()}


if __name__ == "__main__":
    sys.exit(run(InspectInput, inspect_model))
