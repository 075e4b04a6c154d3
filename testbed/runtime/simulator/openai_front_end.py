"""Triton's OpenAI front end: an HTTP server in front of a tritonserver that lives and ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from testbed.runtime.simulator.contracts import played_release
from testbed.runtime.simulator.openai_arguments import free_port, parse_command_line, server_command
from testbed.runtime.simulator.openai_http import OpenAIServer
from testbed.runtime.simulator.openai_triton import Triton
from testbed.runtime.simulator.release import LOG_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def openai_front_end(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the server and the front end until either ends; returns the exit code.

    The original holds the server in its own process; here it is a child, which gets the signals passed on.
    """
    given = parse_command_line(arguments, release=played_release(environment))
    triton = Triton(http_port=given.kserve[0] if given.kserve else free_port(), metrics_port=free_port())
    command = server_command(given, http_port=triton.http_port, metrics_port=triton.metrics_port)
    print(f"{LOG_PREFIX} OpenAI front end stand-in on port {given.port}, in front of: {' '.join(command)}", flush=True)
    with subprocess.Popen(command, env=dict(environment)) as server:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: server.terminate())
        threading.Thread(target=_serve, args=(OpenAIServer(given, triton), server), daemon=True).start()
        code = server.wait()
    if code < 0:
        print(f"{LOG_PREFIX} tritonserver ended by signal {-code}", file=sys.stderr, flush=True)
    return code if code >= 0 else 128 - code


def _serve(front_end: OpenAIServer, server: subprocess.Popen[bytes]) -> None:
    """Open the port once all models are ready, as the original does, which loads them before it listens."""
    with suppress(InterruptedError):
        front_end.triton.wait_until_ready(lambda: server.poll() is None)
        front_end.serve()
