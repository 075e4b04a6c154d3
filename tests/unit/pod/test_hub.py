"""Which files of a repository are fetched."""

from __future__ import annotations

import pytest

from specdec_operator.pod.errors import ProgramFailure
from specdec_operator.pod.hub import HubFile, Listing, chosen_files, wanted_files


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (("config.json", "model.safetensors", "pytorch_model.bin"), ("config.json", "model.safetensors")),
        (("config.json", "pytorch_model.bin", "training_args.bin"), ("config.json", "pytorch_model.bin")),
        (("model.safetensors", "original/consolidated.00.pth", "original/params.json"), ("model.safetensors",)),
        (("model.safetensors", "consolidated.safetensors"), ("model.safetensors",)),
        (("consolidated.safetensors",), ("consolidated.safetensors",)),
        (("medusa_lm_head.pt", "config.json"), ("medusa_lm_head.pt", "config.json")),
        (("model.Q4.gguf", "tokenizer.model", ".gitattributes"), ("tokenizer.model",)),
    ],
)
def test_only_what_a_runtime_reads_is_fetched(present: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    files = [HubFile(path, 1, "") for path in present]

    assert tuple(file.path for file in wanted_files(files)) == wanted


def listing(*paths: str) -> Listing:
    return Listing("c", tuple(HubFile(path, 1, "") for path in paths))


def chosen(*paths: str, allow: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> list[str]:
    return [file.path for file in chosen_files(listing(*paths), allow=allow, ignore=ignore).files]


def test_without_patterns_what_a_runtime_reads_is_chosen() -> None:
    assert chosen("model.safetensors", "model.gguf") == ["model.safetensors"]


def test_what_is_asked_for_by_name_is_fetched_whatever_its_kind() -> None:
    assert chosen("model.safetensors", "model.gguf", "config.json", allow=("*.gguf",)) == ["model.gguf"]


def test_what_is_to_be_left_out_is_left_out() -> None:
    assert chosen("a.safetensors", "b.safetensors", ignore=("b.*",)) == ["a.safetensors"]


def test_patterns_that_leave_nothing_are_refused_with_both_lists() -> None:
    with pytest.raises(ProgramFailure, match=r"of 1 files none is left by allowPatterns \['x'\] and ignorePatterns"):
        chosen("a.safetensors", allow=("x",))
