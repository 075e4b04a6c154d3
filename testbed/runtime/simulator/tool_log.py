"""How the build tools speak: TensorRT-LLM's line form, and the word simulator in each of their lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from testbed.runtime.simulator.errors import SimulatorError
from testbed.runtime.simulator.release import LOG_PREFIX, TENSORRT_LLM_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def say(text: str) -> None:
    """Print one line as the original's logger would, marked as the simulator's."""
    print(f"[TRT-LLM] [I] {LOG_PREFIX} {text}", flush=True)


def run_tool(
    tool: Callable[[Sequence[str], Mapping[str, str]], None], arguments: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run a build tool; a refusal becomes its last line and exit code 1, as an exception would end the original."""
    print(f"{LOG_PREFIX} TensorRT-LLM version: {TENSORRT_LLM_VERSION} (simulated: no GPU code runs)", flush=True)
    try:
        tool(arguments, environment)
    except (SimulatorError, OSError, RuntimeError, ValueError) as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
        return 1
    return 0
