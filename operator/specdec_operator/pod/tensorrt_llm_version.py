"""The TensorRT-LLM of the image, found without importing it: an import needs a GPU's driver."""

import importlib.util
import re
from pathlib import Path

from specdec_operator.pod.distribution import distribution_version
from specdec_operator.pod.errors import ProgramFailure


def require_tensorrt_llm(wanted: str) -> None:
    """Refuse an image that holds another TensorRT-LLM. An empty version accepts any image.

    Raises:
        ProgramFailure: TensorRTLLMVersionMismatch.
    """
    found = installed_version() if wanted else wanted
    if found != wanted:
        raise ProgramFailure(
            "TensorRTLLMVersionMismatch",
            f"the image holds {f'TensorRT-LLM {found}' if found else 'no TensorRT-LLM'}, expected {wanted}; declare "
            "the release that the image really is, in spec.runtime.release",
        )


def installed_version() -> str:
    """The installed version; empty if there is none."""
    specification = importlib.util.find_spec("tensorrt_llm")
    for location in (specification.submodule_search_locations or ()) if specification else ():
        version_file = Path(location) / "version.py"
        if version_file.is_file():
            match = re.search(r"""^__version__\s*=\s*["']([^"']+)["']""", version_file.read_text("utf-8"), re.MULTILINE)
            if match:
                return match.group(1)
    return distribution_version("tensorrt_llm")
