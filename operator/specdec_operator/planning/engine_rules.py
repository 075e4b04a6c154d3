"""What an engine can't be: refused from the spec, the release and the models' architectures, before any build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.speculative_model import default_backend
from specdec_operator.planning.build_arguments import build_argument_refusals
from specdec_operator.planning.engine_limits import engine_roles
from specdec_operator.planning.quantization_rules import quantization_refusals
from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.engine_builds import engine_builds
from specdec_operator.runtimes.versions import at_least

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.engine_builds import Family

_HEADS = ("Eagle", "Medusa", "ReDrafter")
_DRAFTER_BASE = "LlamaForCausalLM"
"""What the ReDrafter converter took before TensorRT-LLM 1.0, whose step of its own for the base takes others."""


def engine_refusals(spec: SpeculativeModelSpec, resolution: Resolution) -> list[Refusal]:
    """What the spec and the release alone show to be wrong with engines."""
    if default_backend(spec) != "TensorRTEngine":
        return quantization_refusals(spec, resolution)
    return [
        *quantization_refusals(spec, resolution),
        *build_argument_refusals(spec),
        *_prebuilt(spec),
        *_unused_quantization(spec),
    ]


def architecture_refusals(
    spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]
) -> list[Refusal]:
    """Models that no converter of the release takes, or not as the spec wants them."""
    built = [role for role in engine_roles(spec) if not is_prebuilt(role, spec)]
    return [refusal for role in built for refusal in _architecture(role, spec, resolution, facts[role])]


def is_prebuilt(role: str, spec: SpeculativeModelSpec) -> bool:
    """Whether a role's engine exists already."""
    prebuilt = spec.engine.prebuilt if spec.engine else None
    return prebuilt is not None and (prebuilt.target if role == "target" else prebuilt.draft) is not None


def _architecture(role: str, spec: SpeculativeModelSpec, resolution: Resolution, facts: ModelFacts) -> list[Refusal]:
    builds, path = engine_builds(), f"spec.{role}.source"
    family = builds.family(facts.architecture)
    if family is None:
        message = (
            f"no converter is known for {facts.architecture} on TensorRTEngine; known: "
            f"{', '.join(builds.architectures())}. {_elsewhere(spec)}"
        )
        return [Refusal(reason="UnsupportedArchitecture", path=path, message=message)]
    if family.since and not at_least(resolution.release.tensorrt_llm or "", family.since):
        message = (
            f"{facts.architecture} is converted from TensorRT-LLM {family.since} on, release "
            f"{resolution.release.name} holds {resolution.release.tensorrt_llm}: name a newer one in runtime.release"
        )
        return [Refusal(reason="UnsupportedArchitecture", path=path, message=message)]
    return [
        *(_head(spec, facts, family) or _drafter_base(spec, resolution, facts)),
        *_converter(role, spec, family),
        *_published(role, spec, facts),
    ]


def _elsewhere(spec: SpeculativeModelSpec) -> str:
    """What serves an architecture without a converter, by the same method or another."""
    if spec.speculation.method in ("DraftTarget", "None"):
        return "Use the backend LLMAPI for others"
    return "Use NGram, or Eagle3 with a head made for the target, on the backend LLMAPI for others"


def _head(spec: SpeculativeModelSpec, facts: ModelFacts, family: Family) -> list[Refusal]:
    method = spec.speculation.method
    if method not in _HEADS or method in family.heads:
        return []
    taken = sorted(name for f in engine_builds().families if method in f.heads for name in f.architectures)
    return [
        Refusal(
            reason="UnsupportedArchitecture",
            path="spec.target.source",
            message=f"{method} engines are built for {', '.join(taken)}, not for {facts.architecture}: use "
            "DraftTarget, or Eagle3 on the backend LLMAPI",
        )
    ]


def _drafter_base(spec: SpeculativeModelSpec, resolution: Resolution, facts: ModelFacts) -> list[Refusal]:
    """A target that a ReDrafter converter of one step does not take."""
    support = resolution.release.tensorrt_engine
    if spec.speculation.method != "ReDrafter" or support is None or support.re_drafter_base != "Model":
        return []
    if facts.architecture == _DRAFTER_BASE and not facts.quantization:
        return []
    given = f"{facts.architecture} published in {facts.quantization}" if facts.quantization else facts.architecture
    message = (
        f"release {resolution.release.name} (TensorRT-LLM {resolution.release.tensorrt_llm}) converts {_DRAFTER_BASE} "
        f"in 16 bits alone for ReDrafter, not {given}: name a release with TensorRT-LLM 1.0 or newer in runtime.release"
    )
    return [Refusal(reason="UnsupportedArchitecture", path="spec.target.source", message=message)]


