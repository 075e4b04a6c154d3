"""Digests of tokenizers, in every format that they are kept in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.tokenizer_digest import TokenizerDigests, tokenizer_digests

if TYPE_CHECKING:
    from pathlib import Path

VOCABULARY = {"<unk>": 0, "<s>": 1, "a": 2, "b": 3, "ab": 4}


def piece(text: str, score: bytes = b"\0\0\0\0") -> bytes:
    encoded = text.encode()
    inner = b"\x0a" + bytes([len(encoded)]) + encoded + b"\x15" + score + b"\x18\x01"
    return b"\x0a" + bytes([len(inner)]) + inner


PIECES = b"".join(piece(text) for text in VOCABULARY) + b"\x12\x03\x08\x96\x01"


def digests(directory: Path, *, vocabulary_size: int = 5, **files: str | bytes) -> TokenizerDigests:
    directory.mkdir()
    for name, content in files.items():
        path = directory / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tokenizer_digests(directory, vocabulary_size=vocabulary_size)


def tokenizers_file(vocabulary: object = VOCABULARY) -> str:
    added = [{"id": 0, "content": "<unk>"}, {"id": 1, "content": "<s>"}]
    return json.dumps({"added_tokens": added, "model": {"type": "BPE", "vocab": vocabulary, "merges": ["a b"]}})


def test_one_vocabulary_has_one_digest_in_every_format(tmp_path: Path) -> None:
    found = {
        digests(tmp_path / "json", tokenizer__json=tokenizers_file()).vocabulary,
        digests(tmp_path / "unigram", tokenizer__json=tokenizers_file([[text, 0.5] for text in VOCABULARY])).vocabulary,
        digests(tmp_path / "pieces", tokenizer__model=PIECES).vocabulary,
        digests(tmp_path / "pairs", vocab__json=json.dumps(VOCABULARY), merges__txt="#version: 0.2\na b\n").vocabulary,
        digests(
            tmp_path / "added",
            vocab__json=json.dumps({"<unk>": 0, "a": 2, "b": 3, "ab": 4}),
            added_tokens__json=json.dumps({"<s>": 1}),
        ).vocabulary,
    }

    assert len(found) == 1
    assert len(found.pop()) == 64


def test_tokens_that_the_model_does_not_know_do_not_count(tmp_path: Path) -> None:
    one = digests(tmp_path / "one", tokenizer__model=PIECES)
    padded = digests(tmp_path / "two", tokenizer__model=PIECES, added_tokens__json=json.dumps({"<pad>": 5}))

    assert one.vocabulary == padded.vocabulary


def test_other_numbers_have_another_digest(tmp_path: Path) -> None:
    one = digests(tmp_path / "one", tokenizer__json=tokenizers_file())
    other = digests(tmp_path / "two", tokenizer__json=tokenizers_file({**VOCABULARY, "a": 3, "b": 2}))

    assert one.vocabulary != other.vocabulary


def test_merges_count_where_there_are_any(tmp_path: Path) -> None:
    one = digests(tmp_path / "one", vocab__json=json.dumps(VOCABULARY), merges__txt="a b\n")
    other = digests(tmp_path / "two", vocab__json=json.dumps(VOCABULARY), merges__txt="")

    assert one.tokenizer != other.tokenizer


@pytest.mark.parametrize("name", ["qwen__tiktoken", "tiktoken__model"])
def test_a_tiktoken_file_is_hashed_as_it_is(tmp_path: Path, name: str) -> None:
    found = digests(tmp_path / "one", **{name: b"IQ== 0\n"})  # type: ignore[arg-type] # names of files, as keywords

    assert (len(found.tokenizer), found.vocabulary) == (64, "")


def test_a_tokenizer_model_of_another_make_is_hashed_as_it_is(tmp_path: Path) -> None:
    found = digests(tmp_path / "one", tokenizer__model=b"\x00\x01\x02")

    assert (len(found.tokenizer), found.vocabulary) == (64, "")


def test_a_directory_without_a_tokenizer_has_no_digests(tmp_path: Path) -> None:
    assert digests(tmp_path / "one") == TokenizerDigests()


@pytest.mark.parametrize("files", [{"tokenizer__json": "{}"}, {"vocab__json": "[]"}, {"tokenizer__json": "[" * 100000}])
def test_a_broken_tokenizer_is_unreadable(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(ProgramFailure, match="is no tokenizer") as caught:
        digests(tmp_path / "one", **files)  # type: ignore[arg-type] # names of files, as keywords

    assert caught.value.reason == "UnreadableModel"
