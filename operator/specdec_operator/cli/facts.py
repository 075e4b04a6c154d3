"""What models and Jobs said: a facts file, and directories that hold the models."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, ValidationError

from specdec_operator.api.findings import as_stored, check_model
from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.model_artifact import ModelArtifactStatus
from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
from specdec_operator.api.v1alpha1.scalars import Digest, ObjectName
from specdec_operator.cli.documents import read_documents
from specdec_operator.cli.errors import FactsError
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.resources.known import Known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from specdec_operator.api.v1alpha1.source import ModelSource
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.cli.documents import Manifest

ROLES: Final = ("target", "draft")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class _Facts(ModelFacts):
    """A model's facts, with keys that are no facts refused."""

    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, Field(max_length=1024)] = ""
    """Which model they are of: the hub's repository, CLAIM/SUBPATH or the image."""


class _Texts(DataSetFacts):
    """Facts of a data set, with keys that are no facts refused."""

    model_config = ConfigDict(extra="forbid")


class FactsFile(ApiModel):
    """A facts file."""

    target: _Facts | None = None
    """The target's `status.facts`."""
    draft: _Facts | None = None
    """The draft's `status.facts`."""
    target_calibration: _Texts | None = None
    """`status.dataSet` of the texts that the target's quantizer looks at."""
    draft_calibration: _Texts | None = None
    """`status.dataSet` of the texts that the draft's quantizer looks at."""
    engines: Annotated[dict[Literal["target-engine", "draft-engine"], Digest], Field(max_length=2)] = {}  # noqa: RUF012 - pydantic copies defaults
    """Each built engine's `status.digest`."""
    assembly: Digest = ""
    """The assembly's `status.digest`."""
    shared_claims: Annotated[list[ObjectName], Field(max_length=16)] = []  # noqa: RUF012 - the same
    """Claims that many nodes mount at a time (ReadWriteMany); other existing claims are taken to be of one node."""


def read_facts_file(file: str, *, spec: SpeculativeModelSpec | None = None) -> Known:
    """Read a facts file.

    Args:
        spec: What the facts must be of.

    Raises:
        UnreadableFileError: There is no such file, or it is not YAML.
        FactsError: It holds something else, or the facts of another model.
    """
    documents = read_documents(file)
    if documents and all(document.kind == "ModelArtifact" for document in documents):
        return Known(artifacts=dict(_artifact(document) for document in documents))
    if len(documents) != 1:
        raise FactsError(
            f"{file}: give ModelArtifacts, or one document with target, draft, targetCalibration, draftCalibration, "
            "engines and assembly"
        )
    content: dict[str, Any] = as_stored(documents[0].content)
    if findings := check_model(FactsFile, content, written=documents[0].document.written):
        raise FactsError("\n".join(f"{file}: {found.path}: {found.message}" for found in findings))
    facts = FactsFile.model_validate(content)
    if spec and (others := list(_of_others(facts, spec))):
        raise FactsError(f"{file}: the facts of another model: {'; '.join(others)}")
    return _known(facts)


def _artifact(document: Manifest) -> tuple[str, ModelArtifactStatus]:
    try:
        return document.name, ModelArtifactStatus.model_validate(as_stored(document.content.get("status") or {}))
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(map(str, ("status", *wrong["loc"])))
        raise FactsError(f"{document.place}: {place}: {wrong['msg']}") from error


def _known(facts: FactsFile) -> Known:
    models = {role: model for role, model in (("target", facts.target), ("draft", facts.draft)) if model}
    texts = (("target-calibration", facts.target_calibration), ("draft-calibration", facts.draft_calibration))
    return Known(
        models=models,
        data_sets={role: data_set for role, data_set in texts if data_set},
        engines={str(role): digest for role, digest in facts.engines.items()},
        assembly=facts.assembly,
        shared_claims=frozenset(facts.shared_claims),
    )


def _of_others(facts: FactsFile, spec: SpeculativeModelSpec) -> Iterator[str]:
    """What shows that facts are of other models than a spec's."""
    for role, told, model in (("target", facts.target, spec.target), ("draft", facts.draft, spec.draft)):
        if told and model:
            yield from _differences(role, told, model.source)
        elif told:
            yield f"it has a {role}, and {spec.speculation.method} has none"


def _differences(role: str, told: _Facts, source: ModelSource) -> Iterator[str]:
    wanted = _name_of(source)
    if told.source and told.source != wanted:
        yield f"its {role} is {told.source}, the model's is {wanted}"
    revision = source.hugging_face.revision if source.hugging_face else None
    if revision and _COMMIT.fullmatch(revision) and told.commit not in ("", revision):
        yield f"its {role} is of commit {told.commit}, the model's of {revision}"


def _name_of(source: ModelSource) -> str:
    if source.hugging_face:
        return source.hugging_face.repository
    if source.persistent_volume_claim:
        place, inside = source.persistent_volume_claim.claim_name, source.persistent_volume_claim.sub_path
    elif source.image:
        place, inside = source.image.reference, source.image.sub_path
    else:
        raise ValueError("a source without a member passed the API's rules")
    return f"{place}/{inside}" if inside else place


def inspect_models(given: Sequence[str]) -> dict[str, ModelFacts]:
    """Read the facts of models that lie in directories, per role.

    Args:
        given: Each as in `target=DIRECTORY`. A directory named by a commit, as the hub's cache has them, is of it.

    Raises:
        FactsError: A role is unknown or given twice, or a directory holds no supported model.
    """
    models: dict[str, ModelFacts] = {}
    for entry in given:
        role, facts = _inspected(entry)
        if role in models:
            raise FactsError(f"--model-files {entry}: the {role} is given twice")
        models[role] = facts
    return models


def _inspected(entry: str) -> tuple[str, ModelFacts]:
    role, equals, name = entry.partition("=")
    if not equals or role not in ROLES:
        raise FactsError(f"--model-files {entry}: write target=DIRECTORY or draft=DIRECTORY")
    directory = Path(name).resolve()
    commit = directory.name if _COMMIT.fullmatch(directory.name) else ""
    try:
        return role, ModelFacts.model_validate(read_facts(directory, commit=commit).to_wire())
    except ProgramFailure as failure:
        raise FactsError(f"--model-files {entry}: {failure.reason}: {failure.message}") from failure


def joined(known: Known, inspected: dict[str, ModelFacts]) -> Known:
    """A facts file and inspected directories: the directories tell the models, the file their commits and the rest.

    Raises:
        FactsError: A directory holds another model than the file speaks of.
    """
    models = dict(known.models)
    for role, facts in inspected.items():
        told = models.get(role)
        if told and told.content_digest != facts.content_digest:
            raise FactsError(
                f"--model-files {role}: the directory holds another model than the facts are of (contentDigest "
                f"{facts.content_digest[:10]}…, not {told.content_digest[:10]}…): give one of them"
            )
        commit = facts.commit or (told.commit if told else "")
        models[role] = facts.model_copy(update={"commit": commit})
    return replace(known, models=models)
