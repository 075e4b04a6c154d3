"""Tensors as Triton's HTTP protocol carries them, by tritonclient's own reading of its binary extension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tritonclient.http import InferenceServerClient, InferInput
from tritonclient.utils import triton_to_np_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable

Scalar = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """An input tensor.

    Attributes:
        name: the input's name.
        datatype: Triton's name: BYTES for text, INT32, FP32, BOOL, ...
        shape: its dimensions.
        values: its elements, row by row.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: tuple[Scalar, ...]


def encoded(tensors: tuple[Tensor, ...]) -> tuple[bytes, int]:
    """A request's body, and the length of its JSON part."""
    body, length = InferenceServerClient.generate_request_body([_input(tensor) for tensor in tensors])
    return body, len(body) if length is None else length


def decoded(body: bytes, *, json_length: str | None, names: Iterable[str]) -> dict[str, str]:
    """The first element of each output of these names that an answer has, as text.

    Whatever a decoder raises of a body that is none can come out: the caller knows whose body it is.

    Args:
        body: the answer.
        json_length: length of its JSON part as the server says it; None if all is JSON.
        names: the outputs' names.
    """
    result = InferenceServerClient.parse_response_body(body, header_length=json_length)
    arrays = {name: _array(result, name) for name in names if result.get_output(name) is not None}
    return {name: text(array.reshape(-1)[0]) for name, array in arrays.items() if array.size}


def _array(result: Any, name: str) -> Any:
    datatype = result.get_output(name)["datatype"]
    if triton_to_np_dtype(datatype) is None:
        raise ValueError("a datatype that Triton does not have")
    return result.as_numpy(name)


def text(element: Any) -> str:
    """An element as text."""
    return element.decode("utf-8", errors="replace") if isinstance(element, bytes) else str(element)


def _input(tensor: Tensor) -> Any:
    values = [value.encode() if isinstance(value, str) else value for value in tensor.values]
    array = np.array(values, dtype=triton_to_np_dtype(tensor.datatype)).reshape(tensor.shape)
    infer_input = InferInput(tensor.name, list(tensor.shape), tensor.datatype)
    infer_input.set_data_from_numpy(array)
    return infer_input
