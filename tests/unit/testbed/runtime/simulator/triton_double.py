"""A double of Triton's python backend library: requests to other models go to functions."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Tensors = Mapping[str, "NDArray[Any]"]
Models = dict[str, Callable[[Tensors], Tensors]]


class Tensor:
    def __init__(self, name: str, array: NDArray[Any]) -> None:
        self._name = name
        self._array = array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> NDArray[Any]:
        return self._array


class TritonError:
    def __init__(self, message: str) -> None:
        self._message = message

    def message(self) -> str:
        return self._message


class InferenceResponse:
    def __init__(self, output_tensors: Sequence[Tensor] = (), error: TritonError | None = None) -> None:
        self._tensors = output_tensors
        self._error = error

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> TritonError | None:
        return self._error

    def output_tensors(self) -> Sequence[Tensor]:
        return self._tensors


def library(models: Models, log: list[str]) -> types.ModuleType:
    """Return what `import triton_python_backend_utils` shall give."""

    class InferenceRequest:
        def __init__(self, *, model_name: str, inputs: Sequence[Tensor], requested_output_names: list[str]) -> None:
            self._model = model_name
            self._inputs = {tensor.name(): tensor.as_numpy() for tensor in inputs}
            self._wanted = requested_output_names

        def exec(self) -> InferenceResponse:
            answer = models[self._model](self._inputs)
            return InferenceResponse([Tensor(name, answer[name]) for name in self._wanted])

    class Logger:
        log_info = staticmethod(log.append)
        log_error = staticmethod(log.append)

    def get_input_tensor_by_name(request: Tensors, name: str) -> Tensor | None:
        return Tensor(name, request[name]) if name in request else None

    module = types.ModuleType("triton_python_backend_utils")
    vars(module).update(
        Tensor=Tensor,
        TritonError=TritonError,
        TritonModelException=type("TritonModelException", (Exception,), {}),
        InferenceRequest=InferenceRequest,
        InferenceResponse=InferenceResponse,
        Logger=Logger,
        get_input_tensor_by_name=get_input_tensor_by_name,
    )
    return module
