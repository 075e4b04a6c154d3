"""The artifact of an engine that is built: its commands, what they need, and the key that decides its content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import BuildInput, DriverFloor, JobGpu, MountedModel
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactSpec
from specdec_operator.planning.artifact_request import ArtifactRequest
from specdec_operator.planning.build_resources import build_needs
from specdec_operator.planning.engine_limits import ranks_of
from specdec_operator.planning.engine_recipes import BUILT_IN_HEADS, engine_recipe
from specdec_operator.planning.keys import content_key, short
from specdec_operator.planning.memory import gpu_memory
from specdec_operator.planning.refusal import Refusal, Refused
from specdec_operator.runtimes.build_steps import PROOF, build_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.v1alpha1.artifact_inputs import BuildStep
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.build_resources import BuildNeeds
    from specdec_operator.planning.calibration import Texts
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.build_steps import EngineLimits, EngineRecipe
    from specdec_operator.runtimes.release import EngineSupport

BUILD_PROGRAM_VERSION = 1
"""Part of every engine's key: raised when the build program makes different engines from the same input."""
FilePatterns = tuple[list[str], list[str]]
"""Files that are downloaded, and files that are not."""
_MIG_PROFILE = re.compile(r"/mig-(.+)$")


@dataclass(frozen=True, kw_only=True)
class BuildContent:
    """What engines are built from.

    Attributes:
        facts: Facts per role.
        models: Where each role's model lies.
        texts: What the quantizer looks at; None if it uses its own.
    """

    facts: Mapping[str, ModelFacts]
    models: Mapping[str, MountedModel]
    texts: Texts | None


def built_engine(
    role: str,
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    support: EngineSupport,
    limit: EngineLimits,
    content: BuildContent,
) -> ArtifactRequest:
    """The artifact of a role's engine.

    Args:
        support: Where the release's image keeps its converters.
        limit: What it is built to take.
        content: What it is built from.

    Raises:
        Refused: The build needs more GPUs than the pods' claim template gives.
    """
    facts, texts = content.facts, content.texts
    recipe = engine_recipe(role, spec, resolution, facts=facts, limit=limit, calibrated=texts is not None)
    roles = {"model": role}
    if role == "target" and spec.speculation.method in BUILT_IN_HEADS:
        roles["head"] = "draft"
    return _EngineBuild(
        role=role,
        spec=spec,
        resolution=resolution,
        recipe=recipe,
        steps=build_steps(recipe, support),
        facts={part: facts[held] for part, held in roles.items()},
        models={part: content.models[held] for part, held in roles.items()},
        patterns={part: found for part, held in roles.items() if (found := _patterns(held, spec))},
        texts=texts,
    ).request()


