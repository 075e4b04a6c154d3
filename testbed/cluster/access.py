"""What a demo and an operator need of a cluster, whoever started it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path


class ObjectReader(Protocol):
    """Reads as the administrator."""

    def get(self, path: str) -> dict[str, Any]:
        """Return the object, or the list, at a path of the API server.

        Raises:
            TestbedError: the API server refused, or could not be reached.
        """


class ClusterAccess(Protocol):
    """A running cluster."""

    @property
    def directory(self) -> Path:
        """A folder for what belongs to this use of it, such as logs."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""

    @property
    def kubectl_program(self) -> Path:
        """The kubectl that is used."""

    @property
    def client(self) -> ObjectReader:
        """Requests to the API server as the administrator."""

    @property
    def host_address(self) -> str:
        """The address of this machine at which pods reach it."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as the administrator and return what it prints.

        Raises:
            CommandError: with its error output.
        """

    def kubeconfig_for_service_account(self, *, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a token of a service account.

        Raises:
            TestbedError: there is no such service account.
        """
