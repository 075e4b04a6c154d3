"""Fast logits: a target rank takes logits from the draft's rank itself, past Triton and the orchestrator."""

from __future__ import annotations

import socket
import struct
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from testbed.runtime.simulator.errors import RankError, RequestError
from testbed.runtime.simulator.executor import EngineRequest, EngineResult, LogitsHandle
from testbed.runtime.simulator.wire import Frame, address, receive, send

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEPT: Final = 256
_HANDLE: Final = struct.Struct("<QQ")


class LogitsShelf:
    """The logits of one draft rank's latest answers, and the socket that other ranks fetch them from."""

    def __init__(self, job: str, rank: int) -> None:
        """Open the shelf of a rank.

        Raises:
            RankError: the rank holds another model already, so the participant ids of two models overlap.
        """
        self._rank = rank
        self._kept: OrderedDict[int, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self._next = 1
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(address(job, "fast-logits", str(rank)))
        except OSError as problem:
            self._listener.close()
            raise RankError(f"rank {rank} is a participant of two models: make participant_ids disjoint") from problem
        self._listener.listen()
        threading.Thread(target=self._serve, name="fast-logits", daemon=True).start()

    def keep(self, result: EngineResult) -> EngineResult:
        """Keep a result's logits and return the result with a handle in their stead."""
        if result.logits is None:
            return result
        with self._lock:
            number = self._next
            self._next += 1
            self._kept[number] = result.logits
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return replace(result, logits=None, handle=LogitsHandle(number, self._rank))

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                number = receive(connection).document["request"]
                with self._lock:
                    logits = self._kept.pop(number, None)
                send(connection, Frame({"found": logits is not None}, logits))


def take_logits(job: str, request: EngineRequest) -> EngineRequest:
    """Return the request with the logits that its handle stands for.

    Raises:
        RequestError: the draft's rank doesn't have them, or is gone.
    """
    if request.handle is None:
        return request
    handle = request.handle
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(address(job, "fast-logits", str(handle.rank)))
            send(connection, Frame({"request": handle.request}))
            answer = receive(connection)
    except OSError as problem:
        raise RequestError(f"fast logits: rank {handle.rank} of the draft can't be reached: {problem}") from problem
    if not answer.document["found"]:
        raise RequestError(f"fast logits: rank {handle.rank} doesn't have the logits of request {handle.request}")
    return replace(request, draft_logits=answer.array, handle=None)


def handle_to_array(handle: LogitsHandle, data_type: type[np.floating]) -> NDArray[np.floating]:
    """Hide a handle in the bytes of a logits tensor [1, n], as it travels through Triton."""
    return np.frombuffer(_HANDLE.pack(handle.request, handle.rank), dtype=data_type)[np.newaxis]


def handle_from_array(array: NDArray[np.floating]) -> LogitsHandle:
    """Take the handle out of such a tensor.

    Raises:
        RequestError: it holds no handle; a draft without fast logits sent real logits.
    """
    content = array.tobytes()
    if len(content) != _HANDLE.size:
        raise RequestError("draft_logits hold no fast-logits handle: turn speculative_decoding_fast_logits on for both")
    return LogitsHandle(*_HANDLE.unpack(content))
