"""The keys that each release of TensorRT-LLM's LLM API knows."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from packaging.version import InvalidVersion, Version

from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.release import TENSORRT_LLM_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class KnownKeys:
    """The keys of a release, by the place where they stand, and what is known of their values.

    Attributes:
        version: the release.
        arguments: of model.yaml itself, beside `triton_config`.
        kv_cache_config: below the key of that name, as `triton_config` and `speculative_config`.
        decoding_types: further keys of `speculative_config` by its `decoding_type`.
        draft_keys: which of its keys may name the draft's directory.
        ngram_length_key: which of its keys says how many tokens NGram drafts.
        mtp_length_key: likewise, of MTP.
        integers: keys of whole numbers, wherever they stand, as `booleans` and `fractions`.
    """

    version: str
    arguments: frozenset[str]
    kv_cache_config: frozenset[str]
    triton_config: frozenset[str]
    speculative_config: frozenset[str]
    decoding_types: Mapping[str, frozenset[str]]
    draft_keys: tuple[str, ...]
    ngram_length_key: str
    mtp_length_key: str
    integers: frozenset[str]
    booleans: frozenset[str]
    fractions: frozenset[str]

    @classmethod
    def read(cls, version: str = TENSORRT_LLM_VERSION) -> KnownKeys:
        """Read the lists that lie beside this module.

        Raises:
            ParameterError: the version is none, or older than all that are known.
        """
        lists = _lists()
        family = _family(lists["families"], version)
        types = {name: frozenset(fields) for name, fields in family["decoding_types"].items()}
        return cls(
            version=version,
            **{name: frozenset(fields) for name, fields in lists.items() if name != "families"},
            speculative_config=frozenset(family["speculative_config"]),
            decoding_types=types,
            draft_keys=tuple(family["draft_keys"]),
            ngram_length_key=family["ngram_length_key"],
            mtp_length_key=family["mtp_length_key"],
        )


@functools.cache
def _lists() -> Mapping[str, Any]:
    lists: Mapping[str, Any] = yaml.load(Path(__file__).with_name("llm_arguments.yaml").read_text(), yaml.CSafeLoader)
    return lists


def _family(families: list[dict[str, Any]], version: str) -> dict[str, Any]:
    try:
        wanted = Version(version)
    except InvalidVersion as problem:
        raise ParameterError(f"{version!r} is no version of TensorRT-LLM; give one such as 1.1.0") from problem
    found = [family for family in families if Version(family["since"]) <= wanted]
    if not found:
        raise ParameterError(f"TensorRT-LLM {version} is not known here; the oldest is {families[0]['since']}")
    return found[-1]
