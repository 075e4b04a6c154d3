"""One source of credentials for the operator's own client and for kopf."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import kopf

from specdec_operator.cluster.credentials import SERVICE_ACCOUNT_DIRECTORY, Credentials, service_account_credentials
from specdec_operator.cluster.errors import CredentialsError
from specdec_operator.cluster.kubeconfig import kubeconfig_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=10)
USER_AGENT = "specdec-operator"
WATCH_INTERVAL_SECONDS = 1.0

LoginHandler = Callable[..., Awaitable[kopf.AiohttpSession]]


def load_credentials(
    *,
    environ: Mapping[str, str],
    kubeconfig: Path | None = None,
    context: str | None = None,
    service_account: Path = SERVICE_ACCOUNT_DIRECTORY,
) -> Credentials:
    """Return the credentials to use here.

    The first of these that is there: the kubeconfig given, the one named by ``KUBECONFIG``, the pod's service account,
    ``~/.kube/config``.

    Args:
        environ: the environment.
        kubeconfig: a kubeconfig file asked for by name.
        context: context of the kubeconfig file; None takes its current one.
        service_account: where a pod's service account is mounted.

    Raises:
        CredentialsError: none is there, or the one there is not usable.
    """
    named = kubeconfig or (Path(environ["KUBECONFIG"]) if environ.get("KUBECONFIG") else None)
    if named is not None:
        return kubeconfig_credentials(named, context=context)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return service_account_credentials(directory=service_account, environ=environ)
    usual = Path(environ.get("HOME", "/")) / ".kube" / "config"
    if usual.is_file():
        return kubeconfig_credentials(usual, context=context)
    raise CredentialsError(f"no credentials: set KUBECONFIG, run in a pod, or write {usual}")


def open_session(
    credentials: Credentials, *, timeout: aiohttp.ClientTimeout = REQUEST_TIMEOUT
) -> aiohttp.ClientSession:
    """Return a session whose requests carry the credentials; the caller closes it.

    The token is asked for at each request, so a rotated one is taken up without a new login.
    """
    return _session(credentials, timeout=timeout, middlewares=(_Authentication(credentials),))


def login_handler(credentials: Credentials) -> LoginHandler:
    """Return the handler for ``kopf.on.login``: each login gets a session of its own, which kopf closes."""

    async def login(**_: Any) -> kopf.AiohttpSession:
        # Watches outlive any total; kopf sets the times of each request itself.
        session = _session(
            credentials,
            timeout=aiohttp.ClientTimeout(total=None),
            middlewares=(WatchPacing(), _Authentication(credentials)),
        )
        return kopf.AiohttpSession(
            server=credentials.server, default_namespace=credentials.namespace, aiohttp_session=session
        )

    return login


class WatchPacing:
    """Keeps watches of one path at least a second apart.

    kopf opens the next watch at once when one ends; behind a proxy that ends each watch it would ask thousands of times
    a second.

    Args:
        interval: seconds between two watches of a path.
        clock: seconds on any scale that only grows.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        *,
        interval: float = WATCH_INTERVAL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._interval = interval
        self._clock = clock
        self._sleep = sleep
        self._next: dict[str, float] = {}

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send the request, later if it is a watch too soon after the last."""
        if request.url.query.get("watch") == "true":
            now = self._clock()
            start = max(now, self._next.get(request.url.path, now))
            self._next[request.url.path] = start + self._interval
            if start > now:
                await self._sleep(start - now)
        return await handler(request)


class _Authentication:
    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        token = await self._credentials.tokens.token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return await handler(request)


def _session(
    credentials: Credentials, *, timeout: aiohttp.ClientTimeout, middlewares: tuple[aiohttp.ClientMiddlewareType, ...]
) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=credentials.tls.context(), limit=0),
        headers={"User-Agent": USER_AGENT, **credentials.headers},
        timeout=timeout,
        middlewares=middlewares,
    )
