"""One request to the API server, and what its answer means."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specdec_operator.cluster.errors import error_from_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.cluster.resources import ResourceType

MESSAGE_CHARACTERS = 500
JSON = "application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

# An applied body is read as YAML: its parser refuses JSON's surrogate pairs, and takes some raw characters below
# U+10000 for line breaks. The API server's own encoder escapes the three that mean something in HTML.
_ESCAPED = re.compile("[<>&\x7f-\uffff]")


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        verb: what is asked, in the protocol's words.
        method: HTTP method.
        resource: type of the object or collection.
        path: its path.
        query: query parameters.
        body: JSON to send; None sends nothing.
        content_type: what the body is.
        accept: what the answer is to be.
    """

    verb: str
    method: str
    resource: ResourceType
    path: str
    query: Mapping[str, str]
    body: object = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.qualified_name} ({self.path})"

    def content(self) -> bytes | None:
        """Return the bytes to send.

        Keys are sorted, and letters escaped, as the API server writes them: it compares the data of a
        ControllerRevision byte by byte, and would take another spelling for a change of an immutable field in each
        later patch. Its garbage collector patches too: to finish a deletion in the foreground, or to orphan.
        """
        if self.body is None:
            return None
        text = json.dumps(self.body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return _ESCAPED.sub(_escaped, text).encode()


def _escaped(character: re.Match[str]) -> str:
    if "\ud800" <= character[0] <= "\udfff":
        # Half a character, as JSON of a pod can hold it: the API server takes none, and would refuse the whole object.
        return "\\ufffd"
    return f"\\u{ord(character[0]):04x}"


def path_of(resource: ResourceType, body: JsonObject, *, subresource: str | None = None) -> str:
    """Return the path of an object by its own metadata."""
    metadata = body["metadata"]
    return resource.path(namespace=metadata.get("namespace"), name=metadata["name"], subresource=subresource)


def collection_of(resource: ResourceType, body: JsonObject) -> str:
    """Return the path of the collection that an object belongs to by its own metadata.

    Raises:
        ValueError: a namespaced object without a namespace.
    """
    namespace = body["metadata"].get("namespace")
    if resource.namespaced and namespace is None:
        raise ValueError(f"{resource.kind} {body['metadata'].get('name')!r} needs a namespace")
    return resource.path(namespace=namespace)


def object_in(request: Request, *, status: int, headers: Mapping[str, str], content: bytes) -> JsonObject:
    """Return the object in an answer.

    Raises:
        ApiError: the answer is not a success.
    """
    body = _json_object(content)
    if status < 300 and body is not None:
        return body
    retry_after = headers.get("Retry-After", "")
    raise error_from_status(
        # A success without an object comes from something before the API server, such as a proxy's page.
        status=status if status >= 300 else 502,
        body=body if body is not None else {"message": content[:MESSAGE_CHARACTERS].decode(errors="replace")},
        request=str(request),
        retry_after=float(retry_after) if retry_after.isdecimal() else None,
    )


def _json_object(content: bytes) -> JsonObject | None:
    try:
        body: Any = json.loads(content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
