"""What only models and Jobs tell, given to a rendering without a cluster; what stands for it where it is missing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from specdec_operator.api.v1alpha1.model_facts import DataSetFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactStatus
    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.planning.artifact_request import ArtifactRequest
    from specdec_operator.planning.steps import ContentStep

UNKNOWN_COMMIT: Final = "0" * 40
UNKNOWN_DIGEST: Final = "0" * 64


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
        artifacts: What ModelArtifacts of a cluster say, by their names: it is taken where nothing else is given.
    """

    models: Mapping[str, ModelFacts] = field(default_factory=dict)
    data_sets: Mapping[str, DataSetFacts] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    assembly: str = ""
    shared_claims: frozenset[str] = frozenset()
    artifacts: Mapping[str, ModelArtifactStatus] = field(default_factory=dict)

    def with_artifacts(self, requests: Iterable[ArtifactRequest]) -> Known:
        """The same with what the artifacts of a model say."""
        said = {r.role: self.artifacts[r.name] for r in requests if r.name in self.artifacts}
        models = {role: status.facts for role, status in said.items() if status.facts}
        data_sets = {role: status.data_set for role, status in said.items() if status.data_set}
        digests = {role: status.digest for role, status in said.items() if status.digest}
        return replace(
            self,
            models={**models, **self.models},
            data_sets={**data_sets, **self.data_sets},
            engines={**digests, **self.engines},
            assembly=self.assembly or digests.get("assembly", ""),
        )


@dataclass(frozen=True)
class Missing:
    """One thing that is not known.

    Attributes:
        what: As in "the target's facts".
        told_by: What tells it.
    """

    what: str
    told_by: str

    def __str__(self) -> str:
        """Both in one line."""
        return f"{self.what}: {self.told_by}"


def missing_facts(content: ContentStep, known: Known) -> tuple[Missing, ...]:
    """Which models' facts are not known; nothing can be planned without."""
    return tuple(
        Missing(
            f"the {model.role}'s facts", f"status.facts of the ModelArtifact {model.name}, or the files of the model"
        )
        for model in content.models
        if model.role not in known.models
    )


def with_content(content: ContentStep, known: Known) -> tuple[Known, tuple[Missing, ...]]:
    """What engines are named after, with placeholders for what of it is not known, and what that is."""
    commits = [m for m in content.models if m.spec.fetch and not known.models[m.role].commit]
    texts = [request for request in content.texts if not _tells(request, known.data_sets.get(request.role))]
    models = {m.role: known.models[m.role].model_copy(update={"commit": UNKNOWN_COMMIT}) for m in commits}
    data_sets = {request.role: DataSetFacts(commit=UNKNOWN_COMMIT) for request in texts}
    filled = replace(known, models={**known.models, **models}, data_sets={**known.data_sets, **data_sets})
    missing = (
        *(
            Missing(
                f"the {m.role}'s commit, which its engine is named after",
                "give it in the facts, or inspect a directory named by it",
            )
            for m in commits
        ),
        *(Missing(_text_words(request), f"status.dataSet of the ModelArtifact {request.name}") for request in texts),
    )
    return filled, missing


def with_digests(engines: Sequence[ArtifactRequest], known: Known) -> tuple[Known, tuple[Missing, ...]]:
    """What Jobs said, with placeholders for what of it is not known, and what that is."""
    unknown = [engine for engine in engines if not known.engines.get(engine.role)]
    missing = [
        Missing(f"the digest of the {engine.role}", f"status.digest of the ModelArtifact {engine.name}")
        for engine in unknown
    ]
    if not known.assembly:
        missing.append(
            Missing("the digest of the assembled model repository", "status.digest of the assembly's ModelArtifact")
        )
    digests = {engine.role: UNKNOWN_DIGEST for engine in unknown}
    filled = replace(known, engines={**known.engines, **digests}, assembly=known.assembly or UNKNOWN_DIGEST)
    return filled, tuple(missing)


def _text_words(request: ArtifactRequest) -> str:
    return (
        f"the {request.role}'s {'commit' if request.spec.fetch else 'contentDigest'}, which its engine is named after"
    )


def _tells(request: ArtifactRequest, data_set: DataSetFacts | None) -> bool:
    return bool(data_set and (data_set.commit if request.spec.fetch else data_set.content_digest))
