"""The command line of Triton's OpenAI front end, and of the server that it holds."""

from __future__ import annotations

import argparse
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_IGNORED: Final = (
    "--chat-template",
    "--lora-separator",
    "--tool-call-parser",
    "--openai-restricted-api",
    "--http-max-input-size",
    "--uvicorn-log-level",
)


@dataclass(frozen=True, kw_only=True)
class FrontEndArguments:
    """What the command line says.

    Attributes:
        model_repository: of Triton.
        tokenizer: directory of the tokenizer whose chat template is used; None where chat isn't served.
        backend: `vllm` or `tensorrtllm`; None is found out from each model's configuration.
        host: where the front end listens.
        port: its port.
        default_max_tokens: limit of requests that give none.
        kserve: HTTP and gRPC port of Triton's own front ends; None leaves them closed.
        control: arguments of model control, passed on.
        verbosity: of Triton's log.
    """

    model_repository: str
    tokenizer: str | None
    backend: str | None
    host: str
    port: int
    default_max_tokens: int
    kserve: tuple[int, int] | None
    control: tuple[str, ...]
    verbosity: int


def parse_command_line(arguments: Sequence[str]) -> FrontEndArguments:
    """Parse it; like the original, ends the process with exit code 2 on an unknown argument."""
    given = _parser().parse_args(arguments)
    control = [f"--model-control-mode={given.model_control_mode}"] if given.model_control_mode else []
    return FrontEndArguments(
        model_repository=given.model_repository,
        tokenizer=given.tokenizer,
        backend=given.backend,
        host=given.host,
        port=given.openai_port,
        default_max_tokens=given.default_max_tokens,
        kserve=(given.kserve_http_port, given.kserve_grpc_port) if given.enable_kserve_frontends else None,
        control=(*control, *(f"--load-model={name}" for name in given.load_model)),
        verbosity=given.tritonserver_log_verbose_level,
    )


def server_command(arguments: FrontEndArguments, *, http_port: int, metrics_port: int) -> list[str]:
    """Return the command of the server; without KServe front ends it listens on loopback alone."""
    command = ["tritonserver", f"--model-repository={arguments.model_repository}", f"--http-port={http_port}"]
    if arguments.kserve:
        command += [f"--grpc-port={arguments.kserve[1]}"]
    else:
        command += ["--http-address=127.0.0.1", "--allow-grpc=false"]
    command += [f"--metrics-port={metrics_port}", "--metrics-address=127.0.0.1", *arguments.control]
    return [*command, f"--log-verbose={arguments.verbosity}"]


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="main.py", description="Triton Inference Server with OpenAI-Compatible API.")
    parser.add_argument("--model-repository", required=True)
    parser.add_argument("--tokenizer")
    parser.add_argument("--backend", choices=("vllm", "tensorrtllm"))
    parser.add_argument("--host", default="0.0.0.0")  # noqa: S104 - the original's default
    parser.add_argument("--openai-port", type=int, default=9000)
    parser.add_argument("--default-max-tokens", type=int, default=16)
    parser.add_argument("--model-control-mode", choices=("none", "explicit"))
    parser.add_argument("--load-model", action="append", default=[])
    parser.add_argument("--enable-kserve-frontends", action="store_true")
    parser.add_argument("--kserve-http-port", type=int, default=8000)
    parser.add_argument("--kserve-grpc-port", type=int, default=8001)
    parser.add_argument("--tritonserver-log-verbose-level", type=int, default=0)
    for option in _IGNORED:
        parser.add_argument(option)
    return parser
