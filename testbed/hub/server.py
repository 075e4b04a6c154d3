"""The hub as a running server, in a thread of its own."""

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from testbed.hub.application import Traffic, build
from testbed.hub.errors import HubError
from testbed.hub.repositories import Catalogue, Repository, read_catalogue
from testbed.hub.transfer import Faults

REPOSITORIES_FILE = Path(__file__).parent / "repositories.yaml"

_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class _Running:
    url: str
    loop: asyncio.AbstractEventLoop
    end: asyncio.Event


class Hub:
    """A model hub that huggingface_hub's client downloads from, with HF_ENDPOINT set to its URL.

    Attributes:
        catalogue: what is served; `repository(name).point(...)` moves a branch while it runs.
        faults: what goes wrong on purpose; may be changed while it runs.
        traffic: what was asked for.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        """Make a hub that does not listen yet."""
        self.catalogue = catalogue
        self.faults = Faults()
        self.traffic = Traffic()
        self._running: _Running | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens; empty when it does not."""
        return self._running.url if self._running else ""

    @classmethod
    def from_file(cls, file: Path = REPOSITORIES_FILE) -> "Hub":
        """Make a hub of a repositories file.

        Raises:
            RepositoriesFileError: the file or a directory that it names can't be used.
        """
        return cls(read_catalogue(file))

    def repository(self, name: str) -> Repository:
        """Return a repository by name.

        Raises:
            HubError: there is none.
        """
        if name not in self.catalogue.repositories:
            raise HubError(f"no repository {name!r}; there are: {', '.join(self.catalogue.repositories)}")
        return self.catalogue.repositories[name]

    def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen in a thread of its own, and return the URL; port 0 takes a free one.

        Raises:
            OSError: the address can't be bound.
            HubError: it listens already.
        """
        if self._thread is not None:
            raise HubError(f"the hub listens already, at {self.url}")
        server = web.AppRunner(build(self.catalogue, self.faults, self.traffic), access_log=None, shutdown_timeout=1.0)
        started: Future[_Running] = Future()
        serving = _serve(server, host, port, started)
        self._thread = threading.Thread(target=asyncio.run, args=(serving,), name="hub", daemon=True)
        self._thread.start()
        try:
            self._running = started.result()
        except OSError:
            self._thread.join()
            self._thread = None
            raise
        return self.url

    def stop(self) -> None:
        """Stop listening and end the thread; does nothing when it does not run."""
        if self._thread is None or self._running is None:
            return
        self._running.loop.call_soon_threadsafe(self._running.end.set)
        self._thread.join(_STOP_SECONDS)
        self._thread = self._running = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


async def _serve(server: web.AppRunner, host: str, port: int, started: "Future[_Running]") -> None:
    """Serve until told to end; what goes wrong before that is raised where the start is awaited."""
    end = asyncio.Event()
    try:
        bound = await _listen(server, host, port)
    except OSError as error:
        started.set_exception(error)
    else:
        loop = asyncio.get_running_loop()
        url = f"http://{_bracketed(host)}:{bound}"
        started.set_result(_Running(url, loop, end))
        await end.wait()
    finally:
        await server.cleanup()


async def _listen(server: web.AppRunner, host: str, port: int) -> int:
    await server.setup()
    await web.TCPSite(server, host, port).start()
    bound: int = server.addresses[0][1]
    return bound


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
