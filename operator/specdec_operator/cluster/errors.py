"""What can go wrong between the operator and the API server.

::

    ClusterError
    ├── ApiError              the API server answered, and it wasn't a success
    │   ├── BadRequest        400: the object has a field, or a field a type, that its schema has not
    │   ├── NotFound          404
    │   ├── AlreadyExists     409 on create
    │   ├── Conflict          409 on anything else: the object changed meanwhile, or a field is another manager's
    │   ├── Expired           410: a list's continuation is too old
    │   ├── Forbidden         403: a missing right, an exhausted quota or an admission refusal
    │   ├── Invalid           422: the object breaks its schema
    │   ├── TooManyRequests   429
    │   └── ServerUnavailable 5xx, or (status 0) no answer: connection error or timeout
    ├── WritesFenced          this process may not write: its leader lease is past the renew deadline
    ├── LeadershipLost        the leader lease could not be renewed, or another process took it
    ├── NameTaken             an object of that name belongs to somebody else
    └── CredentialsError      no usable credentials for the API server
"""

from __future__ import annotations

from typing import Any

UNTYPED_APPLY = "failed to create typed patch object"


class ClusterError(Exception):
    """Any failure of this room."""


class ApiError(ClusterError):
    """An answer of the API server that was not a success.

    Attributes:
        status: HTTP status; 0 when no answer came.
        reason: the API's fixed word, such as ``NotFound``; may be empty.
        message: the API server's sentence.
        details: the API's details, such as the causes with their field paths.
        request: what was asked, such as ``create jobs.batch default/fetch``.
    """

    def __init__(
        self,
        *,
        status: int,
        reason: str = "",
        message: str = "",
        details: dict[str, Any] | None = None,
        request: str = "",
    ) -> None:
        super().__init__(f"{request}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.request = request


class BadRequest(ApiError):  # noqa: N818 - the API's own word
    """The request can't be read: an unknown field, or a value of another type."""


class NotFound(ApiError):  # noqa: N818 - the API's own word
    """There is no such object."""


class AlreadyExists(ApiError):  # noqa: N818 - the API's own word
    """An object of that name exists already."""


class Conflict(ApiError):  # noqa: N818 - the API's own word
    """The object is not what the request took it for, or another manager owns a field."""


class Expired(ApiError):  # noqa: N818 - the API's own word
    """The continuation of a list is too old."""


class Forbidden(ApiError):  # noqa: N818 - the API's own word
    """The request is not allowed; ``request`` says the verb and the resource."""


class Invalid(ApiError):  # noqa: N818 - the API's own word
    """The object breaks its schema or a validation rule; ``details`` holds the causes."""


class TooManyRequests(ApiError):  # noqa: N818 - the API's own word
    """The API server asks for fewer requests.

    Attributes:
        retry_after: seconds to wait, if the server said so.
    """

    retry_after: float | None = None


class ServerUnavailable(ApiError):  # noqa: N818 - the API's own word
    """The API server failed or could not be reached; whether a write was done is not known."""


class WritesFenced(ClusterError):  # noqa: N818 - a state, not a mistake
    """The write was not started: this process may no longer be the leader."""


class LeadershipLost(ClusterError):  # noqa: N818 - a state, not a mistake
    """The leader lease could not be renewed in time, or another process holds it."""


class CredentialsError(ClusterError):
    """No usable credentials for the API server."""


class NameTaken(ClusterError):  # noqa: N818 - a state, not a mistake
    """An object of the wanted name exists and belongs to somebody else.

    Attributes:
        kind: kind of the object.
        namespace: its namespace.
        name: its name.
        controller: ``kind/name`` of its controller; None if it has none.
    """

    def __init__(self, *, kind: str, namespace: str, name: str, controller: str | None) -> None:
        owner = f"is controlled by {controller}" if controller else "has no controller"
        super().__init__(
            f"{kind} {namespace}/{name} exists and {owner}; rename or delete it, or rename this model. "
            f"To delete it: kubectl delete {kind.lower()} {name} -n {namespace}"
        )
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.controller = controller


def error_from_status(*, status: int, body: dict[str, Any], request: str, retry_after: float | None = None) -> ApiError:
    """Return the error that an answer of the API server stands for.

    Args:
        status: HTTP status, 300 or more.
        body: the ``Status`` object of the answer, or what little of it there is.
        request: what was asked.
        retry_after: seconds of the ``Retry-After`` header.
    """
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "")
    error = _error_type(status, reason, message)(
        status=status,
        reason=reason,
        message=message,
        details=body.get("details"),
        request=request,
    )
    if isinstance(error, TooManyRequests):
        error.retry_after = retry_after
    return error


def _error_type(status: int, reason: str, message: str) -> type[ApiError]:
    if status == 500 and message.startswith(UNTYPED_APPLY):
        # What an apply with a field that the schema lacks gets.
        return Invalid
    if status == 409:
        return AlreadyExists if reason == "AlreadyExists" else Conflict
    if status == 0 or status >= 500:
        return ServerUnavailable
    by_status: dict[int, type[ApiError]] = {
        400: BadRequest,
        403: Forbidden,
        404: NotFound,
        410: Expired,
        422: Invalid,
        429: TooManyRequests,
    }
    return by_status.get(status, ApiError)
