"""Sending a file's bytes: whole or from a position on, slowed down or cut off where a test asks for it."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from aiohttp import web

from testbed.hub.repositories import Commit, StoredFile

CHUNK_BYTES = 16 * 1024


@dataclass
class Faults:
    """What goes wrong on purpose.

    Attributes:
        drop_after_bytes: per path inside a repository, after how many bytes the next transfer is cut off; each once.
        bytes_per_second: limit of each transfer, or None.
    """

    drop_after_bytes: dict[str, int] = field(default_factory=dict)
    bytes_per_second: int | None = None


async def send(request: web.Request, commit: Commit, file: StoredFile, faults: Faults) -> web.StreamResponse:
    """Answer HEAD and GET for a file, with byte ranges."""
    try:
        span = _span(request, file.size)
    except ValueError:
        return web.Response(
            status=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            headers={"Content-Range": f"bytes */{file.size}"},
        )
    response = web.StreamResponse(headers=_headers(commit, file))
    response.content_length = len(span)
    if len(span) < file.size:
        response.set_status(HTTPStatus.PARTIAL_CONTENT)
        response.headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{file.size}"
    await response.prepare(request)
    if request.method != "HEAD":
        await _stream(request, response, _read(file.source, span), path=file.path, faults=faults)
    return response


def _headers(commit: Commit, file: StoredFile) -> dict[str, str]:
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
        "ETag": f'"{file.etag}"',
        "X-Repo-Commit": commit.id,
    }
    if file.sha256 is not None:
        headers |= {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(file.size)}
    return headers


def _span(request: web.Request, size: int) -> range:
    """Return the wanted byte positions; raises ValueError for a range outside the file."""
    wanted = request.http_range
    span = range(size)[wanted]
    if not span and size:
        raise ValueError("the range lies outside the file")
    return span


def _read(source: Path, span: range) -> bytes:
    with source.open("rb") as stream:
        stream.seek(span.start)
        return stream.read(len(span))


async def _stream(
    request: web.Request, response: web.StreamResponse, content: bytes, *, path: str, faults: Faults
) -> None:
    limit = faults.drop_after_bytes.pop(path, None)
    sent = content if limit is None else content[:limit]
    for begin in range(0, len(sent), CHUNK_BYTES):
        chunk = sent[begin : begin + CHUNK_BYTES]
        await response.write(chunk)
        if faults.bytes_per_second is not None:
            await asyncio.sleep(len(chunk) / faults.bytes_per_second)
    if len(sent) < len(content) and request.transport is not None:
        request.transport.close()
