"""Digests of what a tokenizer does: equal for two models whose tokens mean the same, whatever their chat templates."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.sentence_pieces import read_pieces


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
    """A digest of all that a format has, and texts by number."""

    digest: str
    tokens: Mapping[int, str]


def tokenizer_digests(directory: Path, *, vocabulary_size: int) -> TokenizerDigests:
    """Digests of a directory's tokenizer: tokenizer.json, tokenizer.model, vocab.json with merges.txt, or tiktoken.

    Args:
        vocabulary_size: Rows of the model's embedding: tokens beyond it are none that the model knows.

    Raises:
        ProgramFailure: UnreadableModel, the files are no tokenizer.
    """
    readers: Mapping[str, Callable[[Path], _Tokenizer]] = {
        "tokenizer.json": _of_tokenizers_file,
        "tokenizer.model": _of_sentence_pieces,
        "vocab.json": _of_byte_pairs,
    }
    for name, reader in readers.items():
        path = directory / name
        if path.is_file():
            return _guarded(path, reader, vocabulary_size)
    ranks = next((path for path in sorted(directory.glob("*tiktoken*")) if path.is_file()), None)
    return TokenizerDigests(hashlib.sha256(ranks.read_bytes()).hexdigest()) if ranks else TokenizerDigests()


def _guarded(path: Path, reader: Callable[[Path], _Tokenizer], vocabulary_size: int) -> TokenizerDigests:
    try:
        tokenizer = reader(path)
        known = sorted([number, token] for number, token in tokenizer.tokens.items() if number < vocabulary_size)
        return TokenizerDigests(tokenizer.digest, _digest(known) if known else "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ProgramFailure(
            "UnreadableModel", f"{path} is no tokenizer ({type(error).__name__}: {error}); fetch the model again"
        ) from error


def _of_tokenizers_file(path: Path) -> _Tokenizer:
    document = json.loads(path.read_text(encoding="utf-8"))
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
    return _Tokenizer(_digest(content), {**tokens, **dict(added)})


def _of_sentence_pieces(path: Path) -> _Tokenizer:
    content = path.read_bytes()
    try:
        pieces = dict(enumerate(read_pieces(content)))
    except ValueError:
        pieces = {}  # a format of its own under that name
    tokens = {**pieces, **_added(path.parent)} if pieces else {}
    return _Tokenizer(hashlib.sha256(content).hexdigest(), tokens)


def _of_byte_pairs(path: Path) -> _Tokenizer:
    vocabulary = json.loads(path.read_text(encoding="utf-8"))
    merges_file = path.parent / "merges.txt"
    lines = merges_file.read_text(encoding="utf-8").splitlines() if merges_file.is_file() else []
    added = _added(path.parent)
    content = {
        "type": "BPE",
        "vocabulary": _vocabulary(vocabulary),
        "added": sorted(added.items()),
        "merges": _merges(line for line in lines if line and not line.startswith("#version")),
    }
    tokens = {number: token for token, number in vocabulary.items()}
    return _Tokenizer(_digest(content), {**tokens, **added})


def _added(directory: Path) -> dict[int, str]:
    path = directory / "added_tokens.json"
    entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {number: token for token, number in entries.items()}


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
