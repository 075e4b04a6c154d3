"""From a spec and the models' facts to everything that decides the commands of one engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.speculation import EagleOptions, ReDrafterOptions
from specdec_operator.planning.choices import eagle_layers, eagle_non_leaves
from specdec_operator.planning.engine_limits import parallelism_of
from specdec_operator.runtimes.build_steps import EagleShape, EngineRecipe, MedusaShape
from specdec_operator.runtimes.engine_builds import engine_builds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculation import Method
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.build_steps import EngineLimits

BUILT_IN_HEADS = ("Eagle", "Medusa", "ReDrafter")
"""Methods whose head is built into the target's engine."""
_DEFAULT_HEADS = 4
"""What the default tree needs, where weights do not tell."""


def engine_recipe(
    role: str,
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    facts: Mapping[str, ModelFacts],
    limit: EngineLimits,
    calibrated: bool = False,
) -> EngineRecipe:
    """The recipe of a role's engine.

    Args:
        role: target or draft.
        limit: As `limits` gives them.
        calibrated: Whether calibration texts are mounted.

    Raises:
        KeyError: No converter takes the architecture; `architecture_refusals` says so before.
    """
    family = engine_builds().family(facts[role].architecture)
    if family is None:
        raise KeyError(facts[role].architecture)
    split = parallelism_of(role, spec)
    method = engine_method(role, spec)
    model = (spec.draft if role == "draft" else spec.target) or spec.target
    return EngineRecipe(
        method=method,
        family=family,
        tensor=split.tensor,
        pipeline=split.pipeline,
        limits=limit,
        quantization=model.quantization,
        calibrated=calibrated,
        eagle=eagle_shape(spec, resolution) if method == "Eagle" else None,
        medusa=medusa_shape(spec, facts) if method == "Medusa" else None,
        re_drafter=spec.speculation.re_drafter or ReDrafterOptions(),
        extra=spec.engine.extra_build_arguments if spec.engine else {},
    )


def engine_method(role: str, spec: SpeculativeModelSpec) -> Method:
    """What a role's engine speculates by: a draft's own is a plain one, and so is one that nothing drafts for."""
    return spec.speculation.method if role == "target" else "None"


def eagle_shape(spec: SpeculativeModelSpec, resolution: Resolution) -> EagleShape:
    """What an EAGLE engine is built for: as declared, or what its tree needs."""
    options = spec.speculation.eagle or EagleOptions()
    return EagleShape(
        layers=eagle_layers(options, resolution.tree),
        non_leaves_per_layer=eagle_non_leaves(options, resolution.tree),
        choices=resolution.tree or (),
    )


def medusa_shape(spec: SpeculativeModelSpec, facts: Mapping[str, ModelFacts]) -> MedusaShape:
    """The heads of a MEDUSA engine: as declared, or as many as the weights hold."""
    declared = spec.speculation.medusa.heads if spec.speculation.medusa else None
    draft = facts.get("draft")
    heads, layers = (draft.medusa_heads, draft.medusa_layers) if draft else (None, None)
    return MedusaShape(heads=declared or heads or _DEFAULT_HEADS, layers=layers or 1)
