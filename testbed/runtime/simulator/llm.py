"""The simulated LLM of the LLM API: a target, perhaps a draft, and generation that really speculates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.mtp import load_target
from testbed.runtime.inference.speculation import TemperatureSampler, generate, greedy
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.simulator.errors import ParameterError, RequestError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.llm_drafters import make_drafter
from testbed.runtime.simulator.llm_text import TextStream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from testbed.runtime.inference.speculation import Generation
    from testbed.runtime.simulator.llm_arguments import LLMArguments

_DEFAULT_MAX_TOKENS = 32


@dataclass(frozen=True)
class Sampling:
    """A request's sampling parameters; `temperature` 0 and `top_k` 1 choose greedily."""

    max_tokens: int = _DEFAULT_MAX_TOKENS
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Completion:
    """An answer: its text, why it ended (`stop` or `length`), and the true counts of draft tokens."""

    text: str
    finish_reason: str
    drafted: int
    accepted: int


class SimulatedLLM:
    """A loaded target with its draft."""

    def __init__(self, arguments: LLMArguments, environment: Mapping[str, str]) -> None:
        """Load the models.

        Raises:
            NoGPUError: no GPU is visible.
            ParameterError: a model can't be loaded, the pair doesn't fit, or there are too few GPUs.
        """
        gpus = require_gpus(environment, program="LLM")
        wanted = arguments.tensor_parallel_size * arguments.pipeline_parallel_size
        if wanted > len(gpus):
            raise ParameterError(f"world_size ({wanted}) is larger than the number of visible GPUs ({len(gpus)})")
        try:
            self._target = load_target(arguments.model)
            self._tokenizer = TextTokenizer.load(arguments.model)
            self._drafter = make_drafter(arguments, self._target)
            if self._drafter:
                self._drafter.begin(self._target)  # a pair that does not fit is met now, not by a request
        except InferenceError as problem:
            raise ParameterError(str(problem)) from problem
        self._longest = min(arguments.max_seq_len or 1 << 30, self._target.config.max_position_embeddings)

    def complete(self, prompt: str, sampling: Sampling, on_text: Callable[[str], None] | None = None) -> Completion:
        """Answer a prompt.

        Args:
            prompt: plain text.
            sampling: how tokens are chosen.
            on_text: called with each new piece of text.

        Raises:
            RequestError: the prompt is too long, or sampling is asked for that the simulator can't do.
        """
        tokens = self._tokenizer.encode(prompt)
        room = self._longest - len(tokens)
        if room < 1:
            raise RequestError(
                f"The sum of prompt length ({len(tokens)}) and max_tokens should not exceed max_seq_len "
                f"({self._longest})"
            )
        try:
            answer = self._generate(tokens, min(sampling.max_tokens, room), sampling, on_text)
        except (InferenceError, ValueError) as problem:
            raise RequestError(str(problem)) from problem
        reason = "stop" if answer.stopped else "length"
        return Completion(self._tokenizer.decode(answer.tokens), reason, answer.drafted, answer.accepted)

    def _generate(
        self, tokens: list[int], max_tokens: int, sampling: Sampling, on_text: Callable[[str], None] | None
    ) -> Generation:
        sampled = sampling.temperature > 0
        stream = TextStream(self._tokenizer, on_text) if on_text else None
        return generate(
            self._target,
            tokens,
            max_tokens=max_tokens,
            end_id=self._tokenizer.end_id,
            drafter=None if sampled else self._drafter,
            sampler=TemperatureSampler(sampling.temperature, sampling.seed) if sampled else greedy,
            on_tokens=stream.add if stream else None,
        )
