"""Text to token ids and back, by the tokenizer.json of a model directory."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.llama import read_json


class TextTokenizer:
    """A model's tokenizer and the ids of its sequence marks."""

    def __init__(self, tokenizer: Tokenizer, *, bos_id: int, end_id: int) -> None:
        """Wrap a tokenizer of the tokenizers library."""
        self._tokenizer = tokenizer
        self.bos_id = bos_id
        self.end_id = end_id

    @classmethod
    def load(cls, directory: Path) -> "TextTokenizer":
        """Load tokenizer.json, and the mark ids of config.json.

        Raises:
            ModelFilesError: a file is missing or damaged.
        """
        file = directory / "tokenizer.json"
        if not file.exists():
            raise ModelFilesError(f"{file}: is missing; give the directory of a model that ships its tokenizer")
        config = read_json(directory / "config.json")
        try:
            return cls(Tokenizer.from_file(str(file)), bos_id=config["bos_token_id"], end_id=config["eos_token_id"])
        except KeyError as error:
            raise ModelFilesError(f"{directory / 'config.json'}: lacks the field {error}") from error

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens, added ones included."""
        size: int = self._tokenizer.get_vocab_size()
        return size

    def encode(self, text: str) -> list[int]:
        """Return token ids, the begin mark first."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids; marks are left out."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text
