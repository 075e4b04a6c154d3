"""What the engines of a plan must be, as their config.json says it: looked at before they serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.engine_limits import parallelism_of, serving_batch
from specdec_operator.planning.engine_recipes import engine_method
from specdec_operator.planning.engine_rules import is_prebuilt
from specdec_operator.pod.inputs import EngineExpectation
from specdec_operator.runtimes.engine_builds import engine_builds

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution


def engine_expectation(
    role: str, spec: SpeculativeModelSpec, resolution: Resolution, *, directory: str, digest: str = ""
) -> EngineExpectation:
    """What a role's engine must be.

    Args:
        role: target or draft.
        directory: Where the container that looks at it mounts it.
        digest: What it was when it was built or inspected; empty if that is not known yet.
    """
    method, split = engine_method(role, spec), parallelism_of(role, spec)
    build = engine_builds().methods.get(method)
    logits = spec.engine.logits_data_type if spec.engine else "float32"
    return EngineExpectation(
        directory=directory,
        ranks=split.ranks,
        digest=digest,
        logits_data_type=logits,
        speculative_mode=build.mode if build else "",
        draft_tokens=resolution.draft_tokens if method != "None" else 0,
        batch=serving_batch(spec),
        sequence_length=_declared_length(role, spec, resolution),
        tensor=split.tensor,
        pipeline=split.pipeline,
        prebuilt=is_prebuilt(role, spec),
        role=role,
    )


def _declared_length(role: str, spec: SpeculativeModelSpec, resolution: Resolution) -> int:
    # A built engine has the length that its build was given.
    declared = spec.engine.max_sequence_length if spec.engine and is_prebuilt(role, spec) else None
    return declared + resolution.draft_tokens if declared else 0
