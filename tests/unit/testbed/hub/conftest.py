"""A running hub, and directories to download into."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.hub.server import Hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    # No token or setting of the machine's user may decide a test.
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with Hub.from_file() as hub:
        yield hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "download"
