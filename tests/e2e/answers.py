"""What the target alone answers, and what the simulator's log says of an answer's drafts."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import testbed.hub
from testbed.demo.models import serves
from testbed.demo.prompt import MAX_TOKENS, logged_counts
from testbed.runtime.inference.llama import LlamaModel
from testbed.runtime.inference.speculation import generate
from testbed.runtime.inference.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from tests.e2e.place import Json, Place

TARGET = "specdec-testbed/tiny-llama"
PROMPT = "What is a transformer?"
"""Its answer repeats itself: n-grams are found in it."""
READY_SECONDS = 540.0


@dataclass(frozen=True)
class Counted:
    """An answer with the simulator's own counts.

    Attributes:
        text: the answer.
        drafted: tokens that were proposed for it.
        accepted: those that the target took.
    """

    text: str
    drafted: int
    accepted: int


def answer_of_the_target_alone(prompt: str, *, max_tokens: int = MAX_TOKENS) -> str:
    """Compute what greedy decoding without a draft answers."""
    directory = Path(testbed.hub.__file__).parent / "models" / TARGET
    model, tokenizer = LlamaModel.load(directory), TextTokenizer.load(directory)
    generated = generate(model, tokenizer.encode(prompt), max_tokens=max_tokens, end_id=tokenizer.end_id)
    return tokenizer.decode(list(generated.tokens)).strip()


def until_row_ready(place: Place, name: str) -> Json:
    """Wait as long as many models side by side take on a small machine."""
    return place.until(name, "Ready", serves, seconds=READY_SECONDS)


def counted_answer(place: Place, name: str, prompt: str, *, model: str) -> Counted:
    """Ask a model through its Service, and read what its log says of the answer.

    Args:
        place: where it is.
        name: the SpeculativeModel's.
        prompt: the text to go on from.
        model: the Triton model that counts.
    """
    before = len(logged_counts(place.log(name), model=model))
    text = place.answer(name, prompt)
    new = logged_counts(place.log(name), model=model)[before:]
    return Counted(text, sum(drafted for drafted, _ in new), sum(accepted for _, accepted in new))


def completion(place: Place, name: str, prompt: str) -> str:
    """Ask a model by OpenAI's protocol, through its Service, for a greedy answer."""
    endpoint = place.model(name)["status"]["endpoint"]
    base = urlsplit(endpoint["openAI"])
    body = {"model": endpoint["modelName"], "prompt": prompt, "max_tokens": MAX_TOKENS, "temperature": 0}
    request = urllib.request.Request(
        f"http://{place.address(name)}:{base.port}{base.path}/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
        answer: dict[str, Any] = json.loads(response.read())
    text: str = answer["choices"][0]["text"]
    return text
