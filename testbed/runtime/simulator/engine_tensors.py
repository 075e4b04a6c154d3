"""Between Triton's tensors and the engine's requests; one request at a time, batch dimension 1 first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from testbed.runtime.inference.lookahead import LookaheadConfig, LookaheadConfigError
from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.executor import EngineRequest, EngineResult
from testbed.runtime.simulator.fast_logits import handle_from_array, handle_to_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


_LOOKAHEAD_SIZES: Final = ("lookahead_window_size", "lookahead_ngram_size", "lookahead_verification_set_size")


@dataclass(frozen=True)
class EngineCall:
    """A request and what its answer shall carry.

    Attributes:
        request: for the engine.
        exclude_input: whether output_ids leave the prompt out.
        perf_metrics: whether acceptance is returned.
        logits_type: floating-point type of logits tensors in Triton.
        written_type: the engine's own; none for the same.
    """

    request: EngineRequest
    exclude_input: bool
    perf_metrics: bool
    logits_type: type[np.floating[Any]]
    written_type: str | None = None


class TensorReader:
    """Reads optional input tensors by name."""

    def __init__(self, read: Callable[[str], NDArray[Any] | None]) -> None:
        self._read = read

    def array(self, name: str) -> NDArray[Any] | None:
        """Return the tensor, or none when it wasn't sent."""
        return self._read(name)

    def whole(self, name: str, default: int) -> int:
        """Return the first number, or the default."""
        value = self._read(name)
        return default if value is None or value.size == 0 else int(value.flat[0])

    def real(self, name: str, default: float) -> float:
        """Return the first number, or the default."""
        value = self._read(name)
        return default if value is None or value.size == 0 else float(value.flat[0])

    def flag(self, name: str, *, default: bool) -> bool:
        """Return the first truth value, or the default."""
        value = self._read(name)
        return default if value is None or value.size == 0 else bool(value.flat[0])

    def tokens(self, name: str) -> tuple[int, ...]:
        """Return all numbers, none when it wasn't sent."""
        value = self._read(name)
        return () if value is None else tuple(int(token) for token in value.flatten())


def parse_call(
    read: TensorReader,
    *,
    exclude_input: bool,
    fast_logits: bool,
    logits_type: type[np.floating[Any]],
    written_type: str | None = None,
) -> EngineCall:
    """Read one request of the engine model.

    Args:
        read: the request's tensors.
        exclude_input: the model's default for requests that don't say.
        fast_logits: whether draft_logits hold a handle.
        logits_type: as config.pbtxt declares logits.
        written_type: as the engine's config.json declares them.

    Raises:
        RequestError: a tensor is missing or contradicts another.
    """
    length = read.whole("input_lengths", -1)
    tokens = read.tokens("input_ids")
    if not 0 < length <= len(tokens):
        raise RequestError(f"input_lengths is {length}, but input_ids has {len(tokens)} tokens")
    if read.whole("beam_width", 1) != 1:
        raise RequestError("beam_width: the simulator has no beam search")
    logits = read.array("draft_logits")
    handle = handle_from_array(logits) if fast_logits and logits is not None else None
    real_logits = None if handle or logits is None else logits.reshape(logits.shape[-2:]).astype(np.float32)
    max_tokens = read.whole("request_output_len", 0)
    # As many tokens at least as at most: the end mark doesn't end such an answer.
    unending = read.whole("min_tokens", 0) >= max_tokens
    request = EngineRequest(
        tokens=tokens[:length],
        max_tokens=max_tokens,
        end_id=-1 if unending else read.whole("end_id", -1),
        draft_tokens=read.tokens("draft_input_ids"),
        draft_logits=real_logits,
        handle=handle,
        return_logits=read.flag("return_generation_logits", default=False),
        temperature=_temperature(read),
        seed=read.whole("seed", 0),
        lookahead=_lookahead(read),
    )
    if request.max_tokens < 1:
        raise RequestError(f"request_output_len is {request.max_tokens}; it must be at least 1")
    excluded = read.flag("exclude_input_in_output", default=exclude_input)
    metrics = read.flag("return_perf_metrics", default=False)
    return EngineCall(request, excluded, metrics, logits_type, written_type)


def _temperature(read: TensorReader) -> float:
    # Without top-k or top-p the original chooses greedily, whatever the temperature.
    sampled = read.whole("runtime_top_k", 1) > 1 or read.real("runtime_top_p", 0.0) > 0
    return read.real("temperature", 1.0) if sampled else 0.0


def _lookahead(read: TensorReader) -> LookaheadConfig | None:
    sizes = {name: read.whole(name, -1) for name in _LOOKAHEAD_SIZES if read.array(name) is not None}
    if not sizes:
        return None
    missing = [name for name in _LOOKAHEAD_SIZES if name not in sizes]
    if missing:
        raise RequestError(f"Failed to extract {missing[0]}")
    try:
        return LookaheadConfig(*sizes.values())
    except LookaheadConfigError as problem:
        raise RequestError(str(problem)) from problem


def answer_tensors(call: EngineCall, result: EngineResult) -> Mapping[str, NDArray[Any]]:
    """Return the output tensors of a whole answer, batch and beam dimensions first."""
    tokens = result.tokens if call.exclude_input else (*call.request.tokens, *result.tokens)
    tensors: dict[str, NDArray[Any]] = {
        "output_ids": np.asarray([[tokens]], dtype=np.int32),
        "sequence_length": np.asarray([[len(tokens)]], dtype=np.int32),
        "batch_index": np.zeros((1, 1), dtype=np.int32),
        "sequence_index": np.zeros((1, 1), dtype=np.int32),
    }
    if result.handle is not None:
        tensors["generation_logits"] = handle_to_array(result.handle, call.logits_type)[np.newaxis, np.newaxis]
    elif result.logits is not None:
        tensors["generation_logits"] = _as_declared(result.logits, call)[np.newaxis, np.newaxis]
    if call.perf_metrics:
        tensors |= acceptance_tensors(result.drafted, result.accepted)
    return tensors


def _as_declared(logits: NDArray[np.float32], call: EngineCall) -> NDArray[Any]:
    """Return the logits as Triton's type; of another type than the engine's the original reads the wrong bytes."""
    if call.written_type is None or np.dtype(call.written_type) == np.dtype(call.logits_type):
        return logits.astype(call.logits_type)
    size = logits.size * np.dtype(call.logits_type).itemsize
    content = logits.astype(call.written_type).tobytes()[:size]
    return np.frombuffer(content.ljust(size, b"\0"), dtype=call.logits_type).reshape(logits.shape)


def acceptance_tensors(drafted: int, accepted: int) -> Mapping[str, NDArray[Any]]:
    """Return the three acceptance outputs; the rate is 0 where nothing was drafted, as the original gives it."""
    rate = accepted / drafted if drafted else 0.0
    return {
        "acceptance_rate": np.asarray([[rate]], dtype=np.float32),
        "total_accepted_draft_tokens": np.asarray([[accepted]], dtype=np.int32),
        "total_draft_tokens": np.asarray([[drafted]], dtype=np.int32),
    }
