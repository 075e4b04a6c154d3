"""What upstream's own files declare, as data, each row with the place where it was read.

A contract is a YAML file of rows. A row says what some releases declare alike, and where each was read:

    - sources:
      - repository: triton-inference-server/tensorrtllm_backend
        path: all_models/inflight_batcher_llm/tensorrt_llm_bls/config.pbtxt
        evidence: read
        at: {"25.01": v0.17.0 of 2025-01-30}
      - repository: NVIDIA/TensorRT-LLM
        path: triton_backend/all_models/inflight_batcher_llm/tensorrt_llm_bls/config.pbtxt
        evidence: inferred
        because: no copy of the tag is to be had; the same in 1.1.0 and 1.2.1
        at: {"26.03": v1.2.0 of 2026-03-11}
      declares: …

`at` maps a Triton release to the tag or commit of the file and its date. Evidence is `read` where that very version of
the file was read, `inferred` where a neighbour or a document was, and `because` then says what. `declares` is whatever
the tests of the contract's folder hold renderings against.

Contracts are written from upstream's files alone. Nothing here, and no test below this folder, may look at the
operator's capability table, its renderer or the simulator to learn what upstream does.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Evidence = Literal["read", "inferred"]
ROOT: Final = Path(__file__).parent
_AT: Final = re.compile(r"\S+ of \d{4}-\d{2}-\d{2}")
_SOURCE_KEYS: Final = {"repository", "path", "evidence", "at"}


class ContractError(Exception):
    """A contract's row is malformed; the message names the file and what is wrong."""


@dataclass(frozen=True)
class Source:
    """Where a row was read for some releases.

    Attributes:
        repository: Its owner and name.
        path: The file there.
        evidence: Whether the file at that version was read.
        because: What `inferred` rests on; empty where it was read.
        at: Per release the tag or commit of the file, with its date.
    """

    repository: str
    path: str
    evidence: Evidence
    because: str
    at: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """What some releases declare alike."""

    sources: tuple[Source, ...]
    declares: Any

    def evidence(self, release: str) -> Evidence | None:
        """How the row is known for a release: read if one of its files was; None if it says nothing of the release."""
        found: set[Evidence] = {source.evidence for source in self.sources if release in source.at}
        if not found:
            return None
        return "read" if "read" in found else "inferred"


@dataclass(frozen=True)
class Contract:
    """One file of rows."""

    file: Path
    rows: tuple[Row, ...]

    def of(self, release: str) -> tuple[Any, ...]:
        """What a release declares: one answer, or one for each version that its image may hold where sources disagree.

        Raises:
            ContractError: No row speaks of the release.
        """
        found = tuple(row.declares for row in self.rows if row.evidence(release))
        if not found:
            raise ContractError(f"{self.file.relative_to(ROOT)}: no row for {release}: read upstream's file, add one")
        return found

    def up_to(self, release: str) -> tuple[Any, ...]:
        """What all rows up to the release's own declare, oldest first, where each row says what is new.

        Raises:
            ContractError: No row speaks of the release.
        """
        last = max((i for i, row in enumerate(self.rows) if row.evidence(release)), default=None)
        if last is None:
            return self.of(release)
        return tuple(row.declares for row in self.rows[: last + 1])

    def evidence(self, release: str) -> Evidence | None:
        """How the weakest row of a release is known; None if no row speaks of it."""
        found = {row.evidence(release) for row in self.rows} - {None}
        return ("inferred" if "inferred" in found else "read") if found else None

    def releases(self) -> tuple[str, ...]:
        """Every release that a row speaks of, oldest first."""
        return tuple(sorted({release for row in self.rows for source in row.sources for release in source.at}))


@functools.cache
def contract(name: str) -> Contract:
    """A contract by its path below this folder, such as `engine/trtllm_build.yaml`.

    Raises:
        ContractError: A row lacks a source, or has one that is malformed.
        OSError: There is no such file.
    """
    file = ROOT / name
    documents = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return Contract(file, tuple(_row(name, document) for document in documents))


def contracts() -> Iterator[Contract]:
    """Every contract."""
    for file in sorted(ROOT.glob("*/*.yaml")):
        if file.name != "cases.yaml":
            yield contract(str(file.relative_to(ROOT)))


def _row(name: str, document: Mapping[str, Any]) -> Row:
    if set(document) != {"sources", "declares"} or not document["sources"]:
        raise ContractError(f"{name}: a row has sources and declares, not {sorted(document)}")
    return Row(tuple(_source(name, source) for source in document["sources"]), document["declares"])


def _source(name: str, fields: Mapping[str, Any]) -> Source:
    inferred = fields.get("evidence") == "inferred"
    if set(fields) != _SOURCE_KEYS | ({"because"} if inferred else set()):
        raise ContractError(f"{name}: a source has repository, path, evidence, at and, if inferred, because: {fields}")
    if fields["evidence"] not in ("read", "inferred"):
        raise ContractError(f"{name}: evidence is read or inferred, not {fields['evidence']}")
    if wrong := [f"{release}: {at}" for release, at in fields["at"].items() if not _AT.fullmatch(str(at))]:
        raise ContractError(f"{name}: write `tag of YYYY-MM-DD`, not {wrong[0]}")
    return Source(**{"because": "", **fields})