def _converter(role: str, spec: SpeculativeModelSpec, family: Family) -> list[Refusal]:
    model = (spec.draft if role == "draft" else spec.target) or spec.target
    found = []
    if model.parallelism.pipeline > 1 and not family.pipeline:
        message = f"the converter of {family.name} models makes no pipeline stages: use parallelism.tensor"
        path = f"spec.{role}.parallelism.pipeline"
        found.append(Refusal(reason="ParallelismMismatch", path=path, message=message))
    if model.quantization and engine_builds().formats[model.quantization.format].quantizer and not family.quantizer:
        message = (
            f"the quantizer does not know {family.name} models: use INT8WeightOnly or INT4WeightOnly, or remove "
            "quantization"
        )
        path = f"spec.{role}.quantization.format"
        found.append(Refusal(reason="QuantizationUnsupported", path=path, message=message))
    return found


def _published(role: str, spec: SpeculativeModelSpec, facts: ModelFacts) -> list[Refusal]:
    model = (spec.draft if role == "draft" else spec.target) or spec.target
    if not facts.quantization:
        return []
    if model.quantization:
        message = f"the {role} is published in {facts.quantization} already: remove quantization, or name the model in "
        path = f"spec.{role}.quantization"
    elif not facts.quantization.startswith(tuple(engine_builds().published_formats)):
        message = f"no converter takes a model published in {facts.quantization}: name the model in "
        path = f"spec.{role}.source"
    else:
        return []
    return [Refusal(reason="QuantizationUnsupported", path=path, message=f"{message}its full precision")]


def _prebuilt(spec: SpeculativeModelSpec) -> list[Refusal]:
    if not is_prebuilt("draft", spec) or "draft" in engine_roles(spec):
        return _unused_limits(spec)
    return [
        Refusal(
            reason="PrebuiltUnused",
            path="spec.engine.prebuilt.draft",
            message=f"the method {spec.speculation.method} has no engine of the draft's own: remove it (a head is "
            "built into the target's engine)",
        )
    ]


def _unused_quantization(spec: SpeculativeModelSpec) -> list[Refusal]:
    """Number formats of models whose engine has one already."""
    models = {"target": spec.target, "draft": spec.draft}
    given = {role: models[role] for role in engine_roles(spec) if is_prebuilt(role, spec)}
    asked = {role: model.quantization for role, model in given.items() if model and model.quantization}
    if spec.placement.shared:
        # How much room the caches of a shared GPU have depends on how large the engine's weights are.
        calibrated = [role for role, quantization in asked.items() if quantization.calibration]
        return [_prebuilt_unused(role, "quantization.calibration", "nothing is calibrated") for role in calibrated]
    return [_prebuilt_unused(role, "quantization", "it keeps its own precision") for role in asked]


def _prebuilt_unused(role: str, field: str, why: str) -> Refusal:
    return Refusal(
        reason="PrebuiltUnused",
        path=f"spec.{role}.{field}",
        message=f"the {role}'s engine is built already, and {why}: remove it, or remove engine.prebuilt.{role}",
    )


def _unused_limits(spec: SpeculativeModelSpec) -> list[Refusal]:
    """Options that only a build takes, where nothing is built."""
    if spec.engine is None or not all(is_prebuilt(role, spec) for role in engine_roles(spec)):
        return []
    engine = spec.engine
    given = {
        "engine.maxInputLength": engine.max_input_length,
        "engine.maxBatchedTokens": engine.max_batched_tokens,
        "engine.dataType": engine.data_type,
        "engine.extraBuildArguments": engine.extra_build_arguments or None,
        "placement.gpu.buildResourceClaimTemplate": spec.placement.gpu.build_resource_claim_template,
    }
    message = "every engine is built already, and no build takes it: remove it, or remove engine.prebuilt"
    return [
        Refusal(reason="PrebuiltUnused", path=f"spec.{name}", message=message)
        for name, value in given.items()
        if value is not None
    ]
