"""The models that the hub serves."""

from pathlib import Path

import pytest

from testbed.hub.server import REPOSITORIES_FILE, Hub

MODELS = REPOSITORIES_FILE.parent / "models" / "specdec-testbed"
HEADS = ("tiny-llama-eagle", "tiny-llama-medusa", "tiny-llama-redrafter")


@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_served_with_all_its_files(hub: Hub, name: str) -> None:
    assert "main" in hub.repository(f"specdec-testbed/{name}").names
    assert {"README.md", "config.json"} < {file.name for file in (MODELS / name).iterdir()}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_stays_below_half_a_megabyte(name: str) -> None:
    assert sum(file.stat().st_size for file in Path(MODELS / name).iterdir()) < 500_000
