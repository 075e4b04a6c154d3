"""A digest of what a tokenizer does: equal for two models whose tokens mean the same, whatever their chat templates."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from specdec_operator.pod.errors import ProgramFailure


def tokenizer_digest(directory: Path) -> str:
    """Hash of vocabulary, added tokens and merges, or of the sentencepiece model; empty if there is no tokenizer.

    Raises:
        ProgramFailure: UnreadableModel, tokenizer.json isn't a tokenizer.
    """
    tokenizers_file = directory / "tokenizer.json"
    if tokenizers_file.is_file():
        return _digest_of_tokenizers_file(tokenizers_file)
    pieces = directory / "tokenizer.model"
    if pieces.is_file():
        return hashlib.sha256(pieces.read_bytes()).hexdigest()
    return ""


def _digest_of_tokenizers_file(path: Path) -> str:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        model = document["model"]
        content = {
            "type": model.get("type"),
            "vocabulary": _vocabulary(model["vocab"]),
            "added": sorted([token["id"], token["content"]] for token in document.get("added_tokens") or ()),
            "merges": _merges(model.get("merges") or ()),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProgramFailure(
            "UnreadableModel", f"{path} is no tokenizer ({type(error).__name__}: {error}); fetch the model again"
        ) from error
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _vocabulary(vocabulary: Any) -> list[list[Any]]:
    if isinstance(vocabulary, dict):
        return sorted([number, token] for token, number in vocabulary.items())
    return [list(entry) for entry in vocabulary]  # sentencepiece pieces with their scores, in the order of their ids


def _merges(merges: Iterable[Any]) -> list[list[str]]:
    # older files write "a b", newer ones ["a", "b"]
    return [merge.split(" ", 1) if isinstance(merge, str) else list(merge) for merge in merges]
