"""An event loop that ends when its connections have."""

from __future__ import annotations

import asyncio
import selectors

CLOSE_SECONDS = 20.0
POLL_SECONDS = 0.01
LAST_TURNS = 10
# Every loop has a socket by which other threads wake it.
OWN_SOCKETS = 1


class PatientLoop(asyncio.SelectorEventLoop):
    """Waits at its close for connections that close: TLS asks the other side first, and a busy one takes its time.

    A loop that does not wait leaves their sockets open, and Python warns of each when it finds it.
    """

    def __init__(self) -> None:
        self._sockets = selectors.DefaultSelector()
        super().__init__(self._sockets)

    def close(self) -> None:
        """Close the loop, at the latest after :data:`CLOSE_SECONDS`."""
        if not self.is_closed():
            self.run_until_complete(self._connections_closed())
        super().close()

    async def _connections_closed(self) -> None:
        for _ in range(round(CLOSE_SECONDS / POLL_SECONDS)):
            if self._is_quiet():
                # A transport that reads no more closes its socket some turns later.
                for _ in range(LAST_TURNS):
                    await asyncio.sleep(0)
                if self._is_quiet():
                    return
            await asyncio.sleep(POLL_SECONDS)

    def _is_quiet(self) -> bool:
        return len(self._sockets.get_map()) <= OWN_SOCKETS
