"""Everything that the operator applies for a model, in the order in which it does, without a cluster.

What only a cluster knows has a placeholder: owners' UIDs are NIL_UID. What only models and Jobs know has to be given;
rendering stops where something is missing, since all that follows is named after it. An artifact that another model
made before keeps what that one asked of its Job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.model_artifact import ModelArtifact
from specdec_operator.planning.acquire import acquire
from specdec_operator.planning.admission import admit
from specdec_operator.planning.calibration import acquire_texts
from specdec_operator.planning.engines import plan_engines
from specdec_operator.planning.pair import check_pair
from specdec_operator.planning.plan import claims_of, plan_serving
from specdec_operator.resources.artifacts import model_artifact
from specdec_operator.resources.jobs import job_name, render_job
from specdec_operator.resources.labels import REFRESH, RESTART
from specdec_operator.resources.serving import controller_revision, render_revision, revision_files
from specdec_operator.resources.workload import deployment, service, store_claim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.api.v1alpha1.metadata import ObjectMeta
    from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel
    from specdec_operator.planning.acquire import ArtifactRequest
    from specdec_operator.planning.plan import ServingPlan
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.resources.template import JsonObject, Templates
    from specdec_operator.runtimes.table import CapabilityTable

NIL_UID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, kw_only=True)
class Known:
    """What models and Jobs said.

    Attributes:
        models: Facts per role.
        data_sets: Facts of the quantizers' texts per role, as in `target-calibration`.
        engines: Manifest digest per engine role, as in `target-engine`.
        assembly: Digest of the assembled model repository; empty if unknown.
        shared_claims: Claims that many nodes mount at a time; other claims are taken to be of one node, as the
            store's is unless the spec asks for more.
    """

    models: Mapping[str, ModelFacts] = field(default_factory=dict)
    data_sets: Mapping[str, DataSetFacts] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    assembly: str = ""
    shared_claims: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """What was rendered.

    Attributes:
        objects: In the order in which they are applied.
        missing: What was not given and kept the rest from being rendered, each with what would tell it.
    """

    objects: tuple[JsonObject, ...]
    missing: tuple[str, ...]


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
        models = acquire(model.spec, resolution, configuration=self.configuration, refresh=refresh)
        texts = acquire_texts(model.spec, resolution, configuration=self.configuration, refresh=refresh)
        objects = [*_store(model, resolution), *self._artifacts(model, (*models, *texts))]
        missing = (*_missing_facts(models, known), *_missing_texts(texts, known))
        if missing:
            return Rendering(objects=tuple(objects), missing=missing)
        return self._planned(model, resolution, (models, texts), known=known, objects=objects)

    def _planned(
        self,
        model: SpeculativeModel,
        resolution: Resolution,
        acquired: tuple[Sequence[ArtifactRequest], Sequence[ArtifactRequest]],
        *,
        known: Known,
        objects: list[JsonObject],
    ) -> Rendering:
        models, texts = acquired
        facts = {request.role: known.models[request.role] for request in models}
        check_pair(model.spec, resolution, facts)
        places = {request.role: request.yields for request in (*models, *texts) if request.yields}
        engines = plan_engines(model.spec, resolution, facts=facts, models=places, data_sets=known.data_sets)
        missing = _missing_commits(models, known) if engines else ()
        if missing:
            return Rendering(objects=tuple(objects), missing=missing)
        objects += self._artifacts(model, engines)
        plan = plan_serving(
            model.spec,
            resolution,
            facts=facts,
            models=models,
            engines=engines,
            engine_digests=known.engines,
            single_node=claims_of((*models, *engines)) - known.shared_claims - _shared_store(resolution),
        )
        objects += self._artifacts(model, [plan.assembly])
        missing = _missing_digests(engines, known)
        if not missing:
            objects += self._serving(model, plan, known)
        return Rendering(objects=tuple(objects), missing=missing)

    def _artifacts(self, model: SpeculativeModel, requests: Sequence[ArtifactRequest]) -> list[JsonObject]:
        return [document for request in requests for document in self._artifact(model, request)]

    def _artifact(self, model: SpeculativeModel, request: ArtifactRequest) -> list[JsonObject]:
        document = model_artifact(request, owner=model)
        artifact = ModelArtifact.model_validate(document)
        artifact = artifact.model_copy(update={"metadata": _identified(artifact.metadata)})
        first = render_job(artifact, name=job_name(request.name, attempt=1), templates=self.templates)
        return [document, first.config_map, first.job]

    def _serving(self, model: SpeculativeModel, plan: ServingPlan, known: Known) -> list[JsonObject]:
        restart = model.metadata.annotations.get(RESTART, "")
        revision = render_revision(
            model, plan, assembly_digest=known.assembly, templates=self.templates, restart=restart
        )
        return [
            controller_revision(model, revision, number=1),
            revision_files(model, revision, uid=NIL_UID),
            service(model, templates=self.templates),
            deployment(model, revision, templates=self.templates),
        ]


def _identified(metadata: ObjectMeta) -> ObjectMeta:
    return metadata.model_copy(update={"uid": metadata.uid or NIL_UID})


def _store(model: SpeculativeModel, resolution: Resolution) -> list[JsonObject]:
    claim = resolution.storage.claim if resolution.storage else None
    return [store_claim(claim, namespace=model.metadata.namespace)] if claim else []


def _shared_store(resolution: Resolution) -> frozenset[str]:
    claim = resolution.storage.claim if resolution.storage else None
    shared = claim is not None and "ReadWriteMany" in claim.access_modes
    return frozenset({claim.claim_name}) if claim and shared else frozenset()


def _missing_facts(models: Sequence[ArtifactRequest], known: Known) -> tuple[str, ...]:
    return tuple(
        f"the {model.role}'s facts: status.facts of the ModelArtifact {model.name}, or the files of the model"
        for model in models
        if model.role not in known.models
    )


def _missing_texts(texts: Sequence[ArtifactRequest], known: Known) -> tuple[str, ...]:
    return tuple(
        f"the {request.role}'s {'commit' if request.spec.fetch else 'contentDigest'}, which its engine is named after: "
        f"status.dataSet of the ModelArtifact {request.name}"
        for request in texts
        if not _tells(request, known.data_sets.get(request.role))
    )


def _tells(request: ArtifactRequest, data_set: DataSetFacts | None) -> bool:
    return bool(data_set and (data_set.commit if request.spec.fetch else data_set.content_digest))


def _missing_commits(models: Sequence[ArtifactRequest], known: Known) -> tuple[str, ...]:
    return tuple(
        f"the {model.role}'s commit, which its engine is named after: give it in the facts, or inspect a directory "
        "named by it"
        for model in models
        if model.spec.fetch and not known.models[model.role].commit
    )


def _missing_digests(engines: Sequence[ArtifactRequest], known: Known) -> tuple[str, ...]:
    missing = [
        f"the digest of the {engine.role}: status.digest of the ModelArtifact {engine.name}"
        for engine in engines
        if not known.engines.get(engine.role)
    ]
    if not known.assembly:
        missing.append("the digest of the assembled model repository: status.digest of the assembly's ModelArtifact")
    return tuple(missing)
