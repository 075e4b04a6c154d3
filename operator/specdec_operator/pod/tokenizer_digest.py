"""Digests of what a tokenizer does: equal for two models whose tokens mean the same, whatever their chat templates."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_operator.pod.reading import read_bytes, read_json, reading, what_replaced
from specdec_operator.pod.sentence_pieces import begins_with_pieces, read_pieces

_MOST_BYTES = 64 * 1024 * 1024
"""Of one file of a tokenizer; the largest that are published take half of it."""


@dataclass(frozen=True)
class TokenizerDigests:
    """What tells tokenizers apart; both empty if there is none.

    Attributes:
        tokenizer: Hash of vocabulary, added tokens and merges, as far as the format has them.
        vocabulary: Hash of each token's number and text alone, the same in every format that a tokenizer is kept in.
    """

    tokenizer: str = ""
    vocabulary: str = ""


@dataclass(frozen=True)
class _Tokenizer:
    """What one file says of a tokenizer.

    Attributes:
        digest: Of all that the format has.
        tokens: Texts by number; empty of a format that is not read here.
        final: Whether a text is what this file says, where another file adds one of the same number.
    """

    digest: str
    tokens: Mapping[int, str]
    final: bool = False


def tokenizer_digests(directory: Path, *, vocabulary_size: int) -> TokenizerDigests:
    """Digests of a directory's tokenizer: tokenizer.json, tokenizer.model, vocab.json with merges.txt, or tiktoken.

    Args:
        vocabulary_size: Rows of the model's embedding: tokens beyond it are none that the model knows.

    Raises:
        ProgramFailure: UnreadableModel, the files are no tokenizer, or hold no token.
    """
    readers: Mapping[str, Callable[[Path], _Tokenizer]] = {
        "tokenizer.json": _of_tokenizers_file,
        "tokenizer.model": _of_sentence_pieces,
        "vocab.json": _of_byte_pairs,
    }
    ranks = sorted(path.name for path in directory.glob("*tiktoken*"))
    for name in (*readers, *ranks):
        path = directory / name
        if path.is_file():
            added = _added(directory)
            with reading(path, "tokenizer"):
                return _digests(readers.get(name, _as_it_is)(path), added, vocabulary_size)
    return TokenizerDigests()


def _digests(tokenizer: _Tokenizer, added: Mapping[int, str], vocabulary_size: int) -> TokenizerDigests:
    if not tokenizer.tokens:
        return TokenizerDigests(tokenizer.digest)
    tokens = {**added, **tokenizer.tokens} if tokenizer.final else {**tokenizer.tokens, **added}
    beside = sorted([number, token] for number, token in tokens.items() if tokenizer.tokens.get(number) != token)
    known = sorted([number, _plain(token)] for number, token in tokens.items() if number < vocabulary_size)
    digest = _digest([tokenizer.digest, beside]) if beside else tokenizer.digest
    return TokenizerDigests(digest, _digest(known) if known else "")


def _plain(text: str) -> str:
    # transformers' converter of Gemma's tokenizer writes the piece of this byte so (GemmaConverter.vocab)
    return "<0x09>" if text == "\t" else text


def _of_tokenizers_file(path: Path) -> _Tokenizer:
    document = read_json(path, "tokenizer", most=_MOST_BYTES)
    model = document["model"]
    added = sorted([token["id"], token["content"]] for token in document.get("added_tokens") or ())
    vocabulary = _vocabulary(model["vocab"])
    content = {
        "type": model.get("type"),
        "vocabulary": vocabulary,
        "added": added,
        "merges": _merges(model.get("merges") or ()),
    }
    numbered = isinstance(model["vocab"], dict)
    tokens = dict(vocabulary) if numbered else {number: entry[0] for number, entry in enumerate(vocabulary)}
    return _Tokenizer(_digest(content), _checked({**tokens, **dict(added)}), final=True)


def _of_sentence_pieces(path: Path) -> _Tokenizer:
    content = read_bytes(path, most=_MOST_BYTES)
    if not begins_with_pieces(content):
        return _as_it_is(path)  # a format of its own under that name
    return _Tokenizer(hashlib.sha256(content).hexdigest(), dict(enumerate(read_pieces(content))))


def _as_it_is(path: Path) -> _Tokenizer:
    """A file of a format that isn't read here: only the same file is known to be the same tokenizer."""
    content = read_bytes(path, most=_MOST_BYTES)
    if not content.strip():
        raise ValueError("it is blank")
    if replaced := what_replaced(path):
        raise ValueError(replaced)
    return _Tokenizer(hashlib.sha256(content).hexdigest(), {})


def _of_byte_pairs(path: Path) -> _Tokenizer:
    vocabulary = read_json(path, "tokenizer", most=_MOST_BYTES)
    lines = _lines(path.with_name("merges.txt"))
    content = {
        "type": "BPE",
        "vocabulary": _vocabulary(vocabulary),
        "merges": _merges(line for line in lines if line and not line.startswith("#version")),
    }
    return _Tokenizer(_digest(content), _checked({number: token for token, number in vocabulary.items()}))


def _lines(path: Path) -> list[str]:
    if not path.is_file() or not path.stat().st_size:
        return []
    with reading(path, "list of merges"):
        return read_bytes(path, most=_MOST_BYTES).decode("utf-8").splitlines()


def _checked(tokens: Mapping[int, str]) -> Mapping[int, str]:
    if not tokens:
        raise ValueError("it holds no token")
    if not all(isinstance(number, int) and isinstance(text, str) for number, text in tokens.items()):
        raise TypeError("each of its tokens must be a text with a number")
    return tokens


def _added(directory: Path) -> dict[int, str]:
    """Tokens by number that files beside a tokenizer's own add: added_tokens.json, and tokenizer_config.json's table.

    Transformers reads both (`_from_pretrained`, tokenization_utils_base.py), the table first where there is one.
    """
    found: dict[int, str] = {}
    older, newer = directory / "added_tokens.json", directory / "tokenizer_config.json"
    if older.is_file():
        entries = read_json(older, "table of added tokens")
        with reading(older, "table of added tokens"):
            found.update({int(number): str(token) for token, number in entries.items()})
    if newer.is_file():
        entries = read_json(newer, "tokenizer's configuration")
        with reading(newer, "tokenizer's configuration"):
            table = (entries.get("added_tokens_decoder") or {}).items()
            found.update({int(number): _content(token) for number, token in table})
    return found


def _content(token: Any) -> str:
    return str(token["content"] if isinstance(token, dict) else token)


def _digest(content: object) -> str:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _vocabulary(vocabulary: Any) -> list[list[Any]]:
    if isinstance(vocabulary, dict):
        return sorted([number, token] for token, number in vocabulary.items())
    return [list(entry) for entry in vocabulary]  # sentencepiece pieces with their scores, in the order of their ids


def _merges(merges: Iterable[Any]) -> list[list[str]]:
    # older files write "a b", newer ones ["a", "b"]
    return [merge.split(" ", 1) if isinstance(merge, str) else list(merge) for merge in merges]
