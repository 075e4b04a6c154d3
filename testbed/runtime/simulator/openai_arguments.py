"""The command line of Triton's OpenAI front end, and of the server that it holds."""

from __future__ import annotations

import argparse
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from testbed.runtime.simulator.contracts import declared_up_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testbed.runtime.simulator.contracts import Declared

CONTRACT: Final = "openai/options.yaml"
_DEFAULTS: Final[dict[str, Any]] = {
    "backend": None,
    "host": "0.0.0.0",  # noqa: S104 - the original's default
    "openai_port": 9000,
    "default_max_tokens": 16,
    "model_control_mode": None,
    "load_model": [],
    "enable_kserve_frontends": False,
    "kserve_http_port": 8000,
    "kserve_grpc_port": 8001,
    "tritonserver_log_verbose_level": 0,
}
_REPEATED: Final = ("--load-model",)


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


def parse_command_line(arguments: Sequence[str], *, release: str) -> FrontEndArguments:
    """Parse it; like the original of a Triton release, ends the process with exit code 2 on an unknown argument.

    Raises:
        ParameterError: the release is unknown.
    """
    given = _parser(declared_up_to(CONTRACT, release)).parse_args(arguments)
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


def _parser(rows: Sequence[Declared]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="main.py",
        description="Triton Inference Server with OpenAI-Compatible API.",
    )
    required = {name for row in rows for name in row.get("required", ())}
    for row in rows:
        for name, kind in row["options"].items():
            parser.add_argument(name, required=name in required, **_reading(name, kind))
    parser.set_defaults(**_DEFAULTS)
    return parser


def _reading(name: str, kind: str | list[str]) -> dict[str, Any]:
    if kind == "flag":
        return {"action": "store_true"}
    if name in _REPEATED:
        return {"action": "append"}
    return {"choices": kind} if isinstance(kind, list) else {"type": {"int": int, "str": str}[kind]}
