"""What each release of vLLM knows: keys of model.json, speculative_config and sampling parameters, methods, models."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from testbed.runtime.simulator.contracts import declared_up_to, fields, newest, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from packaging.version import Version


class Generation(StrEnum):
    """vLLM's two engines."""

    V0 = "V0"
    V1 = "V1"


@dataclass(frozen=True, kw_only=True)
class VLLMRelease:
    """What one release knows.

    Attributes:
        version: the release.
        engine: keys of model.json, those of AsyncEngineArgs.
        speculative_config: keys below that one; empty before it was there.
        sampling: what a request's sampling parameters may hold.
        says: how it reads what makes it speculate.
        own_layers: classes and model types of targets that draft with layers of their own.
        eagle3_targets: classes of targets that EAGLE-3 heads can read.
        eagle3_families: parts of their model types; empty for any.
        heads: classes of EAGLE and EAGLE-3 heads.
    """

    version: Version
    engine: frozenset[str]
    speculative_config: frozenset[str]
    sampling: frozenset[str]
    says: Mapping[str, Any]
    own_layers: frozenset[str]
    eagle3_targets: frozenset[str]
    eagle3_families: tuple[str, ...]
    heads: frozenset[str]

    @classmethod
    def read(cls, version: str) -> VLLMRelease:
        """Read the contracts.

        Raises:
            ParameterError: the version is none, or older than all that are known.
        """
        arguments = declared_up_to("vllm/arguments.yaml", version)
        models = declared_up_to("vllm/architectures.yaml", version)
        layers = [row.get("ownLayers", {}) for row in models]
        return cls(
            version=parsed(version),
            **{name: frozenset(fields(arguments, name)) for name in ("engine", "speculative_config", "sampling")},
            says=declared_up_to("vllm/speculation.yaml", version)[-1],
            own_layers=frozenset(name for row in layers for pair in row.items() for name in pair),
            eagle3_targets=frozenset(name for row in models for name in row.get("eagle3Targets", ())),
            eagle3_families=tuple(newest(models, "eagle3Families") or ()),
            heads=frozenset(name for row in models for name in row.get("heads", ())),
        )

    def generation(self, environment: Mapping[str, str]) -> Generation:
        """Return which engine runs when Triton's backend starts it in a background thread, as it always does."""
        asked = self.says["engine"] == "V0 unless asked" and environment.get("VLLM_USE_V1") == "1"
        return Generation.V1 if asked or self.says["engine"] == "V1" else Generation.V0
