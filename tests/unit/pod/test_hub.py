"""Which files of a repository are fetched."""

from __future__ import annotations

import pytest

from specdec_operator.pod.hub import HubFile, wanted_files


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
