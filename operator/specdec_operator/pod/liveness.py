"""The liveness probe: a server is dead when requests wait, none is answered for minutes, and a small one isn't either.

Anything less is left alone: restarting a busy server costs a model load.
"""

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.input_file import read_input
from specdec_operator.pod.probe_inputs import LivenessInput
from specdec_operator.pod.probe_state import read_state, write_state
from specdec_operator.pod.triton_http import RequestFailed, generate, get

_METRICS_TIMEOUT_SECONDS = 5.0
_SAMPLE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)")
# vLLM counts tokens while it answers: a server that is full of long answers is alive.
_PROGRESS = frozenset({"nv_inference_request_success", "nv_inference_request_failure", "vllm:generation_tokens_total"})
_WAITING_ENGINE_REQUESTS = re.compile(r'request_type="(?:active|waiting|scheduled)"')


@dataclass(frozen=True)
class Load:
    """What the server's metrics say: answers (and tokens) since its start, and requests that wait for an answer."""

    answered: float
    pending: float


def is_alive(given: LivenessInput, *, clock: Callable[[], float] = time.monotonic) -> tuple[bool, str]:
    """Judge the server.

    Args:
        given: the input.
        clock: seconds, the same clock for every process of the machine.

    Returns:
        Whether it is alive, and why.
    """
    state_file = Path(given.state_file)
    try:
        load = read_load(get(given.metrics_port, "/metrics", timeout_seconds=_METRICS_TIMEOUT_SECONDS))
    except RequestFailed as failure:
        return True, f"the metrics can't be read, so nothing says that requests wait: {failure}"
    now, state = clock(), read_state(state_file)
    since = state.get("since", now)
    is_idle = load.pending <= 0 and not given.takes_at_once
    if is_idle or load.answered != state.get("answered"):
        write_state(state_file, {"answered": load.answered, "since": now})
        return True, f"{load.answered:g} requests answered, {load.pending:g} wait"
    if now - since < given.stuck_seconds:
        return True, f"no request answered for {now - since:.0f} s, {load.pending:g} wait"
    return _answers(given, state_file=state_file, load=load, now=now)


def read_load(metrics: str) -> Load:
    """Read Prometheus' text exposition."""
    answered = pending = 0.0
    for line in metrics.splitlines():
        match = _SAMPLE.match(line)
        if match is None:
            continue
        name, labels, value = match.group("name"), match.group("labels") or "", float(match.group("value"))
        if name in _PROGRESS:
            answered += value
        elif name == "nv_inference_pending_request_count" or (
            name == "nv_trt_llm_request_metrics" and _WAITING_ENGINE_REQUESTS.search(labels)
        ):
            pending += value
    return Load(answered, pending)


def _answers(given: LivenessInput, *, state_file: Path, load: Load, now: float) -> tuple[bool, str]:
    try:
        generate(
            given.port, given.model, request=given.request, output=given.output, timeout_seconds=given.timeout_seconds
        )
    except RequestFailed as failure:
        return False, f"{load.pending:g} requests wait, none was answered for {given.stuck_seconds:g} s: {failure}"
    write_state(state_file, {"answered": load.answered, "since": now})
    return True, "a small request was answered while others wait"


def main() -> int:
    """Run the probe: 1 if the server is stuck, 0 otherwise, also if the probe itself can't work."""
    try:
        alive, why = is_alive(read_input(LivenessInput, sys.argv[1:]))
    except (ProgramFailure, OSError, ValueError) as failure:
        alive, why = True, f"{type(failure).__name__}: {failure}"
    print(why)
    return 0 if alive else 1


if __name__ == "__main__":
    sys.exit(main())
