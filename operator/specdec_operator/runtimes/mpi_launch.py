"""The engine backend's command: one server, one MPI segment per rank, or one server that starts the ranks itself.

Segments are as NVIDIA's launch script makes them (triton_backend/scripts/launch_triton_server.py; for a drafting pair
with --multi-model, and --disable-spawn-processes for fast logits), without its habit of returning before the server
ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from specdec_operator.runtimes.serving import EXIT_TIMEOUT_SECONDS, REPOSITORY, SERVER, port_arguments


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How the server's processes are started.

    Attributes:
        engines: Names of the models that hold an engine, which every rank loads.
        world_size: MPI processes that are started with the pod.
        spawning_gpus: GPUs of a server that starts the ranks of several models itself; None where it does not.
        log_verbosity: Of Triton's log, 0 for none; on rank 0, which answers.
    """

    engines: tuple[str, ...]
    world_size: int = 1
    spawning_gpus: int | None = None
    log_verbosity: int = 0


def launch(how: Launch) -> tuple[str, ...]:
    """The command: the server itself for one process, else one `mpirun` segment per rank.

    Every rank gets the same ports: those above 0 block while their models load and never open them.

    Raises:
        ValueError: Ranks are started with the pod and by the server as well.
    """
    if how.spawning_gpus is not None and how.world_size != 1:
        raise ValueError(f"a server that starts its ranks is alone, not one of {how.world_size}")
    segments = [_segment(rank, how) for rank in range(how.world_size)]
    if how.world_size == 1 and how.spawning_gpus is None:
        return segments[0]
    argv = ["mpirun", "--allow-run-as-root"]
    for index, segment in enumerate(segments):
        argv += [*([":"] if index else []), "-n", "1", *segment]
    return tuple(argv)


def _segment(rank: int, how: Launch) -> tuple[str, ...]:
    explicit = ("--model-control-mode=explicit", *(f"--load-model={name}" for name in how.engines)) if rank else ()
    verbose = (f"--log-verbose={how.log_verbosity}",) if how.log_verbosity and rank == 0 else ()
    return (
        SERVER,
        f"--model-repository={REPOSITORY}",
        f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}",
        *port_arguments(),
        *verbose,
        *explicit,
        *_spawning(how.spawning_gpus),
        "--disable-auto-complete-config",
        f"--backend-config=python,shm-region-prefix-name=prefix{rank}_",
    )


def _spawning(gpus: int | None) -> tuple[str, ...]:
    """The server that starts the ranks leaves all GPU memory to them."""
    if gpus is None:
        return ()
    pools = (f"--cuda-memory-pool-byte-size={gpu}:0" for gpu in range(gpus))
    return ("--pinned-memory-pool-byte-size=0", "--enable-peer-access=false", *pools)
