"""What each release of vLLM knows: keys of model.json, speculative_config and sampling parameters, and methods."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from packaging.version import InvalidVersion, Version

from testbed.runtime.simulator.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_WITH_V1 = Version("0.8.0")
_FIRST_ALWAYS_V1 = Version("0.10.2")


class Generation(StrEnum):
    """vLLM's two engines."""

    V0 = "V0"
    V1 = "V1"


@dataclass(frozen=True)
class MethodSpan:
    """From which release a method's name is known, before which it is gone, and whether it can be played here."""

    since: Version
    until: Version | None
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class VLLMRelease:
    """What one release knows.

    Attributes:
        version: the release.
        engine: keys of model.json, those of AsyncEngineArgs.
        speculative_config: keys below that one; empty before it was there.
        sampling: what a request's sampling parameters may hold.
        methods: the values of speculative_config.method that it knows.
    """

    version: Version
    engine: frozenset[str]
    speculative_config: frozenset[str]
    sampling: frozenset[str]
    methods: Mapping[str, MethodSpan]

    @classmethod
    def read(cls, version: str) -> VLLMRelease:
        """Read the lists that lie beside this module.

        Raises:
            ParameterError: the version is none, or older than all that are known.
        """
        wanted = _version(version)
        lists = _lists()
        rows = [row for row in lists["versions"] if Version(row["version"]) <= wanted]
        if not rows:
            raise ParameterError(f"vLLM {version} is not known here; the oldest is {lists['versions'][0]['version']}")
        spans = {name: _span(fields) for name, fields in lists["methods"].items()}
        return cls(
            version=wanted,
            engine=_keys(rows, "engine"),
            speculative_config=_keys(rows, "speculative_config"),
            sampling=_keys(rows, "sampling"),
            methods={name: span for name, span in spans.items() if _within(span, wanted)},
        )

    def generation(self, environment: Mapping[str, str]) -> Generation:
        """Return which engine runs when Triton's backend starts it in a background thread, as it always does."""
        if self.version < _FIRST_WITH_V1:
            return Generation.V0
        if self.version < _FIRST_ALWAYS_V1 and environment.get("VLLM_USE_V1") != "1":
            return Generation.V0
        return Generation.V1


@functools.cache
def _lists() -> Mapping[str, Any]:
    lists: Mapping[str, Any] = yaml.load(Path(__file__).with_name("vllm_arguments.yaml").read_text(), yaml.CSafeLoader)
    return lists


def _keys(rows: list[dict[str, Any]], name: str) -> frozenset[str]:
    known: set[str] = set()
    for row in rows:
        known = (known | set(row.get(name, ()))) - set(row.get(f"{name}_gone", ()))
    return frozenset(known)


def _span(fields: Mapping[str, Any]) -> MethodSpan:
    until = Version(fields["until"]) if "until" in fields else None
    return MethodSpan(Version(fields["since"]), until, bool(fields.get("simulated", True)))


def _within(span: MethodSpan, version: Version) -> bool:
    return span.since <= version and (span.until is None or version < span.until)


def _version(text: str) -> Version:
    try:
        # NVIDIA's builds say more after a plus sign.
        return Version(text.partition("+")[0])
    except InvalidVersion as problem:
        raise ParameterError(f"{text!r} is no version of vLLM; give one such as 0.15.1") from problem
