"""The operator's kinds as the API server serves them: what its CRDs lack when they are older than the operator.

The schemas are read from the API server's OpenAPI, which needs no right on CRDs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from specdec_operator.api.crd import object_schema
from specdec_operator.api.definition_gaps import fitted, gaps
from specdec_operator.api.v1alpha1 import GROUP, VERSION
from specdec_operator.api.v1alpha1.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.cluster.api import Documents, JsonObject

PUBLISHED: Final = f"/openapi/v3/apis/{GROUP}/{VERSION}"
"""Read as it is: the index of these documents, with an address for each content, was seen to stay behind for good."""
_KIND: Final = "x-kubernetes-group-version-kind"
_SHOWN: Final = 5


class Definitions:
    """The served schemas of the operator's kinds, as last read."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._own: dict[str, Any] = {}
        self._served: dict[str, Any] = {}
        self.gaps: Mapping[str, tuple[str, ...]] = {}

    async def look(self) -> None:
        """Read the schemas again.

        Raises:
            ApiError: They can't be read, or are not served yet; what was known stays.
        """
        self._take(await self._documents.read_document(PUBLISHED))

    def fitted(self, kind: str, status: JsonObject) -> JsonObject:
        """A status without what the served schema of a kind would refuse; most often the same."""
        if not self.gaps.get(kind):
            return status
        kept: JsonObject = fitted(status, self._served[kind]["properties"]["status"]) or {}
        return kept

    def _take(self, document: JsonObject) -> None:
        # Drawn once, and only where there is a cluster.
        self._own = self._own or {resource.kind: object_schema(resource) for resource in KINDS}
        schemas = document.get("components", {}).get("schemas", {}).values()
        served = {named["kind"]: schema for schema in schemas for named in schema.get(_KIND, ())}
        # A schema that the API server could not publish whole has no status, and tells nothing.
        whole = {kind for kind, schema in served.items() if "status" in schema.get("properties", {})}
        self.gaps = {kind: gaps(own, served[kind]) for kind, own in self._own.items() if kind in whole}
        self._served = {kind: served[kind] for kind, missing in self.gaps.items() if missing}


def outdated_in_words(gaps: Mapping[str, tuple[str, ...]]) -> str:
    """What the served kinds lack, and the remedy; empty if they lack nothing."""
    lacks = [f"{kind} lacks {_shortened(missing)}" for kind, missing in gaps.items() if missing]
    if not lacks:
        return ""
    return (
        f"the cluster's CRDs are older than this operator: {'; '.join(lacks)}. What users write there is refused or "
        "dropped. Remedy: kubectl apply --server-side -f crds/ of this operator's release (Helm: helm upgrade with "
        "crds.install=true)"
    )


def _shortened(missing: tuple[str, ...]) -> str:
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return f"{', '.join(missing[:_SHOWN])}{more}"
