"""What a build needs: GPUs, host memory, room in the store. Estimated from the models' weights."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.planning.quantities import byte_count
from specdec_operator.runtimes.build_steps import quantizes
from specdec_operator.runtimes.engine_builds import engine_builds

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.build_steps import EngineRecipe

_GIB = 1024**3
_GIGABYTES = re.compile(r"-([0-9]+)GB(-|$)")
_WHOLE = 100


@dataclass(frozen=True, kw_only=True)
class BuildNeeds:
    """What a build's Job asks for.

    Attributes:
        gpus: The most that a step needs: the quantizer holds the whole model, the others build rank by rank on one.
        memory_bytes: Host memory: the model is read and written whole by the converter and by the quantizer.
        scratch_bytes: Room for checkpoints and engine beside the model, in the store.
    """

    gpus: int
    memory_bytes: int
    scratch_bytes: int


def build_needs(recipe: EngineRecipe, *, weight_bytes: int, gpu_memory: int | None) -> BuildNeeds:
    """What the steps of a recipe need.

    Args:
        weight_bytes: Bytes of the weights of model and head.
        gpu_memory: Bytes of one GPU's memory; None if not known.
    """
    gpus = 1
    if quantizes(recipe) and gpu_memory:
        gpus = max(1, math.ceil(weight_bytes * 12 / 10 / gpu_memory))
    checkpoint = weight_bytes * _size_percent(recipe) // _WHOLE
    # A recurrent drafter's checkpoint is made of the base model's.
    checkpoints = 2 if recipe.method == "ReDrafter" else 1
    return BuildNeeds(
        gpus=gpus,
        memory_bytes=_GIB + 2 * weight_bytes,
        scratch_bytes=(checkpoints + 1) * checkpoint * 11 // 10,
    )


def gpu_memory(spec: SpeculativeModelSpec, resolution: Resolution) -> int | None:
    """The memory of one GPU as declared, or as its product's name says; None if neither does."""
    if spec.placement.gpu.memory:
        return byte_count(spec.placement.gpu.memory)
    named = _GIGABYTES.search(resolution.gpu_product or "")
    return int(named[1]) * _GIB if named else None


def _size_percent(recipe: EngineRecipe) -> int:
    return engine_builds().formats[recipe.quantization.format].size_percent if recipe.quantization else _WHOLE
