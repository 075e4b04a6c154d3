"""The rows of `engine_rows.yaml`, and what is served for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec_operator.api.v1alpha1.speculation import DRAFTING_METHODS
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.planning.serving_request import serving_request
from specdec_operator.runtimes import tensorrt_engine
from tests.unit.specs import PRODUCT, facts, model, resolution_of

if TYPE_CHECKING:
    from specdec_operator.runtimes.serving import ServingFiles

Json = dict[str, Any]
FILE = Path(__file__).with_suffix(".yaml")
_CLAIM = {"persistentVolumeClaim": {"claimName": "models"}}


@dataclass(frozen=True)
class EngineRow:
    """One row: what is asked, and what must serve."""

    name: str
    document: Json

    @property
    def spec(self) -> Json:
        """The whole spec."""
        asked = self.document["spec"]
        drafts = asked["speculation"]["method"] in DRAFTING_METHODS
        return {
            "runtime": {"backend": "TensorRTEngine", "release": "26.04"},
            "storage": {"claimName": "models"},
            **asked,
            "target": {"source": _CLAIM, **asked.get("target", {})},
            **({"draft": {"source": _CLAIM, **asked.get("draft", {})}} if drafts else {}),
            "placement": {"gpu": {"product": PRODUCT}, **asked.get("placement", {})},
        }

    @property
    def files(self) -> ServingFiles:
        """What is served."""
        made = model(self.spec)
        known = {"target": facts()} | ({"draft": facts()} if made.spec.draft else {})
        return tensorrt_engine.render(serving_request(made.spec, resolution_of(made), known))

    @property
    def script(self) -> list[str]:
        """Arguments of NVIDIA's launch script for the same layout."""
        return ["--model_repo=/repository", "--exit_timeout=30", *self.document["script"]]

    @property
    def variables(self) -> dict[str, dict[str, str]]:
        """Text per variable and model."""
        parts = [self.document.get(part, {}) for part in ("documented", "instead", "beyond")]
        return {name: {k: v for part in parts for k, v in part.get(name, {}).items()} for name in parts[0]}


def rows() -> list[EngineRow]:
    """All rows."""
    return [EngineRow(name, document) for name, document in read_yaml(FILE.read_text())["rows"].items()]
