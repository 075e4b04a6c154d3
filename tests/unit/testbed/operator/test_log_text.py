from __future__ import annotations

import json
from typing import TYPE_CHECKING

from testbed.operator.log_text import FollowedLog, log_lines, plain_line

if TYPE_CHECKING:
    from pathlib import Path

RECORD = {"time": "2026-01-02T03:04:05.678+00:00", "level": "info", "logger": "any", "message": "leading"}


def test_a_record_is_read_as_time_level_and_message() -> None:
    assert plain_line(json.dumps(RECORD)) == "03:04:05.678 info leading"


def test_a_records_traceback_is_kept() -> None:
    assert plain_line(json.dumps({**RECORD, "error": "Traceback …"})).endswith("leading\nTraceback …")


def test_a_line_that_is_no_record_stays_as_it_is() -> None:
    assert plain_line("Segmentation fault") == "Segmentation fault"


def test_only_the_last_lines_are_shown() -> None:
    assert log_lines("a\nb\nc", count=2) == "  b\n  c"


def test_a_log_is_followed_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "operator.log"
    log = FollowedLog(file)
    assert log.new_lines() == []
    file.write_text("first\nsec")
    assert log.new_lines() == ["first"]
    file.write_text("first\nsecond\n")
    assert log.new_lines() == ["second"]
