"""The ranks of one model: the orchestrator or leader that serves, and the ranks that attach to it."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.runtime.simulator.errors import RankError, RequestError
from testbed.runtime.simulator.wire import (
    Frame,
    address,
    pack_request,
    pack_result,
    receive,
    send,
    unpack_request,
    unpack_result,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from testbed.runtime.simulator.executor import EngineRequest, EngineResult

_RETRY_SECONDS: Final = 0.1
_REMINDER_SECONDS: Final = 30.0
_UUID_LENGTH: Final = 36


@dataclass(frozen=True)
class Hello:
    """How a rank introduces itself.

    Attributes:
        rank: MPI rank.
        role: its part for the model.
        shm_prefix: its python backend's `shm-region-prefix-name`.
        server: process id of its tritonserver.
    """

    rank: int
    role: str
    shm_prefix: str
    server: int


class RankHub:
    """The serving rank's side of one model: waits for the other ranks, then sends the work to one of them."""

    def __init__(self, job: str, model: str, own: Hello) -> None:
        self._model = model
        self._members: dict[int, tuple[Hello, socket.socket]] = {}
        self._own = own
        self._arrived = threading.Condition()
        self._busy = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address(job, model))
        self._listener.listen()
        threading.Thread(target=self._accept, name=f"ranks-of-{model}", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                hello = Hello(**receive(connection).document)
            except ConnectionError:
                continue
            except OSError:
                return
            with self._arrived:
                self._members[hello.rank] = (hello, connection)
                self._arrived.notify_all()

    def wait_for(self, ranks: frozenset[int], log: Callable[[str], None]) -> None:
        """Block until all ranks have loaded the model too; forever, as the original does, but with a reminder.

        Raises:
            RankError: two ranks share a shared-memory prefix.
        """
        with self._arrived:
            while missing := ranks - set(self._members):
                if not self._arrived.wait(timeout=_REMINDER_SECONDS):
                    log(
                        f"{self._model}: still waiting for MPI ranks {sorted(missing)}; the original hangs here too: "
                        "is the world size 1 + all participants, and does every rank --load-model this model?"
                    )
            hellos = [self._own, *(hello for hello, _ in self._members.values())]
        _check_prefixes(hellos)

    def run(self, rank: int, request: EngineRequest) -> EngineResult:
        """Let a participant answer.

        Raises:
            RequestError: it refused the request, or is gone.
        """
        _, connection = self._members[rank]
        try:
            with self._busy:
                send(connection, pack_request(request))
                answer = receive(connection)
        except OSError as problem:
            raise RequestError(f"rank {rank} of {self._model} is gone: {problem}") from problem
        if "error" in answer.document:
            raise RequestError(answer.document["error"])
        return unpack_result(answer)

    def close(self) -> None:
        """Send all ranks home, one after the other: a leaving rank's server opens the job's ports for a moment."""
        self._listener.close()
        before = [self._own.server]
        for _, (hello, connection) in sorted(self._members.items()):
            with suppress(OSError), connection:
                send(connection, Frame({"leave_after": before}))
            before = [*before, hello.server]


def _check_prefixes(hellos: list[Hello]) -> None:
    owners: dict[str, int] = {}
    for hello in sorted(hellos, key=lambda hello: hello.rank):
        first = owners.setdefault(hello.shm_prefix, hello.rank)
        if first != hello.rank:
            raise RankError(
                f"ranks {first} and {hello.rank} share the shared memory prefix {hello.shm_prefix!r}: give each rank "
                "its own --backend-config=python,shm-region-prefix-name"
            )


class RankLink:
    """An attached rank's side."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    def attach(cls, job: str, model: str, own: Hello) -> RankLink:
        """Connect to the serving rank, however long that takes to come up."""
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(address(job, model))
                send(connection, Frame(vars(own)))
                return cls(connection)
            except OSError:
                connection.close()
                time.sleep(_RETRY_SECONDS)

    def work(self, answer: Callable[[EngineRequest], EngineResult]) -> None:
        """Answer requests until the serving rank shuts down and it is this rank's turn to leave."""
        servers: list[int] = []
        with suppress(OSError), self._connection:
            while not servers:
                frame = receive(self._connection)
                if "leave_after" in frame.document:
                    servers = frame.document["leave_after"]
                else:
                    send(self._connection, _answer_frame(frame, answer))
        while any(Path(f"/proc/{server}").exists() for server in servers):
            time.sleep(_RETRY_SECONDS)


def _answer_frame(frame: Frame, answer: Callable[[EngineRequest], EngineResult]) -> Frame:
    try:
        return pack_result(answer(unpack_request(frame)))
    except RequestError as problem:
        return Frame({"error": str(problem)})


def shm_prefix(command_line: bytes) -> str:
    """Return the prefix that Triton gave this stub process: its second argument less the identity at its end."""
    arguments = command_line.split(b"\0")
    return arguments[2].decode()[:-_UUID_LENGTH] if len(arguments) > 2 else ""
