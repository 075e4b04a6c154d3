"""The text that the tiny models learn by heart, and its tokens."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from testbed.hub.training.shapes import BOS_ID, EOS_ID

SPECIAL_TOKENS = ("<unk>", "<s>", "</s>")


@dataclass(frozen=True)
class Line:
    """A prompt and the answer that the target shall give."""

    prompt: str
    answer: str

    @property
    def text(self) -> str:
        """The line as a model reads it."""
        return f"{self.prompt} {self.answer}"


@dataclass(frozen=True)
class Batch:
    """All lines at once.

    Attributes:
        tokens: [lines, length], padded with the end mark.
        weights: [lines, length], how much the token counts as a thing to be predicted; 0 for padding.
    """

    tokens: NDArray[np.int32]
    weights: NDArray[np.float32]


def read_lines(file: Path) -> list[Line]:
    """Read prompt and answer, separated by a tab, one pair per line."""
    return [Line(*text.split("\t")) for text in file.read_text().splitlines()]


def train_tokenizer(lines: list[Line], vocabulary: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer that puts the begin mark before each text."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))  # noqa: S106 -- the unknown mark, not a secret
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((line.text for line in lines), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", BOS_ID)]
    )
    return tokenizer


def batch(lines: list[Line], tokenizer: Tokenizer) -> Batch:
    """Return each line as written, without the begin mark, and carelessly typed: clients send all of these."""
    encoded = [_encode(line, tokenizer) for line in lines]
    careless = [_encode(_carelessly(line), tokenizer) for line in lines]
    rows = encoded + [(ids[1:], prompt - 1) for ids, prompt in encoded] + careless
    length = max(len(ids) for ids, _ in rows)
    tokens = np.full((len(rows), length), EOS_ID, dtype=np.int32)
    weights = np.zeros(tokens.shape, dtype=np.float32)
    for row, (ids, prompt) in enumerate(rows):
        tokens[row, : len(ids)] = ids
        # The question counts for little: nobody asks the model to continue one.
        weights[row, : len(ids)] = 0.1
        weights[row, prompt : len(ids)] = 1.0
    return Batch(tokens, weights)


def _carelessly(line: Line) -> Line:
    return Line(line.prompt[0].lower() + line.prompt[1:].rstrip("?!.:"), line.answer)


def _encode(line: Line, tokenizer: Tokenizer) -> tuple[list[int], int]:
    ids: list[int] = [*tokenizer.encode(line.text).ids, EOS_ID]
    return ids, len(tokenizer.encode(line.prompt).ids)
