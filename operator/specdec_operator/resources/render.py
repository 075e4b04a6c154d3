"""Everything that the operator applies for a model, in the order in which it does, without a cluster.

What only a cluster knows has a placeholder: owners' UIDs are NIL_UID. What models say of themselves has to be given,
since nothing can be planned without. Commits and digests that are not given are zeros, and every object that holds one
or is named after one says so in the annotation `specdec.dev/placeholder`. An artifact that another model made before
keeps what that one asked of its Job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
from specdec_operator.planning.admission import admit
from specdec_operator.planning.steps import ContentFacts, acquire_content
from specdec_operator.resources.artifacts import model_artifact
from specdec_operator.resources.jobs import job_name, render_job
from specdec_operator.resources.known import missing_facts, with_content, with_digests
from specdec_operator.resources.labels import PLACEHOLDER, REFRESH, RESTART
from specdec_operator.resources.serving import controller_revision, render_revision, revision_files
from specdec_operator.resources.workload import deployment, service, store_claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.metadata import ObjectMeta
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.planning.pair import Verdict
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.planning.steps import EngineStep
    from specdec_operator.resources.known import Known, Missing
    from specdec_operator.resources.template import JsonObject, Templates
    from specdec_operator.runtimes.table import CapabilityTable

NIL_UID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """What was rendered.

    Attributes:
        objects: In the order in which they are applied.
        missing: What was not given, each with what would tell it.
        verdict: What was compared of the pair; None where the models' facts are missing.
    """

    objects: tuple[JsonObject, ...]
    missing: tuple[str, ...]
    verdict: Verdict | None = None


@dataclass(frozen=True, kw_only=True)
class Renderer:
    """Renders models as an operator of this configuration would."""

    table: CapabilityTable
    configuration: OperatorConfiguration
    templates: Templates

    def render(self, model: SpeculativeModel, known: Known) -> Rendering:
        """Render a model as far as what is known goes.

        Raises:
            Refused: The operator would refuse the spec, or the pair.
        """
        model = model.model_copy(update={"metadata": _identified(model.metadata)})
        refresh = model.metadata.annotations.get(REFRESH, "")
        resolution = admit(model, table=self.table, configuration=self.configuration, refresh=refresh)
        content = acquire_content(model.spec, resolution, configuration=self.configuration, refresh=refresh)
        objects = [*_store(model, resolution), *self._artifacts(model, content.requests)]
        known = known.with_artifacts(content.requests)
        missing = missing_facts(content, known)
        if missing:
            return Rendering(objects=tuple(objects), missing=tuple(map(str, missing)))
        known, missing = with_content(content, known)
        facts = {request.role: known.models[request.role] for request in content.models}
        engines = content.pair(ContentFacts(models=facts, data_sets=known.data_sets))
        following = self._following(model, engines, known, missing=missing if engines.requests else ())
        return replace(following, objects=(*objects, *following.objects), verdict=engines.verdict)

    def _following(
        self, model: SpeculativeModel, engines: EngineStep, known: Known, *, missing: tuple[Missing, ...]
    ) -> Rendering:
        """What follows a pair that fits."""
        single_node = engines.claims - known.shared_claims - _shared_store(engines.content.resolution)
        known = known.with_artifacts((*engines.requests, engines.serving(digests={}, single_node=()).assembly))
        known, digests = with_digests(engines.requests, known)
        plan = engines.serving(digests=known.engines, single_node=single_node)
        everything = (*missing, *digests)
        objects = [
            *_marked(self._artifacts(model, engines.requests), missing),
            *self._artifacts(model, (plan.assembly,)),
            *self._serving(model, plan, known, missing=everything),
        ]
        return Rendering(objects=tuple(objects), missing=tuple(map(str, everything)))

    def _artifacts(self, model: SpeculativeModel, requests: Sequence[ArtifactRequest]) -> list[JsonObject]:
        return [document for request in requests for document in self._artifact(model, request)]

    def _artifact(self, model: SpeculativeModel, request: ArtifactRequest) -> list[JsonObject]:
        document = model_artifact(request, owner=model)
        artifact = ModelArtifact.model_validate(document)
        artifact = artifact.model_copy(update={"metadata": _identified(artifact.metadata)})
        name = job_name(request.name, attempt=1)
        first = render_job(artifact, name=name, templates=self.templates, hours=self.configuration.job_hours)
        return [document, first.config_map, first.job]

    def _serving(
        self, model: SpeculativeModel, plan: ServingPlan, known: Known, *, missing: tuple[Missing, ...]
    ) -> list[JsonObject]:
        restart = model.metadata.annotations.get(RESTART, "")
        revision = render_revision(
            model, plan, assembly_digest=known.assembly, templates=self.templates, restart=restart
        )
        stored = [controller_revision(model, revision, number=1), revision_files(model, revision, uid=NIL_UID)]
        running = deployment(model, revision, templates=self.templates)
        return [*_marked(stored, missing), service(model, templates=self.templates), *_marked([running], missing)]


def _marked(objects: Iterable[JsonObject], missing: Sequence[Missing]) -> list[JsonObject]:
    """Objects that say which parts of them are placeholders."""
    if not missing:
        return list(objects)
    mark = {PLACEHOLDER: "; ".join(each.what for each in missing)}
    return [{**document, "metadata": _annotated(document["metadata"], mark)} for document in objects]


def _annotated(metadata: JsonObject, mark: dict[str, str]) -> JsonObject:
    return {**metadata, "annotations": {**metadata.get("annotations", {}), **mark}}


def _identified(metadata: ObjectMeta) -> ObjectMeta:
    return metadata.model_copy(update={"uid": metadata.uid or NIL_UID})


def _store(model: SpeculativeModel, resolution: Resolution) -> list[JsonObject]:
    claim = resolution.storage.claim if resolution.storage else None
    return [store_claim(claim, namespace=model.metadata.namespace)] if claim else []


def _shared_store(resolution: Resolution) -> frozenset[str]:
    claim = resolution.storage.claim if resolution.storage else None
    shared = claim is not None and "ReadWriteMany" in claim.access_modes
    return frozenset({claim.claim_name}) if claim and shared else frozenset()
