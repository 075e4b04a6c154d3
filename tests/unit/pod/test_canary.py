"""The startup probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.canary import canary
from specdec_operator.pod.probe_inputs import CanaryInput
from specdec_operator.pod.triton_http import RequestFailed
from tests.unit.pod import triton
from tests.unit.pod.shipped import ShippedProgram

if TYPE_CHECKING:
    from pathlib import Path

server = pytest.fixture(triton.running)


def given(port: int, tmp_path: Path, **changes: Any) -> CanaryInput:
    fields: dict[str, Any] = {
        "port": port,
        "model": "m",
        "request": {"text_input": "The capital of France is", "max_tokens": 4},
        "output": "text_output",
        "timeout_seconds": 5.0,
        "state_file": str(tmp_path / "state/canary"),
        **changes,
    }
    return CanaryInput(**fields)


def test_an_answered_request_is_enough(server: triton.TritonStandIn, tmp_path: Path) -> None:
    assert canary(given(server.port, tmp_path)) == "answered with 5 characters"
    assert server.requests == [{"text_input": "The capital of France is", "max_tokens": 4}]


def test_a_server_that_answered_once_is_not_asked_again(server: triton.TritonStandIn, tmp_path: Path) -> None:
    canary(given(server.port, tmp_path))
    canary(given(server.port, tmp_path))

    assert len(server.requests) == 1


def test_a_model_that_is_not_ready_is_not_asked(server: triton.TritonStandIn, tmp_path: Path) -> None:
    server.ready = False

    with pytest.raises(RequestFailed, match="/v2/models/m/ready: 400"):
        canary(given(server.port, tmp_path))
    assert server.requests == []


@pytest.mark.parametrize("answer", [{"text_output": ""}, {"text_output": " \n"}, {"other": "x"}, {"text_output": 3}])
def test_an_answer_without_text_is_none(
    server: triton.TritonStandIn, tmp_path: Path, answer: dict[str, object]
) -> None:
    server.answer = answer

    with pytest.raises(RequestFailed):
        canary(given(server.port, tmp_path))


def test_an_error_is_shown(server: triton.TritonStandIn, tmp_path: Path) -> None:
    server.status, server.answer = 500, {"error": "engine died"}

    with pytest.raises(RequestFailed, match=r"500 .*engine died"):
        canary(given(server.port, tmp_path))


def test_an_answer_that_takes_too_long_is_none(server: triton.TritonStandIn, tmp_path: Path) -> None:
    server.delay_seconds = 1.0

    with pytest.raises(RequestFailed, match="TimeoutError"):
        canary(given(server.port, tmp_path, timeout_seconds=0.2))


def test_the_program_exits_with_one_until_the_server_answers(server: triton.TritonStandIn, tmp_path: Path) -> None:
    server.ready = False
    program = ShippedProgram.lay_out("canary", tmp_path)
    before, why = program.run(given(server.port, tmp_path))
    server.ready = True
    after, _ = program.run(given(server.port, tmp_path))

    assert (before, after) == (1, 0)
    assert "ready: 400" in why
