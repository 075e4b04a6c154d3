"""The engine backend's command: one server, or one MPI segment per rank.

Segments are as NVIDIA's launch script makes them (triton_backend/scripts/launch_triton_server.py; for a drafting pair
with --multi-model --disable-spawn-processes), without its habit of returning before the server ends.
"""

from __future__ import annotations

from specdec_operator.runtimes.serving import EXIT_TIMEOUT_SECONDS, REPOSITORY, SERVER, port_arguments


def launch(*, world_size: int, engines: tuple[str, ...]) -> tuple[str, ...]:
    """The command: the server itself for one process, else one `mpirun` segment per rank.

    Every rank gets the same ports: those above 0 block while their models load and never open them.
    """
    segments = [_segment(rank, engines) for rank in range(world_size)]
    if world_size == 1:
        return segments[0]
    argv = ["mpirun", "--allow-run-as-root"]
    for index, segment in enumerate(segments):
        argv += [*([":"] if index else []), "-n", "1", *segment]
    return tuple(argv)


def _segment(rank: int, engines: tuple[str, ...]) -> tuple[str, ...]:
    explicit = ("--model-control-mode=explicit", *(f"--load-model={name}" for name in engines)) if rank else ()
    return (
        SERVER,
        f"--model-repository={REPOSITORY}",
        f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}",
        *port_arguments(),
        *explicit,
        "--disable-auto-complete-config",
        f"--backend-config=python,shm-region-prefix-name=prefix{rank}_",
    )
