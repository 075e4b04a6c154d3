"""The environment of the operator's containers: what it sets itself, and what a spec may therefore not set."""

from __future__ import annotations

SCRATCH = "/scratch"
_SCRATCH_PLACES = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "HF_HOME": "huggingface",
    "XDG_CACHE_HOME": "cache",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "VLLM_CACHE_ROOT": "vllm",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}
_OTHERS_OWNED = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",  # device ids count inside the pod
        "LD_LIBRARY_PATH",  # the image's own decide which libraries serve
        "LD_PRELOAD",
        "LLM_CONFIG_PATH",  # would put another file in the place of the model repository's
        "PATH",
        "PYTHONHOME",
        "PYTHONPATH",
    }
)
_OWNED_PREFIXES = ("HF_", "OMPI_", "PMIX_", "SPECDEC_", "TRTLLM_ORCHESTRATOR")


def scratch_environment() -> dict[str, str]:
    """Places for what programs cache: the images' user has no home of its own."""
    return {name: f"{SCRATCH}/{place}" for name, place in _SCRATCH_PLACES.items()} | {"USER": "triton-server"}


def server_environment() -> dict[str, str]:
    """The server container's; models are there already, so the hub is never asked."""
    return {**scratch_environment(), "HF_HUB_OFFLINE": "1"}


def without_gpu() -> dict[str, str]:
    """Hides GPUs from a container that asks for none: the images say `all`."""
    return {"NVIDIA_VISIBLE_DEVICES": "void"}


def mpi_environment(*, exit_timeout_seconds: int) -> dict[str, str]:
    """Open MPI's: ranks are bound to no core, wait for a clean end, and talk over loopback only."""
    return {
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_odls_base_sigkill_timeout": str(exit_timeout_seconds),
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_btl_tcp_if_include": "lo",
    }


def orchestrator_environment(*, spawns: bool) -> dict[str, str]:
    """Rank 0 directs the other ranks, which are started by it or with it."""
    return {"TRTLLM_ORCHESTRATOR": "1", "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": "1" if spawns else "0"}


def is_owned(name: str) -> bool:
    """Whether a variable is the operator's, so that a spec may not set it."""
    ours = {
        *server_environment(),
        *without_gpu(),
        *mpi_environment(exit_timeout_seconds=0),
        *orchestrator_environment(spawns=False),
    }
    return name in ours | _OTHERS_OWNED or name.startswith(_OWNED_PREFIXES)
