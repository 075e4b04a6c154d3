"""Read the facts of a directory that a claim already holds: a model, or texts of a quantizer."""

import sys
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.inputs import InspectInput
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.pod.model_files import content_digest, list_files
from specdec_operator.pod.program import run

_DATA_SET = "DataSet"


def inspect_model(given: InspectInput) -> dict[str, Any]:
    """The model's facts or the data set's, as the program's result.

    Raises:
        ProgramFailure: the directory holds no supported model, or nothing at all.
    """
    directory = Path(given.directory)
    if given.content == _DATA_SET:
        return {"dataSet": {"contentDigest": _texts(directory)}}
    return {"facts": read_facts(directory).to_wire()}


def _texts(directory: Path) -> str:
    if not list_files(directory):
        raise ProgramFailure(
            "DataSetEmpty",
            f"{directory} holds no files; quantization.calibration.source.persistentVolumeClaim must name the "
            "directory of a data set",
        )
    return content_digest(directory)


if __name__ == "__main__":
    sys.exit(run(InspectInput, inspect_model))
