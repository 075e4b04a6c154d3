"""The capability table: what each Triton release holds and can do, as data.

The rows that ship with the operator are `releases.yaml`, each with its sources named. An operator's configuration adds
rows or replaces them by name; both are checked by the same schema. A row may be like another: it then says only what
differs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from specdec_operator.api.sentences import place_of, sentence_of
from specdec_operator.api.yaml_text import read_yaml
from specdec_operator.runtimes.methods import MethodWords, load_methods
from specdec_operator.runtimes.release import (
    Defect,
    EngineSupport,
    LlmApiSupport,
    Release,
    Support,
    VllmSupport,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculation import Method

__all__ = [
    "CapabilityTable",
    "Defect",
    "EngineSupport",
    "LlmApiSupport",
    "Release",
    "Support",
    "TableError",
    "VllmSupport",
    "load_table",
]


class TableError(Exception):
    """A row of the capability table is wrong."""


@dataclass(frozen=True)
class CapabilityTable:
    """All known releases, oldest first, and the words for what they lack.

    Attributes:
        added: Names of the rows that the operator's configuration adds, not those that it puts in a shipped one's
            place.
        stock: Images of the shipped rows with the TensorRT-LLM that each holds.
    """

    releases: tuple[Release, ...]
    words: MethodWords = field(default_factory=load_methods)
    added: frozenset[str] = frozenset()
    stock: frozenset[tuple[str, str]] = frozenset()

    def find(self, name: str) -> Release | None:
        """The release of that name."""
        return next((release for release in self.releases if release.name == name), None)

    def default(
        self, backend: Backend, method: Method, *, runs: Callable[[Release], bool] = lambda _: True
    ) -> Release | None:
        """The newest release that serves the method on the backend without a known blocking defect.

        A row that the configuration adds is none: a private image is used where it is named.

        Args:
            runs: Whether the drivers of the GPU nodes run a release, as far as they are known.
        """
        for release in reversed(self.releases):
            if (
                method in release.methods(backend)
                and release.blocking_defect(backend, method) is None
                and not release.simulator
                and release.name not in self.added
                and runs(release)
            ):
                return release
        return None

    def is_stock(self, image: str, tensorrt_llm: str | None) -> bool:
        """Whether an image is a shipped row's and holds the TensorRT-LLM that the row says."""
        return (image, tensorrt_llm or "") in self.stock

    def with_method(self, backend: Backend, method: Method) -> tuple[str, ...]:
        """Names of the releases that serve the method on the backend."""
        return tuple(r.name for r in self.releases if method in r.methods(backend))

    def has_method(self, backend: Backend, method: Method) -> bool:
        """Whether a release serves the method on the backend."""
        return any(method in release.methods(backend) for release in self.releases)

    def spans(self, holds: Callable[[Release], bool]) -> str:
        """The releases of which something holds, as in `25.01 to 25.08, 26.02`; stand-ins are left out."""
        spans: list[list[str]] = []
        previous = False
        for release in (release for release in self.releases if not release.simulator):
            if holds(release):
                spans = [*spans[:-1], [*spans[-1], release.name]] if previous else [*spans, [release.name]]
            previous = holds(release)
        return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)

    def advisable(self, backend: Backend, method: Method) -> str:
        """The releases to use for the method on the backend, in words: those without a known blocking defect."""
        whole = self.spans(lambda r: method in r.methods(backend) and r.blocking_defect(backend, method) is None)
        return whole or self.serving(backend, method)

    def serving(self, backend: Backend, method: Method) -> str:
        """The releases that serve the method on the backend, in words."""
        return self.spans(lambda release: method in release.methods(backend))


def load_table(extra: Sequence[Mapping[str, Any]] = ()) -> CapabilityTable:
    """The shipped rows with the given ones added, or in place of a row of the same name.

    Raises:
        TableError: A row is wrong; the message names it and the field.
    """
    shipped = _shipped_rows()
    rows = _rows(extra, shipped)
    releases = {
        name: _shipped_release(name) if row is shipped.get(name) else _release(row) for name, row in rows.items()
    }
    return CapabilityTable(
        tuple(sorted(releases.values(), key=lambda release: release.name)),
        added=frozenset(rows.keys() - shipped.keys()),
        stock=frozenset((row["image"], str(row["tensorrtLLM"])) for row in shipped.values() if "image" in row),
    )


@functools.cache
def _shipped_rows() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files("specdec_operator.runtimes").joinpath("releases.yaml").read_text(encoding="utf-8")
    return _rows(read_yaml(text)["releases"], {})


@functools.cache
def _shipped_release(name: str) -> Release:
    return _release(_shipped_rows()[name])


def _rows(
    documents: Sequence[Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    rows = dict(before)
    for document in documents:
        row = _inherited(document, rows)
        rows[str(row.get("name", "?"))] = row
    return rows


def _inherited(document: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """A row with what it takes from the row that it is like. Its sources are its own, and so is its evidence."""
    like = document.get("like")
    if like is None:
        return document
    if like not in rows:
        raise TableError(
            f"release {document.get('name', '?')}: like: {like} is in no row before this one: name a shipped one, or "
            "put the row below the one that it is like"
        )
    taken = {key: _unproven(value) for key, value in rows[like].items() if key not in ("name", "source")}
    return _over(taken, {key: value for key, value in document.items() if key != "like"})


def _unproven(value: Any) -> Any:
    """A part of a row without its evidence."""
    if not isinstance(value, dict):
        return value
    return {key: part for key, part in value.items() if key not in ("evidence", "runWith")}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings as one: maps are joined key by key, anything else is taken from above, null removes a key."""
    joined = dict(below)
    for key, value in above.items():
        inner = joined.get(key)
        joined[key] = _over(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return {key: value for key, value in joined.items() if value is not None}


def _release(document: Mapping[str, Any]) -> Release:
    try:
        return Release.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = place_of(Release, first["loc"])
        said = f"{field}: {sentence_of(Release, first['loc'], first)}" if field else first["msg"]
        raise TableError(f"release {document.get('name', '?')}: {said}") from error
