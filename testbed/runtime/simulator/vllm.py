"""The simulated vLLM engine: a target, perhaps a draft, and generation that really speculates."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from testbed.runtime.inference.errors import InferenceError
from testbed.runtime.inference.mtp import load_target
from testbed.runtime.inference.speculation import TemperatureSampler, generate, greedy
from testbed.runtime.inference.tokenizer import TextTokenizer
from testbed.runtime.simulator.errors import ParameterError, RequestError
from testbed.runtime.simulator.gpus import require_gpus
from testbed.runtime.simulator.llm_text import TextStream
from testbed.runtime.simulator.vllm_drafters import make_drafter
from testbed.runtime.simulator.vllm_sampling import check_sampling, skips_speculation
from testbed.runtime.simulator.vllm_speculation import plan_speculation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from testbed.runtime.inference.speculation import Generation
    from testbed.runtime.simulator.vllm_arguments import VLLMArguments
    from testbed.runtime.simulator.vllm_releases import VLLMRelease
    from testbed.runtime.simulator.vllm_sampling import SamplingParameters


@dataclass(frozen=True, kw_only=True)
class Delta:
    """A piece of an answer: its new text and how many tokens came with it."""

    text: str
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A finished answer.

    Attributes:
        text: the answer without the prompt.
        finish_reason: `stop` or `length`.
        prompt_tokens: tokens of the prompt.
        output_tokens: new tokens; the end mark, if met, counts.
        drafted: tokens that were proposed, and `accepted` those of them that the target would have chosen.
        accepted: see there.
        steps: seconds that each pass of the target took, the prompt's first.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    output_tokens: int
    drafted: int
    accepted: int
    steps: tuple[float, ...]


@dataclass
class _Steps:
    """Measures the passes of one answer."""

    clock: Callable[[], float]
    last: float = 0.0
    seconds: list[float] = field(default_factory=list)

    def note(self) -> None:
        now = self.clock()
        self.seconds.append(now - self.last)
        self.last = now

    def exactly(self, passes: int) -> tuple[float, ...]:
        # A pass that adds nothing but the end mark is not announced.
        while len(self.seconds) < passes:
            self.note()
        return tuple(self.seconds)


class SimulatedVLLM:
    """A loaded target with what drafts for it."""

    def __init__(self, arguments: VLLMArguments, release: VLLMRelease, environment: Mapping[str, str]) -> None:
        """Load the models.

        Raises:
            NoGPUError: no GPU is visible.
            ParameterError: the release refuses these arguments, a model can't be loaded, or GPUs are too few.
        """
        gpus = require_gpus(environment, program="vLLM")
        wanted = arguments.tensor_parallel_size * arguments.pipeline_parallel_size
        if wanted > len(gpus):
            raise ParameterError(
                f"World size ({wanted}) is larger than the number of available GPUs ({len(gpus)}) in this node."
            )
        self._release = release
        self.plan = plan_speculation(arguments, release, release.generation(environment))
        try:
            self._target = load_target(arguments.model)
            self._tokenizer = TextTokenizer.load(arguments.model)
            self._drafter = make_drafter(self.plan, self._target) if self.plan else None
            if self._drafter:
                self._drafter.begin(self._target)  # a pair that does not fit is met now, not by a request
        except (InferenceError, OSError) as problem:
            raise ParameterError(str(problem)) from problem
        self._longest = _length(arguments, self._target.config.max_position_embeddings)
        _check_scheduler(arguments, self._longest)
        self._clock = time.monotonic

    def complete(
        self, prompt: str, sampling: SamplingParameters, on_delta: Callable[[Delta], None] | None = None
    ) -> Completion:
        """Answer a prompt.

        Args:
            prompt: plain text.
            sampling: how tokens are chosen.
            on_delta: called with each new piece.

        Raises:
            RequestError: the prompt is too long, or speculation does not go with the sampling parameters.
        """
        if self.plan:
            check_sampling(sampling, self._release)
        tokens = self._tokenizer.encode(prompt)
        if len(tokens) >= self._longest:
            raise RequestError(
                f"The decoder prompt (length {len(tokens)}) is longer than the maximum model length of"
                f" {self._longest}. Make sure that `max_model_len` is no smaller than the number of text tokens."
            )
        steps = _Steps(self._clock, self._clock())
        stream = _Deltas(self._tokenizer, on_delta) if on_delta else None

        def taken(new: Sequence[int]) -> None:
            steps.note()
            if stream:
                stream.add(new)

        limit = min(sampling.max_tokens, self._longest - len(tokens))
        try:
            answer = self._generate(tokens, limit, sampling, taken)
        except (InferenceError, ValueError) as problem:
            raise RequestError(str(problem)) from problem
        return Completion(
            text=self._tokenizer.decode(answer.tokens),
            finish_reason="stop" if answer.stopped else "length",
            prompt_tokens=len(tokens),
            output_tokens=len(answer.tokens) + answer.stopped,
            drafted=answer.drafted,
            accepted=answer.accepted,
            steps=steps.exactly(answer.target_passes),
        )

    def _generate(
        self,
        tokens: list[int],
        limit: int,
        sampling: SamplingParameters,
        taken: Callable[[Sequence[int]], None],
    ) -> Generation:
        sampled = sampling.temperature > 0
        undrafted = sampled or skips_speculation(sampling, self._release)
        return generate(
            self._target,
            tokens,
            max_tokens=limit,
            end_id=-1 if sampling.ignore_eos else self._tokenizer.end_id,
            drafter=None if undrafted else self._drafter,
            sampler=TemperatureSampler(sampling.temperature, sampling.seed) if sampled else greedy,
            on_tokens=taken,
        )


class _Deltas:
    """Announces each pass's tokens with the text that they add."""

    def __init__(self, tokenizer: TextTokenizer, on_delta: Callable[[Delta], None]) -> None:
        self._text = ""
        self._stream = TextStream(tokenizer, self._take)
        self._on_delta = on_delta

    def add(self, tokens: Sequence[int]) -> None:
        self._stream.add(tokens)
        self._on_delta(Delta(text=self._text, tokens=len(tokens)))

    def _take(self, text: str) -> None:
        self._text = text


def _length(arguments: VLLMArguments, derived: int) -> int:
    wanted = arguments.max_model_len
    if wanted is not None and wanted > derived:
        raise ParameterError(
            f"User-specified max_model_len ({wanted}) is greater than the derived max_model_len"
            f" (max_position_embeddings={derived} or model_max_length=None in model's config.json)."
        )
    return wanted or derived


def _check_scheduler(arguments: VLLMArguments, longest: int) -> None:
    batched = arguments.max_num_batched_tokens
    if batched is None:
        return
    if batched < longest and arguments.enable_chunked_prefill is False:
        raise ParameterError(
            f"max_num_batched_tokens ({batched}) is smaller than max_model_len ({longest}). This effectively limits"
            " the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences."
        )
    if batched < arguments.max_num_seqs:
        raise ParameterError(
            f"max_num_batched_tokens ({batched}) must be greater than or equal to max_num_seqs"
            f" ({arguments.max_num_seqs})."
        )
