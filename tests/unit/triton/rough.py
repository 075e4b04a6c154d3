"""Servers that a hostile image might run: each test gives the bytes of their answers by path."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from specdec_operator.triton.proof import Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
READY = {"/v2/health/ready": OK, "/v2/models/m/ready": OK}


def body(content: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    """An answer with a body."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{headers}\r\n".encode() + content


CONFIG = {"/v2/models/m/config": body(b'{"parameters": {"specdec_revision": {"string_value": "r1"}}}')}


class Rough:
    """A server that writes given bytes, whatever they are.

    Attributes:
        answers: what is written by path; the empty path stands for all others.
        endless: what follows an answer again and again, by path.
        asked: the paths that were asked for.
        sent: bytes that left this server.
        serving: the connections' tasks.
    """

    def __init__(self, answers: Mapping[str, bytes], endless: Mapping[str, bytes] | None = None) -> None:
        self.answers = answers
        self.endless = endless or {}
        self.asked: list[str] = []
        self.sent = 0
        self.endpoint = Endpoint("127.0.0.1", 0)
        self.serving: dict[asyncio.Task[None], asyncio.WriteTransport] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until the client leaves it."""
        task = asyncio.current_task()
        assert task is not None
        self.serving[task] = writer.transport
        task.add_done_callback(self.serving.pop)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                await self._answer(reader, writer)
        writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        length = next(
            (line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-len")), "0"
        )
        await reader.readexactly(int(length))
        self.asked.append(path)
        answer = self.answers.get(path, self.answers.get("", OK))
        await self._write(writer, answer)
        if b"Connection: close" in answer:
            writer.close()
        while path in self.endless:
            await self._write(writer, self.endless[path])
            await asyncio.sleep(0)  # a client in the same loop has its turn

    async def _write(self, writer: asyncio.StreamWriter, content: bytes) -> None:
        writer.write(content)
        self.sent += len(content)
        await writer.drain()


@asynccontextmanager
async def rough(answers: Mapping[str, bytes], endless: Mapping[str, bytes] | None = None) -> AsyncIterator[Rough]:
    """A running rough server."""
    server = Rough(answers, endless)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        server.endpoint = Endpoint("127.0.0.1", listening.sockets[0].getsockname()[1])
        yield server
        listening.close()
        for transport in server.serving.values():
            transport.abort()
        await asyncio.gather(*server.serving)
