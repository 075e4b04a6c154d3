"""Build an engine in a scratch folder, and publish it whole."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from specdec_operator.pod.command import Finished, resolve, run_command, unknown_flags
from specdec_operator.pod.engine_config import ENGINE, missing_ranks
from specdec_operator.pod.errors import InvalidInput, ProgramFailure
from specdec_operator.pod.gpu import read_gpus, require_driver, require_product
from specdec_operator.pod.inputs import BuildInput, BuildStep
from specdec_operator.pod.manifest import Manifest, describe
from specdec_operator.pod.paths import inside
from specdec_operator.pod.program import run
from specdec_operator.pod.scratch import own_scratch, remove_scratch
from specdec_operator.pod.store import probe, publish, published, require_free, store_errors
from specdec_operator.pod.tensorrt_llm_version import require_tensorrt_llm

_PROOF = "prove"
_STEPS_WITH_CHANGING_FLAGS = frozenset({"convert", "convert-drafter", "quantize", "build"})


def build(given: BuildInput) -> dict[str, Any]:
    """Build the engine, or reuse the one that is already published.

    Returns:
        `digest`, `bytes`, `ranks` and `reused`.

    Raises:
        ProgramFailure: the build failed, or can't succeed here.
    """
    store = Path(given.store)
    target = inside(store, given.directory)
    present = published(target, kind=ENGINE)
    if present is not None and not missing_ranks(target, given.ranks):
        return _result(present, given, reused=True)
    for model in filter(None, (given.model, given.head)):
        _require_model(Path(model))
    require_tensorrt_llm(given.tensorrt_llm_version)
    gpus = read_gpus()
    require_product(gpus, given.gpu_product)
    require_driver(gpus, given.driver)
    probe(store)
    require_free(store, given.scratch_bytes)
    with store_errors(store):
        return _build(given, store, target)


def _build(given: BuildInput, store: Path, target: Path) -> dict[str, Any]:
    scratch = own_scratch(store, directory=given.directory, pod_uid=_pod_uid())
    try:
        engine, checkpoint = scratch / "engine", scratch / "checkpoint"
        engine.mkdir()
        places = {
            "model": given.model,
            "head": given.head,
            "calibration": given.calibration,
            "base": str(scratch / "base"),
            "checkpoint": str(checkpoint),
            "engine": str(engine),
        }
        commands = list(_commands(given.steps, places))
        for step, argv in commands:
            _require_known_flags(step, argv)
        for step, argv in commands:
            _run_step(step, argv)
        _require_ranks(engine, given.ranks)
        origin = {
            "model": given.model,
            "head": given.head,
            "tensorrtLlmVersion": given.tensorrt_llm_version,
            "gpuProduct": given.gpu_product,
            "steps": [list(step.argv) for step in given.steps],
        }
        manifest = publish(engine, target, describe(engine, kind=ENGINE, origin=origin, hashed=True))
        return _result(manifest, given, reused=False)
    finally:
        remove_scratch(scratch)


def _commands(steps: Sequence[BuildStep], places: Mapping[str, str]) -> Iterator[tuple[BuildStep, list[str]]]:
    for step in steps:
        try:
            yield step, resolve(step.argv, places)
        except ProgramFailure as failure:
            if step.name != _PROOF:
                raise
            print(f"step {step.name} is left out: {failure.message}", flush=True)


def _require_known_flags(step: BuildStep, argv: Sequence[str]) -> None:
    # before the first step runs: loading weights for an hour only to find an unknown flag helps nobody
    if step.name in _STEPS_WITH_CHANGING_FLAGS and (unknown := unknown_flags(argv)):
        program = argv[1] if len(argv) > 1 and argv[0].rpartition("/")[2].startswith("python") else argv[0]
        raise ProgramFailure(
            "UnknownBuildArgument",
            f"step {step.name}: the image's {program} doesn't know {', '.join(unknown)}; declare the release that the "
            "image really is, in spec.runtime.release, or remove the option from spec.engine.extraBuildArguments",
        )


def _run_step(step: BuildStep, argv: Sequence[str]) -> None:
    print(f"step {step.name}: {' '.join(argv)}", flush=True)
    finished = run_command(argv)
    if finished.returncode != 0:
        raise _step_failure(step, finished)


def _step_failure(step: BuildStep, finished: Finished) -> ProgramFailure:
    if finished.out_of_memory:
        return ProgramFailure(
            "OutOfMemory",
            f"step {step.name} ran out of memory (exit code {finished.returncode}); raise spec.pod.jobResources, "
            f"use GPUs with more memory, or lower the limits under spec.engine. Its last lines: {finished.tail}",
        )
    return ProgramFailure(
        "EngineBuildFailed",
        f"step {step.name} ended with exit code {finished.returncode}. Its last lines: {finished.tail}",
    )


def _require_model(model: Path) -> None:
    if not (model / "config.json").is_file():
        raise ProgramFailure("NotAModel", f"{model} holds no config.json; the model to build from isn't there")


def _require_ranks(engine: Path, ranks: int) -> None:
    missing = missing_ranks(engine, ranks)
    if missing:
        raise ProgramFailure(
            "EngineIncomplete",
            f"the build ended well, but its engine doesn't have {ranks} ranks and a config.json: {', '.join(missing)}; "
            "the checkpoint's parallelism differs from spec.<role>.parallelism",
        )


def _pod_uid() -> str:
    uid = os.environ.get("POD_UID", "")
    if not uid or "/" in uid or uid.startswith("."):
        raise InvalidInput("the environment variable POD_UID must hold the pod's uid")
    return uid


def _result(manifest: Manifest, given: BuildInput, *, reused: bool) -> dict[str, Any]:
    return {"digest": manifest.digest(), "bytes": manifest.total_bytes(), "ranks": given.ranks, "reused": reused}


if __name__ == "__main__":
    sys.exit(run(BuildInput, build))
