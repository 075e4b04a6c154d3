"""The simulator's `tensorrtllm` backend: a python-based backend that plays the C++ one."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it

from testbed.runtime.simulator.engine_tensors import EngineCall, TensorReader, answer_tensors, parse_call
from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.parameters import parse_parameters
from testbed.runtime.simulator.ranks import shm_prefix
from testbed.runtime.simulator.release import LOG_PREFIX
from testbed.runtime.simulator.roles import MpiJob
from testbed.runtime.simulator.session import EngineSession, Surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_SIGTERM_CAUGHT = 1 << (signal.SIGTERM - 1)


class TritonPythonModel:
    """One model of the backend."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the engine, or attach to the rank that serves it; blocks on a participant rank."""
        config = json.loads(args["model_config"])
        logits = pb_utils.get_output_config_by_name(config, "generation_logits")
        self._logits_type = pb_utils.triton_string_to_numpy(logits["data_type"])
        self._decoupled = pb_utils.using_decoupled_model_transaction_policy(config)
        around = Surroundings(
            job=_job(),
            environment=os.environ,
            shm_prefix=shm_prefix(Path("/proc/self/cmdline").read_bytes()),
            server=os.getppid(),
            log=_log,
        )
        self._session = EngineSession(parse_parameters(config), around)
        self._warn_of_logits(logits["data_type"])
        if self._session.attach():
            threading.Thread(target=_leave_job, daemon=True).start()

    def _warn_of_logits(self, declared: str) -> None:
        written = self._session.engine.logits_type
        if np.dtype(self._logits_type) != np.dtype(written):
            name = self._session.parameters.model_name
            _log(f"WARNING {name}: {written} logits are read as {declared} and so wrong; the original says nothing")

    def execute(self, requests: Sequence[Any]) -> list[Any] | None:
        """Answer requests one after the other."""
        responses = [self._answer(request) for request in requests]
        if not self._decoupled:
            return responses
        for request, response in zip(requests, responses, strict=True):
            sender = request.get_response_sender()
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def _answer(self, request: Any) -> Any:
        name = self._session.parameters.model_name
        try:
            call = self._parse(request)
            result = self._session.run(call.request)
        except RequestError as problem:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"{LOG_PREFIX} {problem}"))
        _log(
            f"{name}: new={len(result.tokens)} drafted={result.drafted} accepted={result.accepted} "
            f"guessed={result.guessed} passes={result.passes}"
        )
        tensors = answer_tensors(call, result)
        return pb_utils.InferenceResponse([pb_utils.Tensor(*item) for item in tensors.items()])

    def _parse(self, request: Any) -> EngineCall:
        def read(name: str) -> NDArray[Any] | None:
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            return None if tensor is None else tensor.as_numpy()

        reader = TensorReader(read)
        if reader.flag("streaming", default=False) and not self._decoupled:
            raise RequestError("Streaming is only supported if model is configured using decoupled mode.")
        return parse_call(
            reader,
            exclude_input=self._session.parameters.exclude_input_in_output,
            fast_logits=self._session.assignment.fast_logits,
            logits_type=self._logits_type,
            written_type=self._session.engine.logits_type,
        )

    def finalize(self) -> None:
        """Unload; attached ranks go home."""
        self._session.close()


def _job() -> MpiJob:
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return MpiJob.from_environment(os.environ, process=os.getppid(), namespace=namespace)


def _log(line: str) -> None:
    pb_utils.Logger.log_info(f"{LOG_PREFIX} {line}")


def _leave_job() -> None:
    # The original's participant calls exit(0). A stub can't end its server with 0 but by a signal that the server
    # handles, which it does only once it has started its endpoints.
    server = os.getppid()
    while True:
        caught = [line for line in Path(f"/proc/{server}/status").read_text().splitlines() if "SigCgt" in line]
        if int(caught[0].split()[1], 16) & _SIGTERM_CAUGHT:
            os.kill(server, signal.SIGTERM)
            return
        time.sleep(0.1)
