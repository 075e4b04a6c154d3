"""Triton's generate extension: how a model that may answer in pieces is asked over HTTP, where `infer` refuses it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import numpy as np
from tritonclient.utils import InferenceServerException

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_REFUSAL = 500


@dataclass(frozen=True)
class GeneratedAnswer:
    """An answer of the generate extension, read as one of `infer` is."""

    values: Mapping[str, Any]

    def as_numpy(self, name: str) -> Any:
        """The output as an array of its elements; None if the answer has none of that name."""
        if name not in self.values:
            return None
        value = self.values[name]
        return np.array(value if isinstance(value, list) else [value], dtype=np.object_)


async def generate(address: str, model: str, body: Mapping[str, Any]) -> GeneratedAnswer:
    """Ask for one whole answer.

    Args:
        address: host and port.
        body: the inputs, by name.

    Raises:
        InferenceServerException: the server refuses, with the HTTP status.
        TypeError: the answer is no JSON object.
        aiohttp.ClientError: the server can't be reached.
    """
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://{address}/v2/models/{model}/generate", json=dict(body)) as response,
    ):
        if response.status != HTTPStatus.OK:
            raise InferenceServerException((await response.text())[:_LONGEST_REFUSAL], status=str(response.status))
        values = await response.json(content_type=None)
    if not isinstance(values, dict):
        raise TypeError(f"generate answered {type(values).__name__}, not an object")
    return GeneratedAnswer(values)
