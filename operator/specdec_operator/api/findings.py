"""Everything that is wrong with an object, found without a cluster and said as the API server would.

Two kinds of findings: structural ones (a missing or unknown field, a bound, a shape) come from pydantic; rules that
span fields come from the twins of the CEL expressions. A field with a structural finding silences only the rules that
read it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from specdec_operator.api.broken_rules import broken_rules
from specdec_operator.api.sentences import place_of, sentence_of
from specdec_operator.api.tree import Location
from specdec_operator.api.v1alpha1 import API_VERSION
from specdec_operator.api.v1alpha1.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from specdec_operator.api.model import ApiModel


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        path: The field, as in `spec.placement.draftDevices`; empty for the object itself.
        message: What is wrong and what to do.
        reason: The condition's reason, where the operator refuses it rather than the API server.
    """

    path: str
    message: str
    reason: str = ""


Written = Callable[[Location], str | None]
"""Tells the characters of a scalar that stands in a file without quotes."""


def unwritten(_location: Location) -> str | None:
    """Tells nothing: of what no file holds."""
    return None


def check_document(document: Mapping[str, Any], *, written: Written = unwritten) -> list[Finding]:
    """Find everything that is wrong with an object of this API, in one go.

    Args:
        document: The object as YAML or JSON has it.
        written: How the file has it, where there is one.

    Returns:
        All findings, structural ones first; empty for an object that the API server would take.
    """
    model = _model_of(document)
    if model is None:
        known = ", ".join(resource.kind for resource in KINDS)
        return [Finding("kind", _wrong(f"one of {known}", document.get("kind")))]
    if document.get("apiVersion") != API_VERSION:
        return [Finding("apiVersion", _wrong(API_VERSION, document.get("apiVersion")))]
    return _check(model, as_stored(document), written)


def _wrong(wanted: str, value: Any) -> str:
    return f"required, but missing: must be {wanted}" if value is None else f"must be {wanted}; it is {value!r}"


def _model_of(document: Mapping[str, Any]) -> type[ApiModel] | None:
    return {resource.kind: resource.model for resource in KINDS}.get(str(document.get("kind")))


def place_in(document: Mapping[str, Any], location: Location) -> str:
    """Write a place in an object as findings do: `spec.pod.labels[app]`."""
    model = _model_of(document)
    return place_of(model, location) if model else ".".join(map(str, location))


def as_stored(value: Any) -> Any:
    """Take a value as the API server would: nulls in maps count as absent, whole floats as integers, keys as text."""
    if isinstance(value, dict):
        return {str(key): as_stored(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [as_stored(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check(model: type[ApiModel], document: dict[str, Any], written: Written) -> list[Finding]:
    # Only an operator writes status, and what metadata may hold is Kubernetes' own business.
    document = {**document, "metadata": _named(document.get("metadata"))}
    document.pop("status", None)
    return check_model(model, document, written=written)


def check_model(model: type[ApiModel], document: dict[str, Any], *, written: Written = unwritten) -> list[Finding]:
    """Find everything that is wrong with a document of a model, structural findings first; it has no nulls."""
    errors = _errors(model, document)
    findings = [
        Finding(place_of(model, error["loc"]), sentence_of(model, error["loc"], error, written=written(error["loc"])))
        for error in errors
    ]
    spoilt = frozenset(error["loc"] for error in errors)
    return [*findings, *(Finding(path, rule.message) for rule, path in broken_rules(model, document, spoilt))]


def _named(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, dict):
        return {}
    if "name" not in metadata and "generateName" in metadata:
        return {"name": f"{metadata['generateName']}xxxxx"}
    return {key: value for key, value in metadata.items() if key == "name"}


def _errors(model: type[ApiModel], document: dict[str, Any]) -> list[ErrorDetails]:
    try:
        # Strict, as the API server is: "3" is no number. JSON, because strict Python input refuses lists for tuples.
        model.model_validate_json(json.dumps(document, default=str), strict=True)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []
