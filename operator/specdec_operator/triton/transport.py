"""HTTP to a server that a tenant runs: no redirects, nothing compressed, and no more bytes than an answer needs.

What is raised here holds nothing of what was received: the operator reaches what a tenant may not, and its words end
in a status that the tenant reads.
"""

from __future__ import annotations

import asyncio
import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import h11

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

LONGEST_ANSWER = 1 << 20
"""Bytes of an answer as they come, headers and all: a few thousand are usual."""
MOST_PIECES = 4096
"""Pieces of an answer: a megabyte byte by byte would keep the operator busy."""
_READ = 1 << 16


class Unreachable(Exception):  # noqa: N818 - a state of the network
    """No connection came about, or it broke."""


class NotUnderstood(Exception):  # noqa: N818 - says what answers
    """What answers doesn't do so as Triton does; says how, and quotes nothing."""


@dataclass(frozen=True)
class Answer:
    """An answer, read whole.

    Attributes:
        status: the HTTP status.
        headers: its headers, their names in lower case.
        body: its bytes.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """Requests to one server, over one connection as long as both sides keep it. Bound its time from outside.

    Args:
        host: name or address.
        port: its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._http = h11.Connection(h11.CLIENT)

    async def __aenter__(self) -> Self:
        """Begin; the connection comes with the first request."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop the connection."""
        self._drop()

    async def send(self, method: str, path: str, *, content: bytes = b"", headers: Mapping[str, str]) -> Answer:
        """Send a request and read its answer.

        Raises:
            Unreachable: there is no connection, or it broke.
            NotUnderstood: the answer is too long, compressed or not HTTP.
        """
        host = f"[{self._host}]" if ":" in self._host else self._host
        request = h11.Request(
            method=method,
            target=path,
            headers=[
                ("host", f"{host}:{self._port}"),
                ("Accept-Encoding", "identity"),
                ("Content-Length", str(len(content))),
                *headers.items(),
            ],
        )
        try:
            reader, writer = await self._connected()
            for event in (request, h11.Data(content), h11.EndOfMessage()):
                writer.write(self._http.send(event) or b"")
            await writer.drain()
            answer = await self._answer(reader)
        except h11.RemoteProtocolError as error:
            self._drop()
            raise NotUnderstood("it doesn't answer in whole HTTP messages") from error
        except OSError as error:
            self._drop()
            raise Unreachable(_told(error)) from error
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise NotUnderstood("it answers with a compressed body, which was not asked for")
        return answer

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The open connection, ready for the next request; a new one where there is none."""
        if self._streams and self._http.our_state is self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            return self._streams
        self._drop()
        self._http = h11.Connection(h11.CLIENT)
        self._streams = await asyncio.open_connection(self._host, self._port)
        return self._streams

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        response: h11.Response | None = None
        body = bytearray()
        received = 0
        for _ in range(MOST_PIECES):
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                piece = await reader.read(_READ)
                received += len(piece)
                if received > LONGEST_ANSWER:
                    raise NotUnderstood(f"it answers with more than {LONGEST_ANSWER} bytes")
                self._http.receive_data(piece)
            elif isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and response:
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
                return Answer(response.status_code, headers, bytes(body))
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError(errno.ECONNRESET, "closed")
            elif event is h11.PAUSED:
                raise NotUnderstood("it switches to another protocol")
        raise NotUnderstood(f"it answers in more than {MOST_PIECES} pieces")

    def _drop(self) -> None:
        if self._streams:
            self._streams[1].transport.abort()
            self._streams = None


def _told(error: OSError) -> str:
    """What the system says of it; resolvers have numbers of their own, below zero."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else "its name has no address"
