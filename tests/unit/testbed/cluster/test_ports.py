from __future__ import annotations

import socket

from testbed.cluster import ports


def test_ports_are_distinct() -> None:
    assert len(set(ports.free_ports(50, address="127.0.0.1"))) == 50


def test_a_port_that_is_taken_is_never_given() -> None:
    with socket.socket() as listener:
        (port,) = ports.free_ports(1, address="127.0.0.1")
        listener.bind(("127.0.0.1", port))
        assert not ports._free("127.0.0.1", port)
