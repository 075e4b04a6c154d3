"""Inputs and outputs of Triton's vLLM backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it

from testbed.runtime.simulator.contracts import declared
from testbed.runtime.simulator.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FLAGS: Final = (
    "stream",
    "exclude_input_in_output",
    "return_finish_reason",
    "return_cumulative_logprob",
    "return_logprobs",
    "return_num_input_tokens",
    "return_num_output_tokens",
)
OUTPUTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"name": "text_output", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "finish_reason", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "cumulative_logprob", "data_type": "TYPE_FP32", "dims": [-1]},
    {"name": "logprobs", "data_type": "TYPE_STRING", "dims": [-1]},
    {"name": "num_input_tokens", "data_type": "TYPE_UINT32", "dims": [1]},
    {"name": "num_output_tokens", "data_type": "TYPE_UINT32", "dims": [-1]},
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a request wants.

    Attributes:
        prompt: plain text.
        sampling: JSON of sampling parameters, of the tensor or of the request's own parameters.
        stream: a response per step.
        prepend_input: whether the answer begins with the prompt.
        returned: which further outputs are wanted, by the name of their input.
    """

    prompt: str
    sampling: str
    stream: bool
    prepend_input: bool
    returned: frozenset[str]


def inputs(environment: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The inputs that the played release's backend adds to a model's configuration.

    Raises:
        ParameterError: nothing is known of that release.
    """
    known = declared("vllm/backend.yaml", environment)
    for name, kind in known["inputs"].items():
        dims, optional = [-1] if name == "image" else [1], name not in known["required"]
        yield {"name": name, "data_type": f"TYPE_{kind}", "dims": dims, "optional": optional}


def parse_request(request: Any) -> Asked:
    """Read a request's tensors.

    Raises:
        RequestError: they contradict each other.
    """
    flags = {name: _scalar(request, name) for name in _FLAGS}
    stream = bool(flags["stream"])
    excluded = flags["exclude_input_in_output"]
    if stream and excluded is not None and not excluded:
        raise RequestError("When streaming, `exclude_input_in_output` = False is not allowed.")
    sampling = _scalar(request, "sampling_parameters")
    return Asked(
        prompt=_text(_scalar(request, "text_input")),
        sampling=_text(sampling) if sampling is not None else request.parameters(),
        stream=stream,
        prepend_input=not stream and not excluded,
        returned=frozenset(name for name, value in flags.items() if value and name.startswith("return_")),
    )


def response(outputs: Mapping[str, Any], asked: Asked) -> Any:
    """Return a response with the text and what else was asked for."""
    tensors = []
    for output in OUTPUTS:
        name = str(output["name"])
        if name in outputs and (name == "text_output" or f"return_{name}" in asked.returned):
            tensors.append(pb_utils.Tensor(name, _array(outputs[name], str(output["data_type"]))))
    return pb_utils.InferenceResponse(tensors)


def refusal(message: str, code: Any = None) -> Any:
    """Return an error response."""
    error = pb_utils.TritonError(message) if code is None else pb_utils.TritonError(message, code)
    return pb_utils.InferenceResponse(error=error)


def _array(value: Any, data_type: str) -> Any:
    if data_type == "TYPE_STRING":
        return np.asarray([str(value).encode()], dtype=np.object_)
    return np.asarray([value], dtype=np.float32 if data_type == "TYPE_FP32" else np.uint32)


def _scalar(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy().item(0)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
