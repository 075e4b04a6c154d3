"""The capability table: what each Triton release holds and can do, as data.

The rows that ship with the operator are `releases.yaml`, each with its sources named. An operator's configuration adds
rows or replaces them by name; both are checked by the same schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import Field, ValidationError

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.runtime import Backend
from specdec_operator.api.v1alpha1.scalars import ImageReference
from specdec_operator.api.v1alpha1.speculation import Method

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class TableError(Exception):
    """A row of the capability table is wrong."""


class Defect(ApiModel):
    """A known defect of a release."""

    id: Annotated[str, Field(max_length=128)]
    """A short name or the upstream thread."""
    backends: Annotated[list[Backend], Field(min_length=1)]
    """The backends that it breaks."""
    blocking: bool = True
    """Whether a stock image of the release can't serve at all."""
    remedy: Annotated[str, Field(max_length=512)]
    """What to do."""


class LlmApiSupport(ApiModel):
    """The LLM API path of a release."""

    methods: list[Method]
    """What it can serve."""
    template: list[str] = ["/app/all_models/llmapi/tensorrt_llm"]
    """Where the image keeps the model template: the first that exists."""
    eagle3_decoding_type: Annotated[str, Field(max_length=32)] = "Eagle"
    """The spelling of EAGLE-3 in `speculative_config.decoding_type`."""
    draft_model_key: Annotated[str, Field(max_length=32)] = "speculative_model_dir"
    """The spelling of the draft's path in `speculative_config`."""


class EngineSupport(ApiModel):
    """The engine path of a release."""

    methods: list[Method]
    """What it can serve."""
    templates: list[str] = ["/app/all_models/inflight_batcher_llm"]
    """Where the image keeps the model templates: the first that exists."""
    convert_llama: list[str] = [
        "/app/examples/models/core/llama/convert_checkpoint.py",
        "/app/examples/llama/convert_checkpoint.py",
    ]
    """The checkpoint converter of the Llama family: the first that exists."""


class Release(ApiModel):
    """One release: a Triton tag and the versions inside it."""

    name: Annotated[str, Field(max_length=40)]
    """The tag's version, as users name it."""
    image: ImageReference
    """The stock image."""
    tensorrt_llm: Annotated[
        str, Field(alias="tensorrtLLM", max_length=32, pattern=r"^[0-9]+\.[0-9]+\.[0-9]+[a-z0-9]*$")
    ]
    """The TensorRT-LLM version inside."""
    minimum_driver: Annotated[str, Field(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)*$")] | None = None
    """The lowest NVIDIA driver."""
    llm_api: Annotated[LlmApiSupport | None, Field(alias="LLMAPI")] = None
    """The LLM API path, where the release has it."""
    tensorrt_engine: Annotated[EngineSupport | None, Field(alias="TensorRTEngine")] = None
    """The engine path, where the release has it."""
    per_request_acceptance: bool = False
    """Whether responses of the LLM API carry true acceptance figures."""
    simulator: bool = False
    """Whether the image is a stand-in without GPUs; status and logs say so."""
    defects: list[Defect] = []
    """Known defects."""
    source: Annotated[str, Field(max_length=1024)]
    """Where the row's facts were read."""

    def methods(self, backend: Backend) -> tuple[Method, ...]:
        """What the backend of this release can serve; empty if the release lacks the backend."""
        support = self.llm_api if backend == "LLMAPI" else self.tensorrt_engine
        return tuple(support.methods) if support else ()

    def blocking_defect(self, backend: Backend) -> Defect | None:
        """The first known defect that keeps a stock image from serving the backend."""
        return next((d for d in self.defects if d.blocking and backend in d.backends), None)


@dataclass(frozen=True)
class CapabilityTable:
    """All known releases, oldest first."""

    releases: tuple[Release, ...]

    def find(self, name: str) -> Release | None:
        """The release of that name."""
        return next((release for release in self.releases if release.name == name), None)

    def default(self, backend: Backend, method: Method) -> Release | None:
        """The newest release that serves the method on the backend without a known blocking defect."""
        for release in reversed(self.releases):
            if (
                method in release.methods(backend)
                and release.blocking_defect(backend) is None
                and not release.simulator
            ):
                return release
        return None

    def with_method(self, backend: Backend, method: Method) -> tuple[str, ...]:
        """Names of the releases that serve the method on the backend."""
        return tuple(r.name for r in self.releases if method in r.methods(backend))


def load_table(extra: Sequence[Mapping[str, Any]] = ()) -> CapabilityTable:
    """The shipped rows with the given ones added, or in place of a row of the same name.

    Raises:
        TableError: A row is wrong; the message names it and the field.
    """
    text = resources.files("specdec_operator.runtimes").joinpath("releases.yaml").read_text()
    rows = [_row(document) for document in yaml.safe_load(text)["releases"]]
    return CapabilityTable(tuple(_merged(rows, [_row(document) for document in extra])))


def _row(document: Mapping[str, Any]) -> Release:
    try:
        return Release.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise TableError(f"release {document.get('name', '?')}: {field}: {first['msg']}") from error


def _merged(shipped: Iterable[Release], extra: Iterable[Release]) -> list[Release]:
    rows = {release.name: release for release in shipped}
    rows.update({release.name: release for release in extra})
    return sorted(rows.values(), key=lambda release: release.name)
