"""Frames between the ranks of one job: a JSON document and at most one float32 array, over local sockets."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from testbed.runtime.inference.lookahead import LookaheadConfig
from testbed.runtime.simulator.executor import EngineRequest, EngineResult, LogitsHandle

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from numpy.typing import NDArray

_LENGTHS: Final = struct.Struct("<II")


@dataclass(frozen=True)
class Frame:
    """One message.

    Attributes:
        document: JSON object.
        array: float32 numbers of any shape.
    """

    document: Mapping[str, Any]
    array: NDArray[np.float32] | None = None


def address(job: str, *parts: str) -> str:
    """Return an abstract socket address: it lives in the network namespace and leaves no file behind."""
    return "\0" + "/".join(("specdec-simulator", job, *parts))


def send(connection: socket.socket, frame: Frame) -> None:
    """Send one frame.

    Raises:
        OSError: the other side is gone.
    """
    shape = None if frame.array is None else list(frame.array.shape)
    text = json.dumps({"document": frame.document, "shape": shape}).encode()
    content = b"" if frame.array is None else np.ascontiguousarray(frame.array, dtype="<f4").tobytes()
    connection.sendall(_LENGTHS.pack(len(text), len(content)) + text + content)


def receive(connection: socket.socket) -> Frame:
    """Wait for one frame.

    Raises:
        ConnectionError: the other side closed, in whatever place.
    """
    text_length, content_length = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    head = json.loads(_exactly(connection, text_length))
    content = _exactly(connection, content_length)
    if head["shape"] is None:
        return Frame(head["document"])
    return Frame(head["document"], np.frombuffer(content, dtype="<f4").reshape(head["shape"]).astype(np.float32))


def _exactly(connection: socket.socket, count: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = connection.recv(count - len(chunks))
        if not chunk:
            raise ConnectionError("the other rank closed its connection")
        chunks += chunk
    return bytes(chunks)


def pack_request(request: EngineRequest) -> Frame:
    """Turn a request into a frame."""
    document = {
        "tokens": list(request.tokens),
        "max_tokens": request.max_tokens,
        "end_id": request.end_id,
        "draft_tokens": list(request.draft_tokens),
        "handle": _pack_handle(request.handle),
        "return_logits": request.return_logits,
        "temperature": request.temperature,
        "seed": request.seed,
        "lookahead": None if request.lookahead is None else list(vars(request.lookahead).values()),
    }
    return Frame(document, request.draft_logits)


def unpack_request(frame: Frame) -> EngineRequest:
    """Turn a frame back into the request."""
    document = frame.document
    return EngineRequest(
        tokens=tuple(document["tokens"]),
        max_tokens=document["max_tokens"],
        end_id=document["end_id"],
        draft_tokens=tuple(document["draft_tokens"]),
        draft_logits=frame.array,
        handle=_unpack_handle(document["handle"]),
        return_logits=document["return_logits"],
        temperature=document["temperature"],
        seed=document["seed"],
        lookahead=None if document["lookahead"] is None else LookaheadConfig(*document["lookahead"]),
    )


def pack_result(result: EngineResult) -> Frame:
    """Turn a result into a frame."""
    document = {
        "tokens": list(result.tokens),
        "drafted": result.drafted,
        "accepted": result.accepted,
        "handle": _pack_handle(result.handle),
        "guessed": result.guessed,
        "passes": result.passes,
    }
    return Frame(document, result.logits)


def unpack_result(frame: Frame) -> EngineResult:
    """Turn a frame back into the result."""
    document = frame.document
    return EngineResult(
        tuple(document["tokens"]),
        drafted=document["drafted"],
        accepted=document["accepted"],
        logits=frame.array,
        handle=_unpack_handle(document["handle"]),
        guessed=document["guessed"],
        passes=document["passes"],
    )


def _pack_handle(handle: LogitsHandle | None) -> list[int] | None:
    return None if handle is None else [handle.request, handle.rank]


def _unpack_handle(numbers: list[int] | None) -> LogitsHandle | None:
    return None if numbers is None else LogitsHandle(*numbers)
