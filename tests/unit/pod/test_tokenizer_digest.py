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


ADDED = {"<pad>": 5, "<end>": 6}
TABLE = json.dumps({"added_tokens_decoder": {str(number): {"content": text} for text, number in ADDED.items()}})


def test_tokens_that_are_added_beside_a_tokenizer_count_in_every_format(tmp_path: Path) -> None:
    whole = {**VOCABULARY, **ADDED}
    pairs = json.dumps(VOCABULARY)
    found = {
        digests(tmp_path / "json", vocabulary_size=7, tokenizer__json=tokenizers_file(whole)).vocabulary,
        digests(
            tmp_path / "json beside", vocabulary_size=7, tokenizer__json=tokenizers_file(), tokenizer_config__json=TABLE
        ).vocabulary,
        digests(
            tmp_path / "pieces", vocabulary_size=7, tokenizer__model=PIECES, added_tokens__json=json.dumps(ADDED)
        ).vocabulary,
        digests(
            tmp_path / "table", vocabulary_size=7, tokenizer__model=PIECES, tokenizer_config__json=TABLE
        ).vocabulary,
        digests(tmp_path / "pairs", vocabulary_size=7, vocab__json=pairs, tokenizer_config__json=TABLE).vocabulary,
    }

    assert len(found) == 1


@pytest.mark.parametrize("beside", ["added_tokens__json", "tokenizer_config__json"])
def test_equal_pieces_with_other_added_tokens_are_another_tokenizer(tmp_path: Path, beside: str) -> None:
    texts = {"added_tokens__json": json.dumps(ADDED), "tokenizer_config__json": TABLE}
    one = digests(tmp_path / "one", vocabulary_size=7, tokenizer__model=PIECES)
    other = digests(tmp_path / "two", vocabulary_size=7, tokenizer__model=PIECES, **{beside: texts[beside]})

    assert one.tokenizer != other.tokenizer
    assert one.vocabulary != other.vocabulary


def test_a_token_that_replaces_a_piece_counts_as_the_tokenizer_s_file_has_it(tmp_path: Path) -> None:
    table = json.dumps({"added_tokens_decoder": {"2": {"content": "<turn>"}}})
    renamed = {"<unk>": 0, "<s>": 1, "<turn>": 2, "b": 3, "ab": 4}
    pieces = digests(tmp_path / "pieces", tokenizer__model=PIECES, tokenizer_config__json=table)

    assert pieces.vocabulary == digests(tmp_path / "json", tokenizer__json=tokenizers_file(renamed)).vocabulary


def test_a_byte_that_a_converter_writes_as_itself_is_the_same_token(tmp_path: Path) -> None:
    pieces = b"".join(piece(text) for text in ("<unk>", "<s>", "<0x09>", "b", "ab"))
    converted = tokenizers_file({"<unk>": 0, "<s>": 1, "\t": 2, "b": 3, "ab": 4})

    one = digests(tmp_path / "pieces", tokenizer__model=pieces)

    assert one.vocabulary == digests(tmp_path / "json", tokenizer__json=converted).vocabulary


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 499723\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"tokenizer__json": "{}"}, "is no tokenizer"),
        ({"tokenizer__json": "7"}, "is no tokenizer"),
        ({"tokenizer__json": "[" * 100000}, "is no tokenizer"),
        ({"tokenizer__json": '{"model": {"vocab": {}}}'}, "is no tokenizer .it holds no token"),
        ({"tokenizer__json": '{"model": {"vocab": {"a": "b"}}}'}, "is no tokenizer"),
        ({"tokenizer__json": '{"model": {"vocab": [[["a"], 1]]}}'}, "is no tokenizer"),
        ({"tokenizer__json": "1" * 10_000}, "is no tokenizer"),
        ({"tokenizer__json": ""}, "tokenizer.json is empty"),
        ({"vocab__json": "[]"}, "is no tokenizer"),
        ({"vocab__json": "{}"}, "is no tokenizer .it holds no token"),
        ({"vocab__json": "{}", "added_tokens__json": '{"a": 1}'}, "is no tokenizer .it holds no token"),
        ({"tokenizer__model": ""}, "tokenizer.model is empty"),
        ({"tokenizer__model": "\n\n \n"}, "is no tokenizer"),
        ({"tokenizer__model": POINTER}, "is a Git LFS pointer"),
        ({"tokenizer__model": "<html>"}, "is a web page"),
        ({"tokenizer__model": PIECES[:-7]}, "is no tokenizer .it is cut short"),
        ({"tokenizer__model": PIECES[:9]}, "is no tokenizer .it is cut short"),
        ({"qwen__tiktoken": ""}, "qwen.tiktoken is empty"),
        ({"qwen__tiktoken": POINTER}, "is a Git LFS pointer"),
        (
            {"tokenizer__model": PIECES, "tokenizer_config__json": "[]"},
            "tokenizer_config.json is no tokenizer's configur",
        ),
        ({"tokenizer__model": PIECES, "tokenizer_config__json": POINTER}, "tokenizer_config.json is a Git LFS pointer"),
        (
            {"tokenizer__model": PIECES, "added_tokens__json": '{"a": "b"}'},
            "added_tokens.json is no table of added tokens",
        ),
    ],
)
def test_a_broken_tokenizer_is_unreadable(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(ProgramFailure, match=said) as caught:
        digests(tmp_path / "one", **files)  # type: ignore[arg-type] # names of files, as keywords

    assert (caught.value.reason, caught.value.terminal) == ("UnreadableModel", True)
