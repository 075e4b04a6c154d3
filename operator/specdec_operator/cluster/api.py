"""The API server as the reconcilers see it: objects in, objects out, nothing about HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import builtins

    from specdec_operator.cluster.resources import ResourceType

JsonObject = dict[str, Any]
Propagation = Literal["Background", "Foreground", "Orphan"]

FIELD_MANAGER = "specdec-operator"


class KubernetesApi(Protocol):
    """The few requests that the operator makes.

    Each raises an error of :mod:`specdec_operator.cluster.errors`. Namespace and name of a whole object are those in
    its metadata. Writes are never repeated by the client: whoever asked reads the object again and decides.
    """

    @property
    def field_manager(self) -> str:
        """The name under which this client's writes stand in managedFields."""

    async def get(self, resource: ResourceType, *, namespace: str | None, name: str) -> JsonObject:
        """Return one object.

        Raises:
            NotFound: there is none.
        """

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
        """Return all objects of a type, in one namespace or in all; each carries its apiVersion and kind.

        Args:
            metadata_only: leave out all but apiVersion, kind and metadata, for objects that are large.
            at_most: read no more than so many, of what anybody may make without end, such as Events.
        """

    async def create(self, resource: ResourceType, body: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Create an object and return it as stored; of a dry run, as it would be: admission judges it, nobody keeps it.

        Raises:
            AlreadyExists: the name is taken.
            Invalid: the object breaks its schema.
        """

    async def apply(self, resource: ResourceType, body: JsonObject, *, force: bool = False) -> JsonObject:
        """Apply an object server-side and return it as stored.

        Raises:
            Conflict: another manager owns a field and force is false, or the object's uid is not the one in body.
        """

    async def apply_status(self, resource: ResourceType, body: JsonObject) -> JsonObject:
        """Apply an object's status server-side, by force: a status has one writer."""

    async def patch_json(
        self,
        resource: ResourceType,
        *,
        namespace: str | None,
        name: str,
        operations: builtins.list[JsonObject],
        subresource: str | None = None,
    ) -> JsonObject:
        """Change an object by JSON patch operations; all are done, or none."""

    async def patch_merge(
        self,
        resource: ResourceType,
        *,
        namespace: str | None,
        name: str,
        patch: JsonObject,
        subresource: str | None = None,
    ) -> JsonObject:
        """Change an object by a JSON merge patch: null removes, lists are replaced whole."""

    async def replace(self, resource: ResourceType, body: JsonObject) -> JsonObject:
        """Replace an object; a resourceVersion in body must still be the stored one.

        Raises:
            Conflict: it is not.
        """

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
        """Delete an object.

        Args:
            resource: its type.
            namespace: its namespace.
            name: its name.
            uid: delete only the object with this uid.
            resource_version: delete only the object at this version.
            propagation: what becomes of the objects that it owns.

        Raises:
            NotFound: there is none.
            Conflict: a precondition doesn't hold.
        """


class Documents(Protocol):
    """What the API server says of itself, which every account may read."""

    async def read_document(self, path: str) -> JsonObject:
        """Return a document, such as ``/apis/apps/v1`` or ``/openapi/v3``.

        Raises:
            NotFound: there is none.
        """
