"""The vLLM of the image, read from its distribution's metadata: an import would look for a GPU."""

from specdec_operator.pod.distribution import distribution_version
from specdec_operator.pod.errors import ProgramFailure


def require_vllm(wanted: str) -> None:
    """Refuse an image that holds another vLLM. An empty version accepts any image.

    Raises:
        ProgramFailure: VLLMVersionMismatch.
    """
    if not wanted:
        return
    found = distribution_version("vllm")
    if _public(found) != _public(wanted):
        raise ProgramFailure(
            "VLLMVersionMismatch",
            f"the image holds {f'vLLM {found}' if found else 'no vLLM'}, expected {wanted}; declare the release that "
            "the image really is, in spec.runtime.release",
        )


def _public(version: str) -> str:
    # NVIDIA's builds add theirs, as in 0.13.0+f2b0ff83.nv26.01
    return version.partition("+")[0]
