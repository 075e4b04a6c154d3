"""The metrics that Triton's vLLM backend exports, counted by vLLM's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it

if TYPE_CHECKING:
    from collections.abc import Mapping

    from testbed.runtime.simulator.vllm import Completion

_COUNTERS: Final = {
    "vllm:prompt_tokens_total": "Number of prefill tokens processed.",
    "vllm:generation_tokens_total": "Number of generation tokens processed.",
}
_FIRST_TOKEN: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_PER_TOKEN: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_END_TO_END: Final = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_LENGTHS: Final = tuple(float(digit * 10**power) for power in range(4) for digit in (1, 2, 5))
_HISTOGRAMS: Final = {
    "vllm:time_to_first_token_seconds": ("Histogram of time to first token in seconds.", _FIRST_TOKEN),
    "vllm:time_per_output_token_seconds": ("Histogram of time per output token in seconds.", _PER_TOKEN),
    "vllm:e2e_request_latency_seconds": ("Histogram of end to end request latency in seconds.", _END_TO_END),
    "vllm:request_prompt_tokens": ("Number of prefill tokens processed.", _LENGTHS),
    "vllm:request_generation_tokens": ("Number of generation tokens processed.", _LENGTHS),
    "vllm:request_params_n": ("Histogram of the n request parameter.", (1.0, 2.0, 5.0, 10.0, 20.0)),
}


class EngineMetrics:
    """Counters and histograms of one model."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        """Register all families with the server."""
        # Families are kept: the server drops a metric when its family goes.
        self._families: list[Any] = []
        self._counters = {name: self._metric(name, text, labels) for name, text in _COUNTERS.items()}
        self._histograms = {
            name: self._metric(name, text, labels, buckets) for name, (text, buckets) in _HISTOGRAMS.items()
        }

    def count(self, completion: Completion) -> None:
        """Count a finished request.

        The prompt's pass goes to the time to first token. Each later pass gives one observation of the time per
        output token, however many tokens it added: that is what makes the mean acceptance length derivable.
        """
        self._counters["vllm:prompt_tokens_total"].increment(completion.prompt_tokens)
        self._counters["vllm:generation_tokens_total"].increment(completion.output_tokens)
        first, *later = completion.steps
        self._observe("time_to_first_token_seconds", first)
        for seconds in later:
            self._observe("time_per_output_token_seconds", seconds)
        self._observe("e2e_request_latency_seconds", sum(completion.steps))
        self._observe("request_prompt_tokens", completion.prompt_tokens)
        self._observe("request_generation_tokens", completion.output_tokens)
        self._observe("request_params_n", 1)

    def _observe(self, name: str, value: float) -> None:
        self._histograms[f"vllm:{name}"].observe(value)

    def _metric(self, name: str, text: str, labels: Mapping[str, str], buckets: tuple[float, ...] = ()) -> Any:
        kind = pb_utils.MetricFamily.HISTOGRAM if buckets else pb_utils.MetricFamily.COUNTER
        family = pb_utils.MetricFamily(name=name, description=text, kind=kind)
        self._families.append(family)
        return family.Metric(labels=dict(labels), **({"buckets": list(buckets)} if buckets else {}))
