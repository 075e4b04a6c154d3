"""The startup probe: the server has started when it has answered one small real request."""

import sys
from pathlib import Path

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.input_file import read_input
from specdec_operator.pod.probe_inputs import CanaryInput
from specdec_operator.pod.probe_state import read_state, write_state
from specdec_operator.pod.triton_http import RequestFailed, generate, get

_READY_TIMEOUT_SECONDS = 2.0


def canary(given: CanaryInput) -> str:
    """Ask the endpoint model for its readiness and for one answer.

    Returns:
        What was seen.

    Raises:
        RequestFailed: the model isn't ready, or didn't answer with text.
    """
    state_file = Path(given.state_file)
    if read_state(state_file).get("answered"):
        return "answered before"
    get(
        given.port,
        f"/v2/models/{given.model}/ready",
        timeout_seconds=min(_READY_TIMEOUT_SECONDS, given.timeout_seconds),
    )
    text = generate(
        given.port, given.model, request=given.request, output=given.output, timeout_seconds=given.timeout_seconds
    )
    write_state(state_file, {"answered": True})
    return f"answered with {len(text)} characters"


def main() -> int:
    """Run the probe: 0 if the server answered, 1 otherwise; says why on standard output, as probes do."""
    try:
        print(canary(read_input(CanaryInput, sys.argv[1:])))
    except RequestFailed as failure:
        print(failure)
        return 1
    except (ProgramFailure, OSError) as failure:
        print(f"{type(failure).__name__}: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
