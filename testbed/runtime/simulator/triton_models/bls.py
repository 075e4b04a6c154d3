"""The simulator's BLS model: the target alone, or draft and target in turn when `num_draft_tokens` is sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]  # Triton brings it

from testbed.runtime.simulator.engine_tensors import TensorReader, acceptance_tensors
from testbed.runtime.simulator.errors import RequestError
from testbed.runtime.simulator.release import LOG_PREFIX
from testbed.runtime.simulator.speculation_loop import Judgement, Proposal, SpeculativeAnswer, speculate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Read = Callable[[str], NDArray[Any] | None]

_PASSED_ON = {"top_k": "runtime_top_k", "top_p": "runtime_top_p", "temperature": "temperature", "seed": "seed"}


class TritonPythonModel:
    """Asks preprocessing, the engine models and postprocessing of the same repository."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Take the engine models' names; the draft's may be left unfilled."""
        parameters = json.loads(args["model_config"]).get("parameters", {})
        self._target = _parameter(parameters, "tensorrt_llm_model_name") or "tensorrt_llm"
        self._draft = _parameter(parameters, "tensorrt_llm_draft_model_name")

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests one after the other: an instance is busy until its answer is whole."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        def read(name: str) -> NDArray[Any] | None:
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            return None if tensor is None else tensor.as_numpy()

        try:
            return self._speculative(read) if TensorReader(read).whole("num_draft_tokens", 0) else self._plain(read)
        except (RequestError, pb_utils.TritonModelException) as problem:
            pb_utils.Logger.log_error(f"{LOG_PREFIX} {problem}")
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(problem)))

    def _plain(self, read: Read) -> Any:
        reader = TensorReader(read)
        prompt = _Prompt(read)
        tensors = prompt.engine_inputs(prompt.tokens, reader.whole("max_tokens", 0))
        # The input is left out, so that an answer's tokens are the new ones whatever the model's default.
        tensors["exclude_input_in_output"] = np.asarray([[True]])
        answer = _ask(self._target, tensors | _given(read, {"stream": "streaming", **_PASSED_ON}))
        return _respond(reader, prompt, _new_tokens(answer), _counts(answer))

    def _speculative(self, read: Read) -> Any:
        reader = TensorReader(read)
        draft_model = self._check_speculative(reader)
        prompt = _Prompt(read)
        pair = _Pair(read, prompt, draft_model=draft_model, target_model=self._target)
        answer = speculate(
            prompt.tokens,
            max_tokens=reader.whole("max_tokens", 0),
            num_draft_tokens=reader.whole("num_draft_tokens", 0),
            end_id=prompt.end_id,
            draft=pair.draft,
            target=pair.target,
        )
        _log_answer(answer)
        return _respond(reader, prompt, answer.tokens, (answer.drafted, answer.accepted))

    def _check_speculative(self, reader: TensorReader) -> str:
        if not self._draft:
            raise RequestError("cannot perform speculative decoding without draft model")
        stream = reader.array("stream")
        if stream is None:
            # The original's very words: its code takes the missing input for an array.
            raise RequestError("AttributeError: 'NoneType' object has no attribute 'any' (stream must be sent)")
        if stream.any():
            raise RequestError("streaming is not supported with speculative decoding")
        if reader.flag("return_context_logits", default=False):
            raise RequestError("context logits are not supported with speculative decoding")
        return self._draft


class _Prompt:
    """A preprocessed prompt."""

    def __init__(self, read: Read) -> None:
        names = {"text_input": "QUERY", "max_tokens": "REQUEST_OUTPUT_LEN", "end_id": "END_ID", "pad_id": "PAD_ID"}
        answer = _ask("preprocessing", _given(read, names))
        self.tokens = tuple(int(token) for token in answer["INPUT_ID"].flatten())
        self.end_id = int(answer["OUT_END_ID"].flat[0])

    def engine_inputs(self, tokens: tuple[int, ...], max_tokens: int) -> dict[str, NDArray[Any]]:
        return {
            "input_ids": np.asarray([tokens], dtype=np.int32),
            "input_lengths": np.asarray([[len(tokens)]], dtype=np.int32),
            "request_output_len": np.asarray([[max_tokens]], dtype=np.int32),
            "end_id": np.asarray([[self.end_id]], dtype=np.int32),
            "return_perf_metrics": np.asarray([[True]]),
        }


