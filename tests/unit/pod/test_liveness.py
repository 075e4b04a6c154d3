"""The liveness probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.pod.liveness import Load, is_alive, read_load
from specdec_operator.pod.probe_inputs import LivenessInput
from tests.unit.pod import triton
from tests.unit.pod.shipped import ShippedProgram

if TYPE_CHECKING:
    from pathlib import Path

server = pytest.fixture(triton.running)


def given(port: int, tmp_path: Path, **changes: Any) -> LivenessInput:
    fields: dict[str, Any] = {
        "port": port,
        "metrics_port": port,
        "model": "m",
        "request": {"text_input": "a", "max_tokens": 1},
        "output": "text_output",
        "timeout_seconds": 0.2,
        "stuck_seconds": 300.0,
        "state_file": str(tmp_path / "liveness"),
        **changes,
    }
    return LivenessInput(**fields)


def alive(asked: LivenessInput, seconds: float) -> bool:
    return is_alive(asked, clock=lambda: seconds)[0]


def test_requests_that_wait_for_minutes_unanswered_are_a_dead_server(
    server: triton.TritonStandIn, tmp_path: Path
) -> None:
    server.load(answered=5, pending=2)
    server.delay_seconds = 1.0
    asked = given(server.port, tmp_path)

    assert [alive(asked, seconds) for seconds in (0, 150, 299, 301)] == [True, True, True, False]


def test_a_server_that_answers_a_small_request_is_only_busy(server: triton.TritonStandIn, tmp_path: Path) -> None:
    server.load(answered=5, pending=2)
    asked = given(server.port, tmp_path)
    alive(asked, 0)

    assert alive(asked, 301)
    assert len(server.requests) == 1


def test_an_idle_server_is_never_asked(server: triton.TritonStandIn, tmp_path: Path) -> None:
    server.load(answered=5, pending=0)
    server.delay_seconds = 1.0
    asked = given(server.port, tmp_path)

    assert alive(asked, 0)
    assert alive(asked, 10_000)
    assert server.requests == []


def test_a_server_that_takes_requests_at_once_is_asked_when_nothing_was_answered_for_minutes(
    server: triton.TritonStandIn, tmp_path: Path
) -> None:
    server.load(answered=5, pending=0)
    server.delay_seconds = 1.0
    asked = given(server.port, tmp_path, takes_at_once=True)

    assert [alive(asked, seconds) for seconds in (0, 299, 301)] == [True, True, False]


def test_tokens_on_their_way_are_a_sign_of_life() -> None:
    assert read_load('vllm:generation_tokens_total{model="m",version="1"} 7\n').answered == 7


def test_the_wait_starts_with_the_last_answer(server: triton.TritonStandIn, tmp_path: Path) -> None:
    asked = given(server.port, tmp_path)
    server.delay_seconds = 1.0
    server.load(answered=5, pending=2)
    alive(asked, 0)
    server.load(answered=6, pending=2)
    alive(asked, 250)

    assert alive(asked, 500)


def test_the_wait_starts_with_the_first_waiting_request(server: triton.TritonStandIn, tmp_path: Path) -> None:
    asked = given(server.port, tmp_path)
    server.delay_seconds = 1.0
    server.load(answered=5, pending=0)
    alive(asked, 250)
    server.load(answered=5, pending=1)

    assert alive(asked, 500)


def test_metrics_that_cannot_be_read_kill_nothing(tmp_path: Path) -> None:
    assert alive(given(9, tmp_path), 0)


def test_requests_inside_the_engine_count_as_waiting() -> None:
    metrics = (
        'nv_trt_llm_request_metrics{model="m",request_type="active",version="1"} 2\n'
        'nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 64\n'
    )

    assert read_load(metrics) == Load(answered=0, pending=2)


def test_a_failed_request_is_an_answer_too() -> None:
    assert read_load('nv_inference_request_failure{model="m",reason="OTHER"} 3\n').answered == 3


def test_a_probe_that_cannot_work_kills_nothing(tmp_path: Path) -> None:
    program = ShippedProgram.lay_out("liveness", tmp_path)
    code, _ = program.run(given(9, tmp_path, state_file="/proc/nowhere/liveness"))

    assert code == 0
