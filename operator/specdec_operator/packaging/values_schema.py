"""The chart's `values.schema.json`: Helm refuses values that break it, and names the field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.model_schema import draw
from specdec_operator.packaging.values import ChartValues
from specdec_operator.runtimes.release import Release

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]

SET_BY_THE_CHART: Final = frozenset({"instance", "namespaces", "readNodes"})
"""Fields of the operator's configuration that are no values: the chart sets them, since they go with its objects."""
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ONLY_FOR_THE_API_SERVER: Final = "x-kubernetes-"
_NEVER_NULL: Final = frozenset({"namespaces"})
"""Values whose absence would mean more than a default: no list of namespaces is all of them."""
_ROW: Final = "ReleaseRow"


def values_schema() -> Schema:
    """The schema of the chart's values, with that of the operator's configuration and its release rows inside."""
    drawn = draw(ChartValues)
    definitions = drawn.pop("$defs")
    for part in (drawn, *definitions.values()):
        _keep_from_null(part)
    drawn["properties"]["config"] = {
        **_configuration(definitions),
        "description": drawn["properties"]["config"]["description"],
    }
    whole = {"$schema": _DIALECT, **drawn, "title": "Values of the chart specdec-operator", "$defs": definitions}
    plain: Schema = _plain(whole)
    return plain


def _keep_from_null(part: Schema) -> None:
    """Require what the templates read: a bare key, as in `image:` and nothing more, removes its default."""
    needed = [
        name
        for name, value in part.get("properties", {}).items()
        if "$ref" in value or "minLength" in value or name in _NEVER_NULL
    ]
    if needed:
        part["required"] = needed


def _configuration(definitions: Schema) -> Schema:
    drawn = draw(OperatorConfiguration)
    definitions.update(drawn.pop("$defs"))
    # Of one member each: the message of a count is plainer than that of a choice.
    definitions["Storage"] |= {"minProperties": 1, "maxProperties": 1}
    properties = {name: part for name, part in drawn["properties"].items() if name not in SET_BY_THE_CHART}
    properties["releases"]["items"] = {"$ref": f"#/$defs/{_ROW}"}
    definitions.update(_row())
    return {**drawn, "properties": properties}


def _row() -> Schema:
    """A row as it is given: one that is like another says only what differs, and null removes a key."""
    drawn = draw(Release)
    definitions = drawn.pop("$defs")
    # Lists are taken whole, so a defect is one that says all.
    parts = {name: part if name == "Defect" else _partial(part) for name, part in definitions.items()}
    row = _partial(drawn)
    row["properties"]["like"] = {"type": "string", "description": "The row that this one takes all else from."}
    row["properties"]["name"] = drawn["properties"]["name"]
    row["type"] = "object"
    row["required"] = ["name"]
    return {**parts, _ROW: row}


def _partial(drawn: Mapping[str, Any]) -> Schema:
    partial = {keyword: value for keyword, value in drawn.items() if keyword not in ("required", "default")}
    if isinstance(partial.get("type"), str):
        partial["type"] = [partial["type"], "null"]
    if "enum" in partial:
        partial["enum"] = [*partial["enum"], None]
    if "properties" in partial:
        partial["properties"] = {name: _partial(part) for name, part in partial["properties"].items()}
    return partial


def _plain(drawn: Any) -> Any:
    """A schema without what only the API server reads; a quantity may be a number, as there."""
    if isinstance(drawn, list):
        return [_plain(part) for part in drawn]
    if not isinstance(drawn, dict):
        return drawn
    plain = {name: _plain(part) for name, part in drawn.items() if not name.startswith(_ONLY_FOR_THE_API_SERVER)}
    if drawn.get("x-kubernetes-int-or-string"):
        plain["type"] = ["string", "integer"]
    if "title" in plain and isinstance(plain.get("properties"), dict) and "$schema" not in plain:
        del plain["title"]
    return plain