@dataclass(frozen=True, kw_only=True)
class _EngineBuild:
    """One engine's build.

    Attributes:
        facts: Of its parts: the model, and the head that is built in.
        models: Where its parts lie.
        patterns: Which files of its parts were downloaded, where a source says so.
    """

    role: str
    spec: SpeculativeModelSpec
    resolution: Resolution
    recipe: EngineRecipe
    steps: Sequence[BuildStep]
    facts: Mapping[str, ModelFacts]
    models: Mapping[str, MountedModel]
    patterns: Mapping[str, FilePatterns]
    texts: Texts | None

    def request(self) -> ArtifactRequest:
        key, claim, needs = self._key(), self.resolution.store_claim or "", self._needs()
        directory = f"engines/{short(key)}"
        return ArtifactRequest(
            role=f"{self.role}-engine",
            name=f"engine-{short(content_key({'key': key, 'claim': claim}))}",
            spec=ModelArtifactSpec(
                type="Engine",
                key=key,
                claim_name=claim,
                build=self._input(directory, needs),
                gpu=_gpu(self.spec, self.resolution.gpu_product or "", count=needs.gpus),
                **self.resolution.jobs,
            ),
            yields=MountedModel(claim_name=claim, sub_path=directory),
        )

    def _key(self) -> str:
        return content_key(
            {
                "inputs": {part: fact.commit or fact.content_digest for part, fact in self.facts.items()},
                "calibration": self.texts.content if self.texts else None,
                "steps": [step.model_dump() for step in self.steps if step.name != PROOF],
                # It decides the TensorRT and the quantizer that come with it.
                "tensorrtLLM": self.resolution.release.tensorrt_llm,
                "image": _own_image(self.resolution),
                "gpuProduct": self.resolution.gpu_product or "",
                "migProfile": _mig_profile(self.spec),
                "buildProgram": BUILD_PROGRAM_VERSION,
                # A commit tells all its files; whoever takes all of them shares what is there.
                **({"patterns": self.patterns} if self.patterns else {}),
            }
        )

    def _needs(self) -> BuildNeeds:
        memory = gpu_memory(self.spec, self.resolution)
        needs = build_needs(self.recipe, weight_bytes=self._weight_bytes, gpu_memory=memory)
        _require_claimed(self.role, self.spec, wanted=needs.gpus, given=self.resolution.placement.gpus)
        return needs

    def _input(self, directory: str, needs: BuildNeeds) -> BuildInput:
        return BuildInput(
            model=self.models["model"],
            head=self.models.get("head"),
            calibration=self.texts.place if self.texts else None,
            steps=list(self.steps),
            directory=directory,
            ranks=ranks_of(self.role, self.spec),
            tensorrt_llm_version=self.resolution.release.required_tensorrt_llm or None,
            driver=_driver_floor(self.resolution),
            weight_bytes=self._weight_bytes,
            memory_bytes=needs.memory_bytes,
            scratch_bytes=needs.scratch_bytes,
        )

    @property
    def _weight_bytes(self) -> int:
        return sum(fact.weight_bytes for fact in self.facts.values())


def _driver_floor(resolution: Resolution) -> DriverFloor | None:
    floor = resolution.driver_floor
    if not floor.minimum:
        return None
    return DriverFloor(minimum=floor.minimum, data_center=list(floor.data_center), source=floor.source)


def _patterns(role: str, spec: SpeculativeModelSpec) -> FilePatterns | None:
    """What a role's source takes and leaves of a repository's files; None where it takes them all."""
    model = spec.draft if role == "draft" else spec.target
    hub = model.source.hugging_face if model else None
    if hub is None or not (hub.allow_patterns or hub.ignore_patterns):
        return None
    return sorted(set(hub.allow_patterns)), sorted(set(hub.ignore_patterns))


def _require_claimed(role: str, spec: SpeculativeModelSpec, *, wanted: int, given: int) -> None:
    """Refuse a build on more GPUs than its claim template gives: one, or those of the serving pods.

    Args:
        given: GPUs of a serving pod.

    Raises:
        Refused: It needs more.
    """
    gpu = spec.placement.gpu
    if gpu.build_resource_claim_template is not None:
        field, gives = "buildResourceClaimTemplate", 1
        told = "a build's template gives 1"
        instead = f"remove buildResourceClaimTemplate (the template of serving pods gives {given})"
    elif gpu.resource_claim_template is not None:
        field, gives = "resourceClaimTemplate", given
        told = f"the template gives the {given} of a serving pod"
        instead = "use resourceName in its place"
    else:
        return
    if wanted <= gives:
        return
    message = (
        f"the quantizer needs {wanted} GPUs for the {role}, and {told}: name GPUs with more memory, {instead}, or "
        f"remove {role}.quantization"
    )
    raise Refused((Refusal(reason="GpuMemoryTooSmall", path=f"spec.placement.gpu.{field}", message=message),))


def _own_image(resolution: Resolution) -> str:
    """The image that builds, where no shipped row names it; empty for those, however a spec comes to one."""
    return "" if resolution.stock_image else resolution.image.reference


def _mig_profile(spec: SpeculativeModelSpec) -> str:
    # Where slices are mixed on a GPU, the resource names the slice and the product label does not.
    found = _MIG_PROFILE.search(spec.placement.gpu.extended_resource or "")
    return found[1] if found else ""


def _gpu(spec: SpeculativeModelSpec, product: str, *, count: int) -> JobGpu:
    gpu = spec.placement.gpu
    return JobGpu(
        resource_name=gpu.extended_resource,
        resource_claim_template=gpu.build_resource_claim_template or gpu.resource_claim_template,
        count=count,
        product=product,
    )
