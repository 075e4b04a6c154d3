"""The keys that each release of TensorRT-LLM's LLM API knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from testbed.runtime.simulator.contracts import declared_up_to, fields
from testbed.runtime.simulator.release import TENSORRT_LLM_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECTIONS: Final = ("kv_cache_config", "scheduler_config", "pytorch_backend_config", "triton_config")


@dataclass(frozen=True)
class DecodingType:
    """A value of `decoding_type`.

    Attributes:
        method: `Eagle3`, `DraftTarget`, `NGram` or `MTP`, however the release spells it.
        fields: keys beside those of every type, with the kind of their values.
        needs: keys of which one of each list must be given.
        positive: keys whose value must be above 0, with their default.
    """

    method: str
    fields: Mapping[str, str]
    needs: Sequence[Sequence[str]]
    positive: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class KnownKeys:
    """The keys of a release with the kind of their values, by the place where they stand.

    Attributes:
        version: the release.
        arguments: of model.yaml itself, beside `triton_config`.
        sections: below the key of each name.
        speculative_config: below that key, whatever its `decoding_type`.
        decoding_types: by the parser's name.
        ignores: whether unknown keys of sections change nothing, silently.
        own_layers: architectures whose own next-token layers it drafts with.
    """

    version: str
    arguments: Mapping[str, str]
    sections: Mapping[str, Mapping[str, str]]
    speculative_config: Mapping[str, str]
    decoding_types: Mapping[str, DecodingType]
    ignores: bool
    own_layers: frozenset[str]

    @classmethod
    def read(cls, version: str = TENSORRT_LLM_VERSION) -> KnownKeys:
        """Read the contract.

        Raises:
            ParameterError: the version is none, or older than all that are known.
        """
        rows = declared_up_to("llm_api/arguments.yaml", version)
        types: dict[str, Any] = {}
        for row in rows:
            types |= row.get("decodingTypes", {})
        return cls(
            version=version,
            arguments=fields(rows, "arguments"),
            sections={name: fields(rows, name) for name in SECTIONS},
            speculative_config=fields(rows, "speculative_config"),
            decoding_types={name: _type(method, kind) for method, kind in types.items() for name in kind["names"]},
            ignores=next(row["unknownKeys"] for row in reversed(rows) if "unknownKeys" in row) == "ignored",
            own_layers=frozenset(
                name for row in declared_up_to("llm_api/models.yaml", version) for name in row["ownLayers"]
            ),
        )


def _type(method: str, kind: Mapping[str, Any]) -> DecodingType:
    keys = {"names", "needs", "positive"}
    named = {name: value for value, names in kind.items() if value not in keys for name in names}
    return DecodingType(method, named, kind.get("needs", ()), kind.get("positive", {}))
