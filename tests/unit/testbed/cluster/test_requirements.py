from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testbed.cluster import requirements
from testbed.cluster.errors import RealNodeUnavailableError
from testbed.cluster.progress import SilentProgress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A machine of root's that has just the programs named."""

    def make(*programs: str) -> Path:
        for program in programs:
            (tmp_path / program).write_text("#!/bin/sh\n")
            (tmp_path / program).chmod(0o755)
        monkeypatch.setattr(requirements, "search_path", lambda: str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(requirements, "PLUGIN_DIRECTORIES", (tmp_path,))
        monkeypatch.setattr("os.geteuid", lambda: 0)
        return tmp_path

    return make


PLUGINS = ("ptp", "portmap", "host-local", "loopback")


def test_who_is_not_root_is_told_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RealNodeUnavailableError, match="needs root on Linux; run as root, or go on with kwok"):
        requirements.require_node_programs(SilentProgress())


def test_a_machine_with_all_programs_is_asked_for_nothing(machine: Callable[..., Path]) -> None:
    folder = machine(*requirements.PROGRAMS, *PLUGINS)
    assert requirements.require_node_programs(SilentProgress()).runc == folder / "runc"


def test_without_apt_the_missing_packages_are_named(machine: Callable[..., Path]) -> None:
    machine("runc", "ip", "unshare", "nsenter", "mount", "busybox", *PLUGINS)
    with pytest.raises(RealNodeUnavailableError, match=r"conntrack, iptables$"):
        requirements.require_node_programs(SilentProgress())


def test_a_failing_apt_is_quoted(machine: Callable[..., Path]) -> None:
    folder = machine(*requirements.PROGRAMS, "apt-get")
    (folder / "apt-get").write_text("#!/bin/sh\necho no network >&2; exit 100\n")
    with pytest.raises(RealNodeUnavailableError, match=r"installing containernetworking-plugins failed.*no network"):
        requirements.require_node_programs(SilentProgress())


def test_a_busybox_that_needs_libraries_is_no_pause_program(machine: Callable[..., Path]) -> None:
    folder = machine(*requirements.PROGRAMS, *PLUGINS)
    (folder / "busybox").write_bytes(b"\x7fELF/lib64/ld-linux-x86-64.so.2\0")
    assert requirements.missing_packages() == ["busybox-static"]
