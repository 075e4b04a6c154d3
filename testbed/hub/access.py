"""Who may read what, with the refusals that the public hub's client library tells apart."""

from http import HTTPStatus

from testbed.hub.errors import Refusal
from testbed.hub.repositories import Catalogue, Repository

INVALID_CREDENTIALS = "Invalid credentials in Authorization header"


def identify(catalogue: Catalogue, authorization: str | None) -> str | None:
    """Return the user's name behind an Authorization header, or None without one; refuse an unknown token."""
    if not authorization:
        return None
    scheme, _, token = authorization.partition(" ")
    user = catalogue.users.get(token)
    if scheme != "Bearer" or user is None:
        raise Refusal(HTTPStatus.UNAUTHORIZED, INVALID_CREDENTIALS)
    return user


def find(catalogue: Catalogue, name: str, user: str | None) -> Repository:
    """Return a repository; a missing one is refused so that strangers can't tell it from a private one."""
    repository = catalogue.repositories.get(name)
    if repository is not None:
        return repository
    if user is None:
        raise Refusal(HTTPStatus.UNAUTHORIZED, "Invalid username or password.", "RepoNotFound")
    raise Refusal(HTTPStatus.NOT_FOUND, "Repository not found", "RepoNotFound")


def check_files(repository: Repository, user: str | None) -> None:
    """Refuse the files of a gated repository to users that were not accepted; its listing is open to all."""
    if not repository.gated or user in repository.accepted:
        return
    if user is None:
        message = f"Access to model {repository.name} is restricted. Please log in."
        raise Refusal(HTTPStatus.UNAUTHORIZED, message, "GatedRepo")
    message = f"Access to model {repository.name} is restricted and {user} is not in the authorized list."
    raise Refusal(HTTPStatus.FORBIDDEN, message, "GatedRepo")
