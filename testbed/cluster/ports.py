"""Ports to listen on."""

from __future__ import annotations

import secrets
import socket

# Below the ephemeral range, whose ports the kernel gives away between our look and the program's own bind.
FIRST_PORT = 20_000
LAST_PORT = 29_999


def free_ports(count: int, *, address: str) -> tuple[int, ...]:
    """Return distinct ports that nothing listens on at an address."""
    found: list[int] = []
    while len(found) < count:
        port = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT + 1)
        if port not in found and _free(address, port):
            found.append(port)
    return tuple(found)


def _free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
