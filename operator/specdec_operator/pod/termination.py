"""The termination message: how a program's outcome reaches the operator, without API access and without log parsing.

One JSON envelope with the length and the sha256 of its body, since the kubelet may cut what it reads.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LIMIT_BYTES = 3584
SUCCEEDED = 0
MAY_BE_RETRIED = 1
TERMINAL = 3
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,63}", re.ASCII)


class MessageCut(ValueError):  # noqa: N818 - the word that the callers act on
    """The text is no whole termination message: cut, lost, or written by something else."""


@dataclass(frozen=True)
class Succeeded:
    """The program did its work."""

    result: Mapping[str, Any]


@dataclass(frozen=True)
class Failed:
    """The program didn't; `terminal` says that another attempt can't mend it."""

    reason: str
    message: str
    terminal: bool


Outcome = Succeeded | Failed


def encode(outcome: Outcome) -> str:
    """The envelope of an outcome, ASCII, at most 3.5 KiB; a long failure message loses its middle.

    Raises:
        ValueError: the result of a success doesn't fit.
    """
    if isinstance(outcome, Succeeded):
        text = _envelope({"ok": True, "result": outcome.result})
        if len(text) > LIMIT_BYTES:
            raise ValueError(f"the result takes {len(text)} bytes, a termination message holds {LIMIT_BYTES}")
        return text
    kept = len(outcome.message)
    while True:
        text = _failure(outcome, kept)
        if len(text) <= LIMIT_BYTES or kept == 0:
            return text
        kept = kept * 3 // 4


def decode(text: str) -> Outcome:
    """Read an envelope.

    Raises:
        MessageCut: the text is empty, cut or foreign.
    """
    try:
        envelope = json.loads(text)
        body = envelope["body"]
        canonical = _canonical(body)
        whole = envelope["length"] == len(canonical) and envelope["sha256"] == _digest(canonical)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MessageCut(f"no whole termination message: {text[:80]!r}") from error
    if not whole:
        raise MessageCut(f"a termination message with the wrong checksum: {text[:80]!r}")
    return _outcome(body)


def exit_code(outcome: Outcome) -> int:
    """The process's exit code that goes with an outcome."""
    if isinstance(outcome, Succeeded):
        return SUCCEEDED
    return TERMINAL if outcome.terminal else MAY_BE_RETRIED


def _outcome(body: Any) -> Outcome:
    if isinstance(body, dict):
        if body.get("ok") is True and isinstance(body.get("result"), dict):
            return Succeeded(body["result"])
        reason, message, terminal = body.get("reason"), body.get("message"), body.get("terminal")
        if isinstance(reason, str) and isinstance(message, str) and isinstance(terminal, bool):
            return _failed(reason, message, terminal)
    raise MessageCut("a termination message of an unknown shape")


def _failed(reason: str, message: str, terminal: bool) -> Failed:  # noqa: FBT001 - in the order of its fields
    if not _REASON.fullmatch(reason):
        raise MessageCut("a termination message of an unknown shape")
    # A file name that is not UTF-8 comes as lone surrogates, which JSON of the API server can't hold.
    return Failed(reason, message.encode("utf-8", "backslashreplace").decode(), terminal)


def _failure(outcome: Failed, kept: int) -> str:
    message = outcome.message
    if kept < len(message):
        # the cause is named first, a command's last words come last
        head = kept // 2
        message = f"{message[:head]} [...] {message[len(message) - (kept - head) :]}"
    return _envelope({"ok": False, "reason": outcome.reason, "message": message, "terminal": outcome.terminal})


def _envelope(body: Mapping[str, Any]) -> str:
    canonical = _canonical(body)
    head = f'{{"length":{len(canonical)},"sha256":"{_digest(canonical)}","body":'
    return head + canonical + "}"


def _canonical(body: object) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()
