"""What the API server says of objects without keeping them: each distinct object is asked about once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.resources import ResourceType
from testbed.cluster.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from testbed.cluster.api import ApiClient

JsonObject = dict[str, Any]
MANAGER = "dry-run"


@dataclass(frozen=True)
class DryRun:
    """Has the API server judge objects as if they were applied; unknown fields are errors.

    Many renderings share most of their objects, and a CRD takes an API server longer than all else together.

    Attributes:
        client: requests as the administrator.
    """

    client: ApiClient
    _answers: dict[str, str] = field(default_factory=dict)
    _resources: dict[str, dict[str, ResourceType]] = field(default_factory=dict)

    def refusals(self, documents: Iterable[JsonObject]) -> list[str]:
        """Return what the API server has against objects; nothing of those that it takes.

        Raises:
            KeyError: it knows no such kind.
        """
        return [answer for document in documents if (answer := self._answer(document))]

    def _answer(self, document: JsonObject) -> str:
        key = json.dumps(document, sort_keys=True)
        if key not in self._answers:
            self._answers[key] = self._ask(document)
        return self._answers[key]

    def _ask(self, document: JsonObject) -> str:
        resource, metadata = self._resource(document), document["metadata"]
        namespace = metadata.get("namespace", "default") if resource.namespaced else None
        path = resource.path(namespace=namespace, name=metadata["name"])
        try:
            self.client.apply(path, document, field_manager=MANAGER, dry_run=True)
        except ApiError as refusal:
            return str(refusal)
        return ""

    def _resource(self, document: JsonObject) -> ResourceType:
        version = document["apiVersion"]
        if version not in self._resources:
            self._resources[version] = self._discover(version)
        return self._resources[version][document["kind"]]

    def _discover(self, api_version: str) -> dict[str, ResourceType]:
        """Return what a version of a group holds, by kind."""
        group, _, version = api_version.rpartition("/")
        listed = self.client.get(f"/{'apis' if group else 'api'}/{api_version}")["resources"]
        return {
            found["kind"]: ResourceType(group, version, found["name"], found["kind"], namespaced=found["namespaced"])
            for found in listed
            if "/" not in found["name"]
        }
