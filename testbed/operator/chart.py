"""Where the operator's chart is, and what is called how by it as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts" / "specdec-operator"
NAME: Final = "specdec-operator"
CONFIGURATION: Final = f"{NAME}-configuration"
NAMESPACE: Final = "specdec-system"
