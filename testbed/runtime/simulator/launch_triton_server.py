"""The command that NVIDIA's launch script builds, written anew from its documented arguments: it prints or becomes it.

Other than the original it doesn't go to the background: `--print` shows the command, else this process becomes it.
"""

from __future__ import annotations

import argparse
import os
import shlex
from typing import TYPE_CHECKING

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.gpus import visible_gpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def launch_command(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the argv that the original would start.

    Raises:
        ParameterError: the arguments contradict each other.
    """
    chosen = _parser().parse_args(arguments)
    if chosen.no_mpi and chosen.world_size != 1:
        raise ParameterError("world size must be 1 when using no-mpi")
    if chosen.multi_model and not chosen.disable_spawn_processes and chosen.world_size != 1:
        raise ParameterError("World size must be 1 when using multi-model without disable-spawn-processes.")
    command: list[str] = []
    if not chosen.no_mpi:
        command = ["mpirun", "--allow-run-as-root", *(["--oversubscribe"] if chosen.oversubscribe else [])]
    for rank in range(chosen.world_size):
        command += [] if chosen.no_mpi else ["-n", "1"]
        command += _rank_command(chosen, rank, gpus=len(visible_gpus(environment)))
        command += [] if chosen.no_mpi else [":"]
    return command


def launch_environment(arguments: Sequence[str]) -> dict[str, str]:
    """Return the variables that the original adds."""
    chosen = _parser().parse_args(arguments)
    if not chosen.multi_model:
        return {}
    spawns = "0" if chosen.disable_spawn_processes else "1"
    return {"TRTLLM_ORCHESTRATOR": "1", "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": spawns}


def _rank_command(chosen: argparse.Namespace, rank: int, *, gpus: int) -> list[str]:
    command = ["trtllm-llmapi-launch"] if chosen.trtllm_llmapi_launch else []
    command += [chosen.tritonserver, f"--model-repository={chosen.model_repo}"]
    if chosen.exit_timeout is not None:
        command.append(f"--exit-timeout-secs={chosen.exit_timeout}")
    command += [f"--grpc-port={chosen.grpc_port}", f"--http-port={chosen.http_port}"]
    command.append(f"--metrics-port={chosen.metrics_port}")
    if chosen.log and rank == 0:
        command += ["--log-verbose=3", f"--log-file={chosen.log_file}"]
    if rank != 0:
        names = chosen.tensorrt_llm_model_name.split(",")
        command += ["--model-control-mode=explicit", *(f"--load-model={name}" for name in names)]
    elif chosen.multimodal_gpu0_cuda_mem_pool_bytes:
        command.append(f"--cuda-memory-pool-byte-size=0:{chosen.multimodal_gpu0_cuda_mem_pool_bytes}")
    if chosen.multi_model and not chosen.disable_spawn_processes:
        command += ["--pinned-memory-pool-byte-size=0", "--enable-peer-access=false"]
        command += [f"--cuda-memory-pool-byte-size={gpu}:0" for gpu in range(gpus)]
    prefix = f"shm-region-prefix-name=prefix{rank}_"
    return [*command, "--disable-auto-complete-config", f"--backend-config=python,{prefix}"]


def main(arguments: Sequence[str]) -> None:
    """Print the command, or become it."""
    command = launch_command(arguments, os.environ)
    added = launch_environment(arguments)
    if _parser().parse_args(arguments).print:
        print(shlex.join([*(f"{name}={value}" for name, value in added.items()), *command]))
        return
    os.execvpe(command[0], command, {**os.environ, **added})  # noqa: S606 - an argv list, as the original


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch_triton_server.py")
    parser.add_argument("--world_size", type=int, default=1)
    parser.add_argument("--tritonserver", default="/opt/tritonserver/bin/tritonserver")
    parser.add_argument("--grpc_port", default="8001")
    parser.add_argument("--http_port", default="8000")
    parser.add_argument("--metrics_port", default="8002")
    parser.add_argument("--force", "-f", action="store_true")
    parser.add_argument("--log", action="store_true")
    parser.add_argument("--log-file", default="triton_log.txt")
    parser.add_argument("--no-mpi", action="store_true")
    parser.add_argument("--model_repo", default="/app/all_models/gpt")
    parser.add_argument("--tensorrt_llm_model_name", default="tensorrt_llm")
    parser.add_argument("--multi-model", action="store_true")
    parser.add_argument("--disable-spawn-processes", action="store_true")
    parser.add_argument("--multimodal_gpu0_cuda_mem_pool_bytes", type=int, default=0)
    parser.add_argument("--oversubscribe", action="store_true")
    parser.add_argument("--trtllm_llmapi_launch", action="store_true")
    parser.add_argument("--exit_timeout", type=int)
    parser.add_argument("--print", action="store_true", help="ours: show the command instead of running it")
    return parser
