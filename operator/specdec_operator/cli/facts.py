"""What models and Jobs said: a facts file, or directories that hold the models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from specdec_operator.api.model import ApiModel, StatusModel
from specdec_operator.api.v1alpha1.model_facts import DataSetFacts, ModelFacts
from specdec_operator.api.v1alpha1.scalars import Digest, ObjectName
from specdec_operator.cli.documents import read_documents
from specdec_operator.cli.errors import FactsError
from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.model_facts import read_facts
from specdec_operator.resources.known import Known

if TYPE_CHECKING:
    from collections.abc import Sequence

ROLES = ("target", "draft")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def _without_unknown(value: object, model: type[StatusModel]) -> object:
    known = {field.alias for field in model.model_fields.values()}
    if isinstance(value, dict) and (unknown := sorted(set(value) - known)):
        raise ValueError(f"unknown keys {', '.join(unknown)}")
    return value


class _Facts(ModelFacts):
    """A model's facts, with keys that are no facts refused."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: object) -> object:
        return _without_unknown(value, ModelFacts)


class _Texts(DataSetFacts):
    """Facts of a data set, with keys that are no facts refused."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: object) -> object:
        return _without_unknown(value, DataSetFacts)


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


def read_facts_file(file: str) -> Known:
    """Read a facts file.

    Raises:
        UnreadableFileError: There is no such file, or it is no YAML.
        FactsError: It holds something else.
    """
    documents = read_documents(file)
    if len(documents) != 1:
        raise FactsError(
            f"{file}: give one document with target, draft, targetCalibration, draftCalibration, engines and assembly"
        )
    try:
        facts = FactsFile.model_validate(documents[0].content)
    except ValidationError as error:
        said = [f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()]
        raise FactsError(f"{file}: {'; '.join(said)}") from error
    models = {role: model for role, model in (("target", facts.target), ("draft", facts.draft)) if model}
    texts = (("target-calibration", facts.target_calibration), ("draft-calibration", facts.draft_calibration))
    return Known(
        models=models,
        data_sets={role: data_set for role, data_set in texts if data_set},
        engines={str(role): digest for role, digest in facts.engines.items()},
        assembly=facts.assembly,
        shared_claims=frozenset(facts.shared_claims),
    )


def inspect_models(given: Sequence[str]) -> Known:
    """Read the facts of models that lie in directories.

    Args:
        given: Each as in `target=DIRECTORY`. A directory named by a commit, as the hub's cache has them, is of it.

    Raises:
        FactsError: A role is unknown, or a directory holds no supported model.
    """
    return Known(models=dict(_inspected(entry) for entry in given))


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
