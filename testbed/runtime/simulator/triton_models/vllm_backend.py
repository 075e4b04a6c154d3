"""The simulator's vLLM backend: a model directory is a config.pbtxt and a model.json."""

from __future__ import annotations

import json
import os
import queue
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it

from testbed.runtime.simulator.errors import ParameterError, RequestError
from testbed.runtime.simulator.release import LOG_PREFIX, VLLM_VERSION
from testbed.runtime.simulator.triton_models.vllm_metrics import EngineMetrics
from testbed.runtime.simulator.triton_models.vllm_stream import StreamedAnswer
from testbed.runtime.simulator.triton_models.vllm_tensors import (
    OUTPUTS,
    Asked,
    inputs,
    parse_request,
    refusal,
    response,
)
from testbed.runtime.simulator.vllm import SimulatedVLLM
from testbed.runtime.simulator.vllm_arguments import parse_arguments
from testbed.runtime.simulator.vllm_releases import VLLMRelease
from testbed.runtime.simulator.vllm_sampling import parse_sampling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from testbed.runtime.simulator.vllm_arguments import VLLMArguments

_FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    """A target, perhaps with a draft, behind the vLLM backend's inputs and outputs."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Add inputs, outputs, policy and batch size; not called with --disable-auto-complete-config."""
        for asked in inputs(os.environ):
            config.add_input(asked)
        for tensor in OUTPUTS:
            config.add_output({**tensor})
        config.set_model_transaction_policy({"decoupled": True})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the models that model.json names."""
        self._name = args["model_name"]
        config = json.loads(args["model_config"])
        if not pb_utils.using_decoupled_model_transaction_policy(config):
            raise ParameterError("vLLM Triton backend must be configured to use decoupled model transaction policy")
        version = os.environ.get("SIMULATOR_VLLM_VERSION", VLLM_VERSION)
        self._release = VLLMRelease.read(version)
        directory = Path(pb_utils.get_model_dir())
        arguments = parse_arguments(_read_json(directory / "model.json"), version)
        _check_instance(args, arguments)
        _check_adapters(directory, arguments)
        self._engine = SimulatedVLLM(arguments, self._release, os.environ)
        plan = self._engine.plan
        _log(f"vLLM {version} stand-in ({self._release.generation(os.environ)}), {self._name}: speculation {plan}")
        self._metrics = None
        if _enabled(config, "REPORT_CUSTOM_METRICS") and not arguments.disable_log_stats:
            self._metrics = EngineMetrics({"model": self._name, "version": args["model_version"]})
        self._health_checked = _enabled(config, "ENABLE_VLLM_HEALTH_CHECK")
        self._answers_left = int(os.environ.get("SIMULATOR_VLLM_DIES_AFTER", "-1"))
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="vllm-engine", daemon=True)
        self._worker.start()

    def execute(self, requests: Sequence[Any]) -> None:
        """Hand requests to the engine's thread at once, as the original does."""
        if self._health_checked and self._answers_left == 0:
            self._leave(requests)
            return
        for request in requests:
            self._waiting.put(request)

    def finalize(self) -> None:
        """Let the engine's thread end."""
        self._waiting.put(None)
        self._worker.join()

    def _work(self) -> None:
        while (request := self._waiting.get()) is not None:
            sender = request.get_response_sender()
            try:
                self._answer(request, sender)
            except RequestError as problem:
                sender.send(refusal(f"Error generating stream: {LOG_PREFIX} {problem}"), flags=_FINAL)
            del request, sender  # Triton takes a request for finished when nothing holds it

    def _answer(self, request: Any, sender: Any) -> None:
        asked = parse_request(request)
        if self._answers_left == 0:
            raise RequestError("EngineCore encountered an issue. See stack trace (above) for the root cause.")
        self._answers_left -= 1
        sampling = parse_sampling(asked.sampling, self._release)
        stream = StreamedAnswer(lambda outputs: sender.send(response(outputs, asked))) if asked.stream else None
        done = self._engine.complete(asked.prompt, sampling, stream.add if stream else None)
        _log(f"{self._name}: drafted={done.drafted} accepted={done.accepted} passes={len(done.steps)}")
        if self._metrics:
            self._metrics.count(done)
        outputs = {
            "text_output": _whole_text(asked, done.text),
            "finish_reason": done.finish_reason,
            "cumulative_logprob": 0.0,
            "logprobs": "null",
            "num_input_tokens": done.prompt_tokens,
            "num_output_tokens": done.output_tokens,
        }
        sender.send(response(outputs | (stream.finish(done) if stream else {}), asked), flags=_FINAL)

    def _leave(self, requests: Sequence[Any]) -> None:
        """Answer that the engine is dead, and ask Triton to unload the model: refused unless control is explicit."""
        for request in requests:
            message = "Model is unavailable due to unhealthy vLLM engine"
            request.get_response_sender().send(refusal(message, pb_utils.TritonError.UNAVAILABLE), flags=_FINAL)
        _log(f"{self._name}: the engine is dead, unloading")
        pb_utils.unload_model(self._name)


def _whole_text(asked: Asked, text: str) -> str:
    return asked.prompt + text if asked.prepend_input else text


def _check_instance(args: Mapping[str, str], arguments: VLLMArguments) -> None:
    kind, world = args["model_instance_kind"], arguments.tensor_parallel_size * arguments.pipeline_parallel_size
    if kind == "MODEL":
        return
    # This server has no GPU support, so a model without instance_group comes as CPU; the original's comes as GPU.
    if world > 1:
        raise ParameterError(
            "KIND_GPU is currently for single-GPU models, please specify KIND_MODEL in the model's config.pbtxt for"
            " multi-GPU models"
        )
    _log(f"instance kind {kind}: without KIND_MODEL the original starts one engine for each GPU that it sees")


def _check_adapters(directory: Path, arguments: VLLMArguments) -> None:
    if arguments.enable_lora and not (directory / "multi_lora.json").exists():
        raise ParameterError("enable_lora is true, but multi_lora.json is missing beside model.json")


def _enabled(config: Mapping[str, Any], parameter: str) -> bool:
    return str(config.get("parameters", {}).get(parameter, {}).get("string_value", "false")).lower() == "true"


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except OSError as problem:
        raise ParameterError(f"Triton could not find {file.name} in {file.parent}") from problem
    except ValueError as problem:
        raise ParameterError(f"{file.name}: is not JSON: {problem}") from problem


def _log(line: str) -> None:
    pb_utils.Logger.log_info(f"{LOG_PREFIX} {line}")