class _Pair:
    """The draft and the target model of one request.

    As the original it takes for new what follows the tokens that it sent. A model that leaves out the input by its own
    `exclude_input_in_output` so loses its answer silently: a draft then never drafts, a target ends the text.
    """

    def __init__(self, read: Read, prompt: _Prompt, *, draft_model: str, target_model: str) -> None:
        self._prompt = prompt
        self._draft_model = draft_model
        self._target_model = target_model
        self._sampling = _given(read, _PASSED_ON)
        self._wants_logits = TensorReader(read).flag("use_draft_logits", default=False)

    def draft(self, tokens: tuple[int, ...], count: int) -> Proposal:
        extra = {
            "return_generation_logits": np.asarray([[self._wants_logits]]),
            "min_tokens": np.asarray([[count]], dtype=np.int32),
        }
        answer = _ask(self._draft_model, self._prompt.engine_inputs(tokens, count) | extra | self._sampling)
        proposed = _new_tokens(answer, after=len(tokens))
        return Proposal(proposed, answer["generation_logits"][0] if self._wants_logits else None)

    def target(self, tokens: tuple[int, ...], proposal: Proposal | None, remaining: int) -> Judgement:
        extra: dict[str, NDArray[Any]] = {}
        limit = remaining
        if proposal is not None and proposal.tokens:
            extra["draft_input_ids"] = np.asarray([proposal.tokens], dtype=np.int32)
            if proposal.logits is not None:
                extra["draft_logits"] = proposal.logits
            limit = len(proposal.tokens) + 1
        answer = _ask(self._target_model, self._prompt.engine_inputs(tokens, limit) | extra | self._sampling)
        return Judgement(_new_tokens(answer, after=len(tokens)), *_counts(answer))


def _given(read: Read, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    arrays = {theirs: read(ours) for ours, theirs in names.items()}
    return {name: array for name, array in arrays.items() if array is not None}


def _ask(model: str, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    config = {"preprocessing": _PREPROCESSED, "postprocessing": ("OUTPUT",)}
    outputs = config.get(model, _ENGINE_OUTPUTS)
    if "return_generation_logits" in tensors and tensors["return_generation_logits"].any():
        outputs = (*outputs, "generation_logits")
    request = pb_utils.InferenceRequest(
        model_name=model,
        inputs=[pb_utils.Tensor(*item) for item in tensors.items()],
        requested_output_names=list(outputs),
    )
    response = request.exec()
    if response.has_error():
        raise RequestError(f"{model}: {response.error().message()}")
    return {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}


_PREPROCESSED = ("INPUT_ID", "OUT_END_ID")
_ENGINE_OUTPUTS = (
    "output_ids",
    "sequence_length",
    "acceptance_rate",
    "total_accepted_draft_tokens",
    "total_draft_tokens",
)


def _new_tokens(answer: Mapping[str, NDArray[Any]], *, after: int = 0) -> tuple[int, ...]:
    length = int(answer["sequence_length"].flat[0])
    return tuple(int(token) for token in answer["output_ids"][0][0][after:length])


def _counts(answer: Mapping[str, NDArray[Any]]) -> tuple[int, int]:
    return int(answer["total_draft_tokens"].flat[0]), int(answer["total_accepted_draft_tokens"].flat[0])


def _respond(reader: TensorReader, prompt: _Prompt, new_tokens: tuple[int, ...], counts: tuple[int, int]) -> Any:
    excluded = reader.flag("exclude_input_in_output", default=False)
    tokens = new_tokens if excluded else (*prompt.tokens, *new_tokens)
    output = np.asarray([[tokens]], dtype=np.int32)
    length = np.asarray([[len(tokens)]], dtype=np.int32)
    text = _ask("postprocessing", {"TOKENS_BATCH": output, "SEQUENCE_LENGTH": length})["OUTPUT"]
    outputs = {"text_output": text.reshape(1, -1)}
    if reader.flag("return_perf_metrics", default=False):
        outputs |= acceptance_tensors(*counts)
    return pb_utils.InferenceResponse([pb_utils.Tensor(*item) for item in outputs.items()])


def _log_answer(answer: SpeculativeAnswer) -> None:
    pb_utils.Logger.log_info(
        f"{LOG_PREFIX} tensorrt_llm_bls: target_calls={answer.target_calls} "
        f"drafted={answer.total_drafted} accepted={answer.total_accepted}"
    )


def _parameter(parameters: Mapping[str, Any], name: str) -> str | None:
    value = parameters.get(name, {}).get("string_value", "")
    return None if value.startswith("${") or not value else value
