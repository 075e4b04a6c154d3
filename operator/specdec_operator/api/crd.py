"""CustomResourceDefinitions, made from the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from specdec_operator.api.model_schema import draw
from specdec_operator.api.structural import Schema, structural
from specdec_operator.api.v1alpha1 import GROUP, VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.model import ApiModel, StatusModel

_OBJECT_FIELDS: Final[Mapping[str, Schema]] = {
    "apiVersion": {"type": "string", "description": "The version of this object's schema."},
    "kind": {"type": "string", "description": "What this object is."},
    "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
}


@dataclass(frozen=True, kw_only=True)
class PrinterColumn:
    """A column of `kubectl get`.

    Attributes:
        name: The heading.
        path: JSONPath into the object.
        type: How it is printed.
        wide: Only with `-o wide`.
    """

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    wide: bool = False


@dataclass(frozen=True, kw_only=True)
class CustomResource:
    """A kind of the API.

    Attributes:
        model: The kind, with `spec` and `status`.
        initial_status: The status of an object that no operator has seen yet.
        plural: Its name in URLs.
        short_names: What else `kubectl` takes.
        columns: What `kubectl get` prints.
        scales: Whether it has a scale subresource, by `.spec.replicas`, `.status.replicas` and `.status.selector`.
    """

    model: type[ApiModel]
    initial_status: StatusModel
    plural: str
    short_names: tuple[str, ...] = ()
    columns: tuple[PrinterColumn, ...]
    scales: bool = False

    @property
    def kind(self) -> str:
        """The kind's name."""
        return self.model.__name__

    @property
    def name(self) -> str:
        """The CustomResourceDefinition's name."""
        return f"{self.plural}.{GROUP}"


def definition(resource: CustomResource) -> dict[str, Any]:
    """Make the CustomResourceDefinition.

    Raises:
        ApiDefinitionError: The model cannot be an API.
    """
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "categories": ["specdec"],
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.name},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [_version(resource)]},
    }


def _version(resource: CustomResource) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}}
    if resource.scales:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in resource.columns],
        "subresources": subresources,
        "schema": {"openAPIV3Schema": object_schema(resource)},
    }


def _column(column: PrinterColumn) -> dict[str, Any]:
    printed: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**printed, "priority": 1} if column.wide else printed


def object_schema(resource: CustomResource) -> Schema:
    """Make the structural schema of a whole object.

    The API server knows `metadata` itself: the schema leaves it open. `status` has a default as a whole, so that no
    tool takes an object for current that no operator has seen.

    Raises:
        ApiDefinitionError: The model cannot be an API.
    """
    drawn = draw(resource.model)
    definitions = drawn.pop("$defs")
    parts = {name: drawn["properties"][name] for name in ("spec", "status")}
    schema = structural({**drawn, "properties": parts, "required": ["spec"]}, definitions, "")
    schema["properties"]["status"]["default"] = _initial(resource.initial_status)
    schema["properties"] = {**_OBJECT_FIELDS, **schema["properties"]}
    return schema


def _initial(status: StatusModel) -> dict[str, Any]:
    dumped = status.model_dump(by_alias=True, exclude_none=True, mode="json")
    return {name: value for name, value in dumped.items() if value not in ("", [], {})}
