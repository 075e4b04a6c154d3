"""The pure steps from an admitted spec to what its pods run: content, pair and engines, serving.

Each step is made from the one before and from what only its artifacts tell, so that the order stands here alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specdec_operator.planning.acquire import acquire
from specdec_operator.planning.calibration import acquire_texts
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.pair import check_pair
from specdec_operator.planning.plan import claims_of, plan_serving

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.api.v1alpha1.status import Pin
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.planning.pair import Verdict
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.planning.resolution import Resolution


@dataclass(frozen=True, kw_only=True)
class ContentFacts:
    """What the content says of itself.

    Attributes:
        models: Facts per role.
        data_sets: Facts of the quantizers' texts per role, as in `target-calibration`.
    """

    models: Mapping[str, ModelFacts]
    data_sets: Mapping[str, DataSetFacts] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ContentStep:
    """The first step: what is fetched or inspected, before anything can be compared or built.

    Attributes:
        models: The model artifacts, target first.
        texts: The artifacts of the quantizers' texts.
    """

    spec: SpeculativeModelSpec
    resolution: Resolution
    models: tuple[ArtifactRequest, ...]
    texts: tuple[ArtifactRequest, ...]

    @property
    def requests(self) -> tuple[ArtifactRequest, ...]:
        """Everything that is fetched or inspected."""
        return (*self.models, *self.texts)

    def pair(self, facts: ContentFacts) -> EngineStep:
        """The next step, with the facts of everything that was asked for.

        Raises:
            Refused: The pair does not fit, or its engines can't be built or held.
        """
        facts = ContentFacts(models=_as_served(self.resolution, facts.models), data_sets=facts.data_sets)
        verdict = check_pair(self.spec, self.resolution, facts.models)
        places = {request.role: request.yields for request in self.requests if request.yields}
        engines = plan_engines(self.spec, self.resolution, facts=facts.models, models=places, data_sets=facts.data_sets)
        return EngineStep(content=self, facts=facts, verdict=verdict, requests=engines)


@dataclass(frozen=True, kw_only=True)
class EngineStep:
    """The second step: a pair that fits, and its engines.

    Attributes:
        verdict: What was compared.
        requests: The engine artifacts, target first; empty on backends that build none.
    """

    content: ContentStep
    facts: ContentFacts
    verdict: Verdict
    requests: tuple[ArtifactRequest, ...]

    @property
    def claims(self) -> frozenset[str]:
        """The claims that the serving pods mount."""
        return claims_of((*self.content.models, *self.requests))

    def serving(self, *, digests: Mapping[str, str], single_node: Collection[str]) -> ServingPlan:
        """The last step: what the serving pods run.

        Args:
            digests: Manifest digest per engine role.
            single_node: Claims whose volume one node mounts at a time.
        """
        return plan_serving(
            self.content.spec,
            self.content.resolution,
            facts=self.facts.models,
            models=self.content.models,
            engines=self.requests,
            engine_digests=digests,
            single_node=single_node,
        )


def _as_served(resolution: Resolution, facts: Mapping[str, ModelFacts]) -> Mapping[str, ModelFacts]:
    """Facts as the backend takes them: the LLM API does not stretch a context by YaRN, and cuts what is longer."""
    if resolution.backend != "LLMAPI":
        return facts
    return {
        role: fact.model_copy(update={"context_length": fact.unstretched_context_length or fact.context_length})
        for role, fact in facts.items()
    }


def acquire_content(
    spec: SpeculativeModelSpec,
    resolution: Resolution,
    *,
    configuration: OperatorConfiguration,
    pins: Sequence[Pin] = (),
    refresh: str = "",
) -> ContentStep:
    """What a spec needs to be fetched or inspected.

    Args:
        pins: What status keeps: a moving revision that was resolved once is asked for by its commit from then on.
        refresh: The value of the annotation `specdec.dev/refresh`; a new one asks for moving revisions anew.
    """
    return ContentStep(
        spec=spec,
        resolution=resolution,
        models=acquire(spec, resolution, configuration=configuration, pins=pins, refresh=refresh),
        texts=acquire_texts(spec, resolution, configuration=configuration, pins=pins, refresh=refresh),
    )
