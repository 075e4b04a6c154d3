"""The API server over HTTP: paths, content types, retries of reads, fencing of writes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import aiohttp

from specdec_operator.cluster.api import FIELD_MANAGER, JsonObject, Propagation
from specdec_operator.cluster.errors import (
    ApiError,
    Expired,
    ServerUnavailable,
    TooManyRequests,
    WritesFenced,
)
from specdec_operator.cluster.requests import JSON, METADATA_LIST, Request, collection_of, object_in, path_of
from specdec_operator.cluster.resources import DOCUMENTS

if TYPE_CHECKING:
    import builtins

    from specdec_operator.cluster.resources import ResourceType

LIST_PAGE_SIZE = 500
LIST_RESTARTS = 3

RequestObserver = Callable[[str, str, str], None]
"""Is told verb, plural and HTTP code (``error`` when no answer came) of each request."""


@dataclass(frozen=True)
class ReadRetries:
    """How often and how patiently reads are repeated.

    Attributes:
        attempts: requests in all.
        initial: seconds before the second request; doubles from there.
        maximum: most seconds between two requests, also when the server asks for more.
    """

    attempts: int = 4
    initial: float = 0.25
    maximum: float = 5.0


def _always() -> bool:
    return True


def _unobserved(_verb: str, _plural: str, _code: str) -> None:
    return None


class HttpKubernetesApi:
    """The API server at one URL, through a session that carries the credentials.

    The session stays the caller's: nothing here closes it.
    """

    def __init__(  # noqa: PLR0913 - all but the first two are seams with defaults
        self,
        session: aiohttp.ClientSession,
        server: str,
        *,
        field_manager: str = FIELD_MANAGER,
        may_write: Callable[[], bool] = _always,
        observe: RequestObserver = _unobserved,
        retries: ReadRetries | None = None,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Wrap a session, which adds the credentials; may_write is asked before each write, jitter gives 0 to 1."""
        self._session = session
        self._server = server.rstrip("/")
        self._field_manager = field_manager
        self._may_write = may_write
        self._observe = observe
        self._retries = retries or ReadRetries()
        self._jitter = jitter
        self._sleep = sleep

    @property
    def field_manager(self) -> str:
        """The name under which this client's writes stand in managedFields."""
        return self._field_manager

    async def get(self, resource: ResourceType, *, namespace: str | None, name: str) -> JsonObject:
        """Return one object."""
        return await self._read(Request("get", "GET", resource, resource.path(namespace=namespace, name=name), {}))

    async def read_document(self, path: str) -> JsonObject:
        """Return what the API server says of itself under a path, with its query."""
        bare, _, query = path.partition("?")
        return await self._read(Request("get", "GET", DOCUMENTS, bare, dict(parse_qsl(query))))

    async def list(
        self,
        resource: ResourceType,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        at_most: int | None = None,
    ) -> builtins.list[JsonObject]:
        """Return objects of a type, page by page, from the start again when a continuation expires."""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {name: value for name, value in selectors.items() if value} | {
            "limit": str(min(LIST_PAGE_SIZE, at_most or LIST_PAGE_SIZE))
        }
        accept = METADATA_LIST if metadata_only else JSON
        first = Request("list", "GET", resource, resource.path(namespace=namespace), query, accept=accept)
        for _ in range(LIST_RESTARTS - 1):
            try:
                return await self._list_pages(first, at_most=at_most)
            except Expired:
                continue
        return await self._list_pages(first, at_most=at_most)

    async def _list_pages(self, first: Request, *, at_most: int | None) -> builtins.list[JsonObject]:
        kind = {"apiVersion": first.resource.api_version, "kind": first.resource.kind}
        items: builtins.list[JsonObject] = []
        request = first
        while True:
            page = await self._read(request)
            items += [{**item, **kind} for item in page.get("items") or ()]
            token = page["metadata"].get("continue")
            if not token or (at_most is not None and len(items) >= at_most):
                return items[:at_most]
            request = replace(first, query={**first.query, "continue": token})

    async def create(self, resource: ResourceType, body: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Create an object, or only have it judged."""
        query = {"fieldManager": self._field_manager, "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        return await self._write(Request("create", "POST", resource, collection_of(resource, body), query, body))

    async def apply(self, resource: ResourceType, body: JsonObject, *, force: bool = False) -> JsonObject:
        """Apply an object server-side."""
        return await self._write(self._apply_request("apply", resource, body, force=force))

    async def apply_status(self, resource: ResourceType, body: JsonObject) -> JsonObject:
        """Apply an object's status server-side, by force."""
        return await self._write(self._apply_request("apply_status", resource, body, force=True, subresource="status"))

    def _apply_request(
        self, verb: str, resource: ResourceType, body: JsonObject, *, force: bool, subresource: str | None = None
    ) -> Request:
        path = path_of(resource, body, subresource=subresource)
        query = {"fieldManager": self._field_manager, "fieldValidation": "Strict", "force": str(force).lower()}
        # JSON is YAML: the server takes it under the one content type that every supported release knows.
        return Request(verb, "PATCH", resource, path, query, body, "application/apply-patch+yaml")

    async def patch_json(
        self,
        resource: ResourceType,
        *,
        namespace: str | None,
        name: str,
        operations: builtins.list[JsonObject],
        subresource: str | None = None,
    ) -> JsonObject:
        """Change an object by JSON patch operations."""
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        query = {"fieldManager": self._field_manager}
        content_type = "application/json-patch+json"
        return await self._write(Request("patch", "PATCH", resource, path, query, operations, content_type))

    async def patch_merge(
        self,
        resource: ResourceType,
        *,
        namespace: str | None,
        name: str,
        patch: JsonObject,
        subresource: str | None = None,
    ) -> JsonObject:
        """Change an object by a JSON merge patch."""
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        query = {"fieldManager": self._field_manager}
        content_type = "application/merge-patch+json"
        return await self._write(Request("patch", "PATCH", resource, path, query, patch, content_type))

    async def replace(self, resource: ResourceType, body: JsonObject) -> JsonObject:
        """Replace an object."""
        query = {"fieldManager": self._field_manager}
        return await self._write(Request("replace", "PUT", resource, path_of(resource, body), query, body))

    async def delete(
        self,
        resource: ResourceType,
        *,
        namespace: str | None,
        name: str,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Delete an object."""
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        conditions = {"uid": uid, "resourceVersion": resource_version}
        given = {field: value for field, value in conditions.items() if value is not None}
        if given:
            options["preconditions"] = given
        path = resource.path(namespace=namespace, name=name)
        await self._write(Request("delete", "DELETE", resource, path, {}, options))

    async def _write(self, request: Request) -> JsonObject:
        if not self._may_write():
            raise WritesFenced(f"{request}: not started, the leader lease is past its renew deadline")
        return await self._send(request)

    async def _read(self, request: Request) -> JsonObject:
        for attempt in range(self._retries.attempts - 1):
            try:
                return await self._send(request)
            except (ServerUnavailable, TooManyRequests) as error:
                await self._sleep(self._delay(attempt, error))
        return await self._send(request)

    def _delay(self, attempt: int, error: ApiError) -> float:
        if isinstance(error, TooManyRequests) and error.retry_after is not None:
            return min(error.retry_after, self._retries.maximum)
        return min(self._retries.initial * 2.0**attempt, self._retries.maximum) * (0.5 + self._jitter() / 2)

    async def _send(self, request: Request) -> JsonObject:
        code = "error"
        try:
            async with self._session.request(
                request.method,
                f"{self._server}{request.path}",
                params=request.query,
                data=request.content(),
                headers={"Content-Type": request.content_type, "Accept": request.accept},
            ) as response:
                content = await response.read()
                code = str(response.status)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            message = str(error) or type(error).__name__
            raise ServerUnavailable(status=0, reason="NoAnswer", message=message, request=str(request)) from error
        finally:
            self._observe(request.verb, request.resource.plural, code)
        return object_in(request, status=response.status, headers=response.headers, content=content)
