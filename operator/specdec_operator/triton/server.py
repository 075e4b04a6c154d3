"""What the proof asks of Triton: readiness, a model's revision, an answer."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from specdec_operator.triton.tensors import decoded, encoded, text
from specdec_operator.triton.transport import NotUnderstood

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from specdec_operator.triton.tensors import Tensor
    from specdec_operator.triton.transport import Answer, Transport

REVISION_PARAMETER = "specdec_revision"
_LONGEST_QUOTE = 300

_Decoded = TypeVar("_Decoded")


class Refused(Exception):  # noqa: N818 - Triton's answer
    """Triton refuses the request.

    Attributes:
        status: the HTTP status.
        said: Triton's reason in one short, printable line; empty if the answer is not in Triton's form.
    """

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"HTTP {status}" + (f": {said}" if said else ""))
        self.status = status
        self.said = said


class TritonServer:
    """One Triton server and one of its models.

    Every method raises `Unreachable` and `NotUnderstood` of the transport; those that want an answer, `Refused` too.

    Args:
        transport: the way there.
        model: the model's name.
    """

    def __init__(self, transport: Transport, model: str) -> None:
        self._transport = transport
        self._model = f"/v2/models/{quote(model, safe='')}"

    async def is_ready(self) -> bool:
        """Whether server and model say that they are ready."""
        for path in ("/v2/health/ready", f"{self._model}/ready"):
            if (await self._get(path)).status != HTTPStatus.OK:
                return False
        return True

    async def revision(self) -> str:
        """The revision that the served model's configuration carries; empty if it carries none."""
        configuration = _read(await self._get(f"{self._model}/config"), _json_object)
        parameter: Any = configuration
        for key in ("parameters", REVISION_PARAMETER, "string_value"):
            parameter = parameter.get(key) if isinstance(parameter, dict) else None
        return parameter if isinstance(parameter, str) else ""

    async def infer(self, tensors: tuple[Tensor, ...], outputs: Iterable[str]) -> dict[str, str]:
        """Ask for one answer: the first element of each of these outputs that it has."""
        body, json_length = encoded(tensors)
        headers = {"Inference-Header-Content-Length": str(json_length), "Content-Type": "application/octet-stream"}
        answer = await self._transport.send("POST", f"{self._model}/infer", content=body, headers=headers)
        said_length = answer.headers.get("inference-header-content-length")
        return _read(answer, lambda content: decoded(content, json_length=said_length, names=outputs))

    async def generate(self, tensors: tuple[Tensor, ...], outputs: Iterable[str]) -> dict[str, str]:
        """Ask as `infer` does, by the extension that models take which may answer in pieces."""
        body = json.dumps({tensor.name: tensor.values[0] for tensor in tensors}).encode()
        headers = {"Content-Type": "application/json"}
        answer = await self._transport.send("POST", f"{self._model}/generate", content=body, headers=headers)
        values = _read(answer, _json_object)
        firsts = {name: value[:1] if isinstance(value, list) else [value] for name, value in values.items()}
        return {name: text(first[0]) for name in outputs for first in (firsts.get(name),) if first}

    async def _get(self, path: str) -> Answer:
        return await self._transport.send("GET", path, headers={})


def _read(answer: Answer, read: Callable[[bytes], _Decoded]) -> _Decoded:
    if answer.status != HTTPStatus.OK:
        raise Refused(answer.status, _reason(answer.body))
    try:
        return read(answer.body)
    except Exception as error:  # the boundary to foreign bytes: what they make a decoder raise stands nowhere
        raise NotUnderstood("its answer is not in Triton's format") from error


def _json_object(content: bytes) -> dict[str, Any]:
    document = json.loads(content)
    if not isinstance(document, dict):
        raise TypeError("not an object")
    return document


def _reason(content: bytes) -> str:
    """What Triton says when it refuses: an object that holds an error's text and nothing else."""
    try:
        error = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    said = error["error"] if isinstance(error, dict) and list(error) == ["error"] else ""
    return printable(said) if isinstance(said, str) else ""


def printable(said: str) -> str:
    """A foreign text as one short line without control characters."""
    line = " ".join(said[: 2 * _LONGEST_QUOTE].split())
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)[
        :_LONGEST_QUOTE
    ]
