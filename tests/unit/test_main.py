from __future__ import annotations

import logging

import pytest

from specdec_operator.__main__ import is_news

FORBIDDEN = "failed; will retry: GET https://x/apis/batch/v1/jobs -> APIForbiddenError('jobs.batch is forbidden')"


def record(said: str, *, name: str = "kopf._cogs.clients.watching") -> logging.LogRecord:
    return logging.makeLogRecord({"name": name, "msg": said})


@pytest.mark.parametrize("attempt", ["#2", "#10", "#2/9"])
def test_a_watch_that_stays_forbidden_is_not_said_again(attempt: str) -> None:
    assert not is_news(record(f"Request attempt {attempt} {FORBIDDEN}"))


@pytest.mark.parametrize(
    "line",
    [
        record(f"Request attempt #1 {FORBIDDEN}"),
        record("Request attempt #2 failed; will retry: GET https://x -> ClientConnectorError()"),
        record(f"Request attempt #2 {FORBIDDEN}", name="specdec_operator.app"),
    ],
    ids=["the first time", "another failure", "the operator's own"],
)
def test_all_else_is_said(line: logging.LogRecord) -> None:
    assert is_news(line)
