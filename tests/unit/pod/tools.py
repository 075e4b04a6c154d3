"""Stand-ins for the programs of an image."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from specdec_operator.pod.manifest import describe
from specdec_operator.pod.store import publish

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Image:
    """A directory that comes first on PATH and on the module path."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        directory.mkdir()
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        monkeypatch.setenv("POD_UID", "pod-1")
        monkeypatch.syspath_prepend(str(directory))

    def program(self, name: str, text: str) -> Path:
        """Put a shell script on PATH."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def gpus(self, product: str = "NVIDIA H100 80GB HBM3", *, count: int = 1, driver: str = "590.44.01") -> None:
        """Put GPUs into nvidia-smi."""
        rows = "\n".join(f"{product}, {driver}" for _ in range(count))
        listing = "\n".join(f"GPU {index}: {product} (UUID: GPU-{index})" for index in range(count))
        self.program("nvidia-smi", f"if [ \"$1\" = -L ]; then cat <<'E'\n{listing}\nE\nelse cat <<'E'\n{rows}\nE\nfi")

    def tensorrt_llm(self, version: str) -> None:
        """Put a TensorRT-LLM into the image that can't be imported without a GPU's driver."""
        package = self.directory / "tensorrt_llm"
        package.mkdir()
        (package / "__init__.py").write_text("raise ImportError('libcuda.so.1')\n")
        (package / "version.py").write_text(f'__version__ = "{version}"\n')

    def vllm(self, version: str) -> None:
        """Put a vLLM's metadata into the image."""
        directory = self.directory / f"vllm-{version}.dist-info"
        directory.mkdir()
        (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


def engine_config(*, version: str = "1.1.0", logits_data_type: str = "float32", **build: Any) -> str:
    """An engine's config.json.

    Args:
        build: What its build_config says; `tp_size` and `pp_size` go to the mapping.
    """
    mapping = {name: build.pop(name) for name in ("tp_size", "pp_size") if name in build}
    pretrained = {"logits_dtype": logits_data_type, **({"mapping": mapping} if mapping else {})}
    return json.dumps(
        {"version": version, "pretrained_config": pretrained, **({"build_config": build} if build else {})}
    )


def write_engine(directory: Path, *, ranks: int = 1, config: str | None = None) -> Path:
    """An engine that nobody published: without a manifest."""
    directory.mkdir(parents=True)
    for rank in range(ranks):
        (directory / f"rank{rank}.engine").write_text(f"engine {rank}")
    (directory / "config.json").write_text(config or engine_config())
    return directory


def publish_engine(target: Path, *, ranks: int = 1, config: str | None = None) -> str:
    """Publish an engine; its digest."""
    scratch = target.with_name(f"{target.name}-scratch")
    write_engine(scratch, ranks=ranks, config=config)
    return publish(scratch, target, describe(scratch, kind="Engine", origin={}, hashed=True)).digest()
