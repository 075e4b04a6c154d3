"""What only models and Jobs tell, given to a rendering without a cluster, and what of it is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.planning.steps import ContentStep


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


def missing_facts(content: ContentStep, known: Known) -> tuple[str, ...]:
    """What of the content's facts is not known, each with what would tell it."""
    models = (
        f"the {model.role}'s facts: status.facts of the ModelArtifact {model.name}, or the files of the model"
        for model in content.models
        if model.role not in known.models
    )
    texts = (
        f"the {request.role}'s {'commit' if request.spec.fetch else 'contentDigest'}, which its engine is named after: "
        f"status.dataSet of the ModelArtifact {request.name}"
        for request in content.texts
        if not _tells(request, known.data_sets.get(request.role))
    )
    return (*models, *texts)


def missing_commits(models: Sequence[ArtifactRequest], known: Known) -> tuple[str, ...]:
    """Which downloaded models' commits are not known, where engines are named after them."""
    return tuple(
        f"the {model.role}'s commit, which its engine is named after: give it in the facts, or inspect a directory "
        "named by it"
        for model in models
        if model.spec.fetch and not known.models[model.role].commit
    )


def missing_digests(engines: Sequence[ArtifactRequest], known: Known) -> tuple[str, ...]:
    """What of the Jobs' digests is not known, each with what would tell it."""
    missing = [
        f"the digest of the {engine.role}: status.digest of the ModelArtifact {engine.name}"
        for engine in engines
        if not known.engines.get(engine.role)
    ]
    if not known.assembly:
        missing.append("the digest of the assembled model repository: status.digest of the assembly's ModelArtifact")
    return tuple(missing)


def _tells(request: ArtifactRequest, data_set: DataSetFacts | None) -> bool:
    return bool(data_set and (data_set.commit if request.spec.fetch else data_set.content_digest))
