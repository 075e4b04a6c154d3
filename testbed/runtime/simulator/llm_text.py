"""Text from growing lists of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from testbed.runtime.inference.tokenizer import TextTokenizer


class TextStream:
    """Turns growing token lists into new pieces of text."""

    def __init__(self, tokenizer: TextTokenizer, emit: Callable[[str], None]) -> None:
        """Take the tokenizer, and what is called with each new piece."""
        self._tokenizer = tokenizer
        self._emit = emit
        self._tokens: list[int] = []
        self._sent = ""

    def add(self, tokens: Sequence[int]) -> None:
        """Take new tokens."""
        self._tokens.extend(tokens)
        text = self._tokenizer.decode(self._tokens)
        self._emit(text[len(self._sent) :])
        self._sent = text
