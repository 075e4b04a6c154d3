from __future__ import annotations

import io

from testbed.demo.models import Row, Tone
from testbed.demo.screen import Screen

WAITING = Row("pair", "Building", Tone.WAITING, "1/2", "", "", "0/1", 1.0)
LATER = Row("pair", "Building", Tone.WAITING, "1/2", "", "", "0/1", 2.0)
SERVING = Row("pair", "Serving", Tone.GOOD, "2/2", "", "", "1/1", 3.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *rows: Row, **environment: str) -> str:
    screen = Screen(stream, environment={"TERM": "xterm", **environment})
    for row in rows:
        screen.show([row])
    return stream.getvalue()


def test_without_a_terminal_a_model_has_a_line_when_it_changes() -> None:
    lines = shown(io.StringIO(), WAITING, LATER, SERVING).splitlines()
    assert [line.split()[3] for line in lines] == ["Building", "Serving"]


def test_without_a_terminal_there_are_no_control_characters() -> None:
    assert "\x1b" not in shown(io.StringIO(), WAITING, SERVING)


def test_a_terminal_is_redrawn_in_place() -> None:
    assert shown(Terminal(), WAITING, LATER).count("\x1b[2A") == 1


def test_no_color_is_shown_where_none_is_wanted() -> None:
    assert "\x1b[32m" in shown(Terminal(), SERVING)
    assert "\x1b[32m" not in shown(Terminal(), SERVING, NO_COLOR="1")


def test_a_dumb_terminal_gets_plain_lines() -> None:
    assert "\x1b" not in shown(Terminal(), WAITING, TERM="dumb")


def test_wrapped_lines_fit_the_width_and_begin_with_the_indent() -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    screen.wrapped("word " * 40, indent="    ")
    first, second, *_ = stream.getvalue().splitlines()
    assert len(first) <= screen.width
    assert second.startswith("    word")
