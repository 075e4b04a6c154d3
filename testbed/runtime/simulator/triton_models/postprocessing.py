"""The simulator's postprocessing: token ids to text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it

from testbed.runtime.inference.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TritonPythonModel:
    """The tokenizer's second half."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the tokenizer of `tokenizer_dir`."""
        parameters = json.loads(args["model_config"])["parameters"]
        self._tokenizer = TextTokenizer.load(Path(parameters["tokenizer_dir"]["string_value"]))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Decode [batch, beam, length] token ids."""
        return [self._decode(request) for request in requests]

    def _decode(self, request: Any) -> Any:
        tokens = pb_utils.get_input_tensor_by_name(request, "TOKENS_BATCH").as_numpy()
        lengths = pb_utils.get_input_tensor_by_name(request, "SEQUENCE_LENGTH").as_numpy()
        texts = [
            self._tokenizer.decode(beam[:length].tolist()).encode()
            for beams, beam_lengths in zip(tokens, lengths, strict=True)
            for beam, length in zip(beams, beam_lengths, strict=True)
        ]
        output = np.asarray([texts], dtype=np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", output)])
