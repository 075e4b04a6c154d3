"""One prompt to a served model, as any HTTP client would send it."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST_SECONDS = 60.0
MAX_TOKENS = 64
HTTP_PORT = 8000


@dataclass(frozen=True)
class Answer:
    """What a model answered.

    Attributes:
        url: what was asked.
        text: the new text, without the prompt.
        drafted: draft tokens that the server reports; 0 where it reports none.
        accepted: those of them that the target accepted.
    """

    url: str
    text: str
    drafted: int
    accepted: int


def ask(
    address: str,
    status: Mapping[str, Any],
    prompt: str,
    *,
    port: int = HTTP_PORT,
    max_tokens: int = MAX_TOKENS,
) -> Answer:
    """Send a prompt with the parameters that a model's status publishes.

    Args:
        address: of the Service.
        status: of the SpeculativeModel.
        prompt: the text to go on from.
        port: where HTTP is spoken at the address.
        max_tokens: how long the answer may become.

    Raises:
        DemoError: it was not answered.
    """
    endpoint = status["endpoint"]
    url = f"http://{address}:{port}/v2/models/{endpoint['modelName']}/generate"
    published = {name: json.loads(value) for name, value in endpoint.get("requestParameters", {}).items()}
    answer = _post(url, {"text_input": prompt, **published, **_limits(status["backend"], max_tokens)})
    return Answer(
        url=url,
        text=str(answer.get("text_output", "")).removeprefix(prompt).strip(),
        drafted=_count(answer, "total_draft_tokens"),
        accepted=_count(answer, "total_accepted_draft_tokens"),
    )


def logged_counts(log: str, *, model: str) -> list[tuple[int, int]]:
    """Return the simulator's own counts of drafted and accepted tokens, one per request to a Triton model."""
    counts = re.compile(rf"\[simulator\] {re.escape(model)}: .*\bdrafted=(\d+) accepted=(\d+)")
    return [(int(drafted), int(accepted)) for drafted, accepted in counts.findall(log)]


def _limits(backend: str, max_tokens: int) -> dict[str, object]:
    if backend == "LLMAPI":
        return {"sampling_param_max_tokens": max_tokens, "sampling_param_return_perf_metrics": True}
    if backend == "VLLM":
        return {"sampling_parameters": json.dumps({"max_tokens": max_tokens, "temperature": 0})}
    return {"max_tokens": max_tokens}


def _post(url: str, body: Mapping[str, object]) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - a Service of our own cluster
        url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        # The Service is on this machine: no proxy stands between.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            request, timeout=REQUEST_SECONDS
        ) as response:
            answer: dict[str, Any] = json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            said = error.read().decode(errors="replace")
        raise DemoError(f"{url} refused {json.dumps(body)}: {error.code} {said}") from error
    except (OSError, ValueError) as error:
        raise DemoError(f"{url} did not answer: {error}") from error
    return answer


def _count(answer: Mapping[str, Any], output: str) -> int:
    try:
        return int(float(answer.get(output, 0)))
    except (TypeError, ValueError):
        return 0
