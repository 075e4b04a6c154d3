"""Where uv is, which installs what the testbed takes from PyPI."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def find_uv() -> str | None:
    """Return the uv that started this program, the one that `bootstrap` put beside this Python, or that on PATH."""
    beside = Path(sys.executable).with_name("uv")
    return os.environ.get("UV") or shutil.which(str(beside)) or shutil.which("uv")
