"""The responses of a streamed answer: one per step, the last of them with the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from testbed.runtime.simulator.vllm import Completion, Delta


class StreamedAnswer:
    """Holds each step's piece back until the next one comes, since the last response is sent with the end."""

    def __init__(self, send: Callable[[Mapping[str, Any]], None]) -> None:
        """Take what sends one response that is not the last."""
        self._send = send
        self._held: Delta | None = None
        self._pieces = 0

    def add(self, delta: Delta) -> None:
        """Take a step's piece."""
        self._flush()
        self._held = delta
        self._pieces += 1

    def finish(self, done: Completion) -> dict[str, Any]:
        """Return text and number of tokens of the last response."""
        ended_alone = len(done.steps) > self._pieces
        if ended_alone:
            self._flush()
        ended = int(done.finish_reason == "stop")
        held = self._held
        return {
            "text_output": held.text if held else "",
            "num_output_tokens": (held.tokens if held else 0) + ended,
        }

    def _flush(self) -> None:
        if self._held is not None:
            self._send({"text_output": self._held.text, "num_output_tokens": self._held.tokens})
            self._held = None
