"""The error tree of the hub."""

from dataclasses import dataclass
from http import HTTPStatus


class HubError(Exception):
    """Root of the hub's errors."""


class RepositoriesFileError(HubError):
    """The file that declares the repositories, or a directory that it names, is wrong."""


@dataclass(frozen=True)
class Refusal(HubError):  # noqa: N818 -- an answer to a client, not a failure of the hub
    """An answer that is no content, as the public hub words it for its client library.

    Attributes:
        status: the HTTP status.
        message: what a person reads, header X-Error-Message.
        code: what the client library reads, header X-Error-Code; empty for none.
    """

    status: HTTPStatus
    message: str
    code: str = ""
