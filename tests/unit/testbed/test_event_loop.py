from __future__ import annotations

import asyncio
import socket
import threading

from testbed.event_loop import PatientLoop

MOMENT = 0.2


async def leave_open(connection: socket.socket) -> None:
    """Connect, and leave it to the other side to close."""
    reader, _writer = await asyncio.open_connection(sock=connection)
    asyncio.get_running_loop().create_task(reader.read()).add_done_callback(lambda _: _writer.close())


def test_a_loop_closes_after_its_connections() -> None:
    ours, theirs = socket.socketpair()
    closing = threading.Timer(MOMENT, theirs.close)
    loop = PatientLoop()
    loop.run_until_complete(leave_open(ours))
    closing.start()

    loop.close()

    assert ours.fileno() == -1
    closing.join()
