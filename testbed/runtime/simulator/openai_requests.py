"""From OpenAI's requests to Triton's, and back."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from testbed.runtime.simulator.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from testbed.runtime.simulator.openai_arguments import FrontEndArguments

_SAMPLING: Final = ("temperature", "top_p", "seed", "stop", "frequency_penalty", "presence_penalty", "min_tokens")


@dataclass(frozen=True, kw_only=True)
class OpenAIRequest:
    """What a client wants.

    Attributes:
        model: Triton's name of the model.
        prompt: plain text.
        stream: pieces as they come.
        chat: whether it came to /v1/chat/completions.
        max_tokens: limit of new tokens.
        sampling: the fields that go on to the backend, as the client wrote them.
    """

    model: str
    prompt: str
    stream: bool
    chat: bool
    max_tokens: int
    sampling: Mapping[str, Any]

    def tensors(self, backend: str) -> dict[str, Any]:
        """Return Triton's inputs: nothing among them makes a draft model propose."""
        if backend == "vllm":
            sampling = json.dumps({**self.sampling, "max_tokens": self.max_tokens})
            outputs = dict.fromkeys(
                ("return_finish_reason", "return_num_input_tokens", "return_num_output_tokens"), True
            )
            return {
                "text_input": self.prompt,
                "stream": self.stream,
                "exclude_input_in_output": True,
                "sampling_parameters": sampling,
                **outputs,
            }
        known = {name: value for name, value in self.sampling.items() if name in ("temperature", "top_p", "seed")}
        return {"text_input": self.prompt, "max_tokens": self.max_tokens, "stream": self.stream, **known}


def parse_request(body: bytes, *, chat: bool, arguments: FrontEndArguments, template: bool) -> OpenAIRequest:
    """Parse a request's body.

    Args:
        body: JSON.
        chat: whether it came to /v1/chat/completions.
        arguments: the front end's, for defaults.
        template: whether there is a chat template.

    Raises:
        RequestError: a field is missing or not served.
    """
    try:
        fields: Any = json.loads(body)
        model, limit = str(fields["model"]), fields.get("max_completion_tokens") or fields.get("max_tokens")
        prompt = _chat_prompt(fields["messages"], template=template) if chat else fields["prompt"]
        max_tokens = int(limit if limit is not None else arguments.default_max_tokens)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise RequestError(f"the body lacks a field or is not understood: {problem!r}") from problem
    if not isinstance(prompt, str):
        raise RequestError("only single string input is supported")
    if fields.get("n", 1) != 1 or (fields.get("best_of") or 1) != 1:
        raise RequestError("only n=1 and no best_of are served")
    sampling = {name: fields[name] for name in _SAMPLING if fields.get(name) is not None}
    return OpenAIRequest(
        model=model,
        prompt=prompt,
        stream=bool(fields.get("stream")),
        chat=chat,
        max_tokens=max_tokens,
        sampling=sampling,
    )


def has_chat_template(tokenizer: Path) -> bool:
    """Whether a tokenizer's directory has a chat template."""
    file = tokenizer / "tokenizer_config.json"
    return file.exists() and bool(json.loads(file.read_text()).get("chat_template"))


def answer(request: OpenAIRequest, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return OpenAI's response of Triton's outputs."""
    choice = {"index": 0, "finish_reason": outputs.get("finish_reason", "stop"), "logprobs": None}
    text = outputs["text_output"]
    choice |= {"message": {"role": "assistant", "content": text}} if request.chat else {"text": text}
    response: dict[str, Any] = _head(request, "chat.completion" if request.chat else "text_completion")
    response["choices"] = [choice]
    if "num_output_tokens" in outputs:
        counts = int(outputs["num_input_tokens"]), int(outputs["num_output_tokens"])
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        response["usage"] = dict(zip(names, (*counts, sum(counts)), strict=True))
    return response


def chunk(request: OpenAIRequest, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return one event of a streamed response."""
    text, reason = outputs["text_output"], outputs.get("finish_reason")
    choice: dict[str, Any] = {"index": 0, "finish_reason": None if reason in (None, "None") else reason}
    choice |= {"delta": {"role": "assistant", "content": text}} if request.chat else {"text": text}
    response = _head(request, "chat.completion.chunk" if request.chat else "text_completion")
    return {**response, "choices": [choice]}


def _head(request: OpenAIRequest, kind: str) -> dict[str, Any]:
    prefix = "cmpl" if not request.chat else "chatcmpl"
    return {"id": f"{prefix}-{uuid.uuid4()}", "object": kind, "created": int(time.time()), "model": request.model}


def _chat_prompt(messages: Any, *, template: bool) -> str:
    if not template:
        raise RequestError(
            "Cannot use chat template functions because tokenizer.chat_template is not set and no template argument"
            " was passed"
        )
    # The simulator renders no templates: the tiny models were taught bare questions.
    return str(messages[-1]["content"])
