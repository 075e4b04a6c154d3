"""The simulator's LLM API model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it
import yaml

from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.llm import Completion, Sampling, SimulatedLLM
from testbed.runtime.simulator.llm_arguments import KnownKeys, parse_arguments
from testbed.runtime.simulator.release import LOG_PREFIX, TENSORRT_LLM_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_ALWAYS_ZERO = (
    "kv_cache_reused_block",
    "kv_cache_missed_block",
    "kv_cache_alloc_new_blocks",
    "kv_cache_alloc_total_blocks",
    "kv_cache_hit_rate",
    "arrival_time_ns",
    "first_scheduled_time_ns",
    "first_token_time_ns",
    "last_token_time_ns",
)


def _model_yaml() -> Any:
    # Joined, so that an absolute LLM_CONFIG_PATH replaces the place too.
    return yaml.safe_load(
        (Path(pb_utils.get_model_dir()) / os.environ.get("LLM_CONFIG_PATH", "model.yaml")).read_text()
    )


class TritonPythonModel:
    """A target, perhaps a draft, behind the LLM API's inputs and outputs."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Take batch size and transaction policy from model.yaml; not called with --disable-auto-complete-config."""
        triton = _model_yaml()["triton_config"]
        config.set_model_transaction_policy({"decoupled": bool(triton["decoupled"])})
        config.set_max_batch_size(int(triton["max_batch_size"]))
        return config

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the models that model.yaml names."""
        self._decoupled = pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))
        version = os.environ.get("SIMULATOR_TENSORRT_LLM_VERSION", TENSORRT_LLM_VERSION)
        arguments = parse_arguments(_model_yaml(), KnownKeys.read(version))
        _log(f"TensorRT-LLM {version} LLM API stand-in, args: {arguments}")
        self._llm = SimulatedLLM(arguments, os.environ)
        self._reports = os.environ.get("SIMULATOR_REPORT_ACCEPTANCE") == "1"

    def execute(self, requests: Sequence[Any]) -> list[Any] | None:
        """Answer requests one after the other."""
        if not self._decoupled:
            return [self._answer(request, None) for request in requests]
        for request in requests:
            sender = request.get_response_sender()
            response = self._answer(request, sender)
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def _answer(self, request: Any, sender: Any) -> Any:
        streaming = bool(_scalar(request, "streaming", default=False))
        try:
            completion = self._complete(request, sender if streaming else None, streaming=streaming)
        except RequestError as problem:
            message = f"Error generating request: {LOG_PREFIX} {problem}"
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(message))
        _log(f"tensorrt_llm: drafted={completion.drafted} accepted={completion.accepted}")
        tensors = _text("" if streaming else completion.text)
        if _scalar(request, "return_finish_reason", default=False):
            tensors["finish_reason"] = completion.finish_reason
        if _scalar(request, "sampling_param_return_perf_metrics", default=False):
            tensors |= self._metrics(completion)
        return _response(tensors)

    def _complete(self, request: Any, sender: Any, *, streaming: bool) -> Completion:
        if streaming and sender is None:
            raise RequestError("Streaming is only supported in decoupled mode.")
        emit = (lambda text: sender.send(_response(_text(text)))) if streaming else None
        return self._llm.complete(_prompt(request), _sampling(request), emit)

    def _metrics(self, completion: Completion) -> dict[str, str]:
        drafted, accepted = (completion.drafted, completion.accepted) if self._reports else (0, 0)
        rate = accepted / drafted if drafted else 0.0
        counts = {"acceptance_rate": rate, "total_accepted_draft_tokens": accepted, "total_draft_tokens": drafted}
        return {name: str(value) for name, value in counts.items()} | dict.fromkeys(_ALWAYS_ZERO, "0")


def _log(line: str) -> None:
    pb_utils.Logger.log_info(f"{LOG_PREFIX} {line}")


def _text(text: str) -> dict[str, str]:
    return {"text_output": text}


def _response(tensors: Mapping[str, str]) -> Any:
    # As the original, every output is a string, whatever config.pbtxt declares.
    arrays = [pb_utils.Tensor(name, np.asarray([text.encode()], dtype=np.object_)) for name, text in tensors.items()]
    return pb_utils.InferenceResponse(arrays)


def _scalar(request: Any, name: str, *, default: Any) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        return default
    values = tensor.as_numpy()
    if values.size != 1:
        raise pb_utils.TritonModelException(f"Expected a scalar tensor for tensor {name}")
    return values.item(0)


def _prompt(request: Any) -> str:
    text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()
    if text.ndim > 1:
        raise RequestError("The current implementation only supports text_input being a 1D tensor.")
    return text[0].decode() if isinstance(text[0], bytes) else str(text[0])


def _sampling(request: Any) -> Sampling:
    # Greedy unless top-k or top-p widens the choice.
    wide = _scalar(request, "sampling_param_top_k", default=1) > 1 or _scalar(
        request, "sampling_param_top_p", default=0.0
    )
    temperature = _scalar(request, "sampling_param_temperature", default=1.0) if wide else 0.0
    return Sampling(
        max_tokens=int(_scalar(request, "sampling_param_max_tokens", default=32)),
        temperature=float(temperature),
        seed=int(_scalar(request, "sampling_param_seed", default=0)),
    )
