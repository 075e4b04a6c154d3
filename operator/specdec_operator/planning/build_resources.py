"""What a build needs: GPUs, host memory, room in the store. Estimated from the models' weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.runtimes.build_steps import quantizes
from specdec_operator.runtimes.engine_builds import engine_builds

if TYPE_CHECKING:
    from specdec_operator.runtimes.build_steps import EngineRecipe

_GIB = 1024**3
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


def _size_percent(recipe: EngineRecipe) -> int:
    return engine_builds().formats[recipe.quantization.format].size_percent if recipe.quantization else _WHOLE
