"""The simulator's preprocessing: text to token ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it

from testbed.runtime.inference.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


class TritonPythonModel:
    """The tokenizer's first half."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the tokenizer of `tokenizer_dir`."""
        parameters = json.loads(args["model_config"])["parameters"]
        self._tokenizer = TextTokenizer.load(Path(parameters["tokenizer_dir"]["string_value"]))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Encode one prompt per request."""
        return [self._encode(request) for request in requests]

    def _encode(self, request: Any) -> Any:
        query = _read(request, "QUERY")
        if query.size != 1:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("[simulator] one prompt per request"))
        tokens = np.asarray([self._tokenizer.encode(query.flat[0].decode())], dtype=np.int32)
        end = self._mark(request, "END_ID")
        tensors = {
            "INPUT_ID": tokens,
            "REQUEST_INPUT_LEN": np.asarray([[tokens.shape[1]]], dtype=np.int32),
            "DECODER_INPUT_ID": np.zeros((1, 1), dtype=np.int32),
            "REQUEST_DECODER_INPUT_LEN": np.ones((1, 1), dtype=np.int32),
            "BAD_WORDS_IDS": np.zeros((1, 2, 0), dtype=np.int32),
            "STOP_WORDS_IDS": np.zeros((1, 2, 0), dtype=np.int32),
            "EMBEDDING_BIAS": np.zeros((1, 0), dtype=np.float32),
            "REQUEST_OUTPUT_LEN": _read(request, "REQUEST_OUTPUT_LEN").astype(np.int32),
            "OUT_END_ID": end,
            "OUT_PAD_ID": self._mark(request, "PAD_ID"),
        }
        return pb_utils.InferenceResponse([pb_utils.Tensor(*item) for item in tensors.items()])

    def _mark(self, request: Any, name: str) -> NDArray[np.int32]:
        given = _read(request, name)
        return np.asarray([[self._tokenizer.end_id]], dtype=np.int32) if given is None else given.astype(np.int32)


def _read(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()
