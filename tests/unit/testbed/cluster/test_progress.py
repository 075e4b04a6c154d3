from __future__ import annotations

import io

import pytest

from testbed.cluster import progress
from testbed.cluster.progress import TerminalProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def clock() -> float:
    return 0.0


def test_a_step_is_announced_before_its_body_runs() -> None:
    stream = io.StringIO()
    with TerminalProgress(stream, clock=clock).step("build etcd"):
        assert stream.getvalue() == "build etcd …\n"


def test_a_step_that_raises_is_told_as_failed() -> None:
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), TerminalProgress(stream, clock=clock).step("build etcd"):
        raise ZeroDivisionError
    assert stream.getvalue().endswith("build etcd: failed after 0.0 s\n")


def test_without_a_terminal_no_control_character_is_written() -> None:
    stream = io.StringIO()
    with TerminalProgress(stream, clock=clock).step("build etcd"):
        pass
    assert stream.getvalue() == "build etcd …\nbuild etcd: done in 0.0 s\n"


def test_on_a_terminal_the_steps_line_counts_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_INTERVAL_SECONDS", 0.01)
    stream = Terminal()
    with TerminalProgress(stream, clock=clock).step("build etcd"):
        while "build etcd … 0 s" not in stream.getvalue():
            pass
    assert "\n" not in stream.getvalue().removesuffix("\n")


def test_a_long_steps_line_never_wraps_and_is_told_whole_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_INTERVAL_SECONDS", 0.01)
    stream, message = Terminal(), f"install Debian packages: {', '.join(['package'] * 20)}"
    with TerminalProgress(stream, clock=clock, columns=lambda: 80).step(message):
        while " … 0 s" not in stream.getvalue():
            pass
    *running, last = stream.getvalue().replace("\x1b[2K", "").split("\r")
    assert max(map(len, running)) < 80
    assert last == f"{message}: done in 0.0 s\n"


def test_a_reader_that_is_gone_stops_nobody() -> None:
    stream = io.StringIO()
    stream.close()
    with TerminalProgress(Terminal(), clock=clock).step("outer"):
        TerminalProgress.say(_with_stream(stream), "unheard")


def _with_stream(stream: io.StringIO) -> TerminalProgress:
    speaker = TerminalProgress(io.StringIO(), clock=clock)
    speaker._stream = stream
    return speaker
