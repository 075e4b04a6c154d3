"""The vLLM backend: vLLM inside Triton's Python-based backend `vllm`. No build; vLLM starts its own workers.

Inputs, outputs, `decoupled` and `max_batch_size` come from the backend's own auto-completion, so the server is never
started without it. Explicit model control lets the backend's health check unload a model whose engine died.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from specdec_operator.pod.inputs import ModelTemplate
from specdec_operator.runtimes.release import MODEL_CONTROL
from specdec_operator.runtimes.serving import (
    CANARY_PROMPT,
    CANARY_TOKENS,
    RequestTensor,
    ServingFiles,
    ServingRequest,
    server_command,
)
from specdec_operator.runtimes.vllm_arguments import engine_arguments
from specdec_operator.runtimes.vllm_speculation import derived_split, speculation

if TYPE_CHECKING:
    from specdec_operator.runtimes.table import VllmSupport

MODEL = "vllm_model"
_USUAL_TOKENS = 256


def render(request: ServingRequest) -> ServingFiles:
    """The files and the command of the vLLM backend.

    Raises:
        ValueError: The release has no vLLM; resolution refuses that before.
    """
    support = request.release.vllm
    if support is None:
        raise ValueError(f"release {request.release.name} has no vLLM")
    speculative = speculation(request, support)
    arguments = engine_arguments(request, support, speculation=speculative)
    template = ModelTemplate(
        name=MODEL,
        # KIND_MODEL leaves the devices to vLLM; without it Triton would start an engine on each GPU.
        fields={"backend": "vllm", "instance_group": [{"count": 1, "kind": "KIND_MODEL"}]},
        parameters=_parameters(request, support),
        files={"1/model.json": json.dumps(arguments.values, indent=2) + "\n"},
    )
    return ServingFiles(
        templates=(template,),
        argv=(
            *server_command(log_verbosity=request.serving.log_verbosity),
            *control_arguments(),
            "--backend-config=python,shm-region-prefix-name=prefix0_",
        ),
        # It would report its use to a server of the project's.
        environment={"VLLM_NO_USAGE_STATS": "1", **support.environment_for(request.method)},
        endpoint_model=MODEL,
        tensors=_request(),
        request_parameters={"sampling_parameters": json.dumps(json.dumps({"max_tokens": _USUAL_TOKENS}))},
        decoupled=True,
        takes_at_once=True,
        derived=(*arguments.derived, *derived_split(request, support, speculative)),
    )


def control_arguments() -> tuple[str, ...]:
    """Explicit model control, which the health check needs."""
    return ("--model-control-mode=explicit", f"--load-model={MODEL}")


def _parameters(request: ServingRequest, support: VllmSupport) -> dict[str, str]:
    # The backend of 25.09 and older hangs its metrics into the first engine's logger, which the newer one lacks.
    reports = support.at_least("0.10.2") or support.environment_for(request.method).get("VLLM_USE_V1") != "1"
    checks = request.serving.open_ai_front_end is None or request.release.front_end_has(MODEL_CONTROL)
    wanted = {"REPORT_CUSTOM_METRICS": reports, "ENABLE_VLLM_HEALTH_CHECK": checks}
    return {name: "true" for name, is_wanted in wanted.items() if is_wanted}


def _request() -> tuple[RequestTensor, ...]:
    sampling = json.dumps({"max_tokens": CANARY_TOKENS, "temperature": 0})
    return (
        RequestTensor(name="text_input", datatype="BYTES", shape=(1,), values=(CANARY_PROMPT,)),
        RequestTensor(name="stream", datatype="BOOL", shape=(1,), values=(False,)),
        RequestTensor(name="sampling_parameters", datatype="BYTES", shape=(1,), values=(sampling,)),
        RequestTensor(name="exclude_input_in_output", datatype="BOOL", shape=(1,), values=(True,)),
    )
