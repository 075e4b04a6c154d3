"""Who the operator is to the API server, and by which certificate it knows the server."""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from specdec_operator.cluster.errors import CredentialsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_FILE_SECONDS = 10.0


class TokenSource(Protocol):
    """Where the bearer token of each request comes from."""

    async def token(self) -> str | None:
        """Return the token to send now; None sends none.

        Raises:
            CredentialsError: there should be one, and it can't be had.
        """


@dataclass(frozen=True)
class StaticToken:
    """A token that stays, or none at all."""

    value: str | None = field(default=None, repr=False)

    async def token(self) -> str | None:
        """Return the token."""
        return self.value


class FileToken:
    """A token in a file that is rewritten before the token expires, as the kubelet does.

    Args:
        path: the file.
        clock: seconds on any scale that only grows.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._value = ""
        self._read_at = float("-inf")

    async def token(self) -> str | None:
        """Return the token, read from the file if the last reading is older than ten seconds."""
        if self._clock() - self._read_at >= TOKEN_FILE_SECONDS:
            self._value = self._read()
            self._read_at = self._clock()
        return self._value

    def _read(self) -> str:
        try:
            value = self._path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise CredentialsError(f"token file {self._path}: {error.strerror}; is the token mounted?") from error
        if not value:
            raise CredentialsError(f"token file {self._path} is empty")
        return value


@dataclass(frozen=True)
class Tls:
    """How the connection is secured; certificates and keys are PEM text.

    Attributes:
        authority: who must have signed the server's certificate; None takes the system's authorities.
        certificate: client certificate.
        private_key: its key.
        verify: false accepts any server, for test clusters only.
    """

    authority: str | None = None
    certificate: str | None = None
    private_key: str | None = field(default=None, repr=False)
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Return the context for connections.

        Raises:
            CredentialsError: a certificate or key is not usable.
        """
        try:
            context = ssl.create_default_context(cadata=self.authority)
            if self.certificate is not None and self.private_key is not None:
                _load_client_certificate(context, certificate=self.certificate, private_key=self.private_key)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"a certificate or key for the API server is not usable PEM: {error}") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _load_client_certificate(context: ssl.SSLContext, *, certificate: str, private_key: str) -> None:
    # The ssl module reads client certificates from files only; this one is readable by its owner and gone at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as file:
        file.write(f"{certificate}\n{private_key}\n")
        file.flush()
        context.load_cert_chain(file.name)


@dataclass(frozen=True)
class Credentials:
    """All that is needed to speak to one API server as one identity.

    Attributes:
        server: URL of the API server.
        namespace: the identity's own namespace.
        tls: how the connection is secured.
        tokens: where bearer tokens come from.
        headers: further headers of each request, such as those of impersonation.
    """

    server: str
    namespace: str
    tls: Tls
    tokens: TokenSource
    headers: Mapping[str, str] = field(default_factory=dict)


def service_account_credentials(
    *,
    directory: Path = SERVICE_ACCOUNT_DIRECTORY,
    environ: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
) -> Credentials:
    """Return the credentials that a pod has from its service account.

    Args:
        directory: where the kubelet mounts token, authority and namespace.
        environ: holds the API server's address.
        clock: for the age of the token.

    Raises:
        CredentialsError: this is no pod, or its token isn't mounted.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST")
    if not host:
        raise CredentialsError("KUBERNETES_SERVICE_HOST is not set: not inside a pod; set KUBECONFIG instead")
    try:
        authority = (directory / "ca.crt").read_text(encoding="ascii")
        namespace = (directory / "namespace").read_text(encoding="ascii").strip()
    except OSError as error:
        raise CredentialsError(
            f"service account file {error.filename}: {error.strerror}; is automountServiceAccountToken false?"
        ) from error
    return Credentials(
        server=f"https://{f'[{host}]' if ':' in host else host}:{environ.get('KUBERNETES_SERVICE_PORT', '443')}",
        namespace=namespace,
        tls=Tls(authority=authority),
        tokens=FileToken(directory / "token", clock=clock),
    )
