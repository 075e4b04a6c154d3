"""An event loop that ends when its connections have."""

from __future__ import annotations

import asyncio
import selectors

CLOSE_SECONDS = 20.0
POLL_SECONDS = 0.01
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
            if len(self._sockets.get_map()) <= OWN_SOCKETS:
                return
            await asyncio.sleep(POLL_SECONDS)
