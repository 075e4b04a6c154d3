"""The operator's own configuration: one YAML file, read once at start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from specdec_operator.api.documents import DocumentError, read_one
from specdec_operator.api.findings import as_stored, check_model, unwritten
from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import Driver, LabelValue
from specdec_operator.api.v1alpha1.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path

    from specdec_operator.api.documents import Document
    from specdec_operator.api.v1alpha1.runtime import Backend


DEFAULT_JOB_HOURS = 24
Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.DNS_LABEL.expression)]


class DefaultReleases(ApiModel):
    """The release of models that name none, per backend. Left out: the newest without a known blocking defect."""

    llm_api: Annotated[str | None, Field(alias="LLMAPI", max_length=40)] = None
    tensorrt_engine: Annotated[str | None, Field(alias="TensorRTEngine", max_length=40)] = None
    vllm: Annotated[str | None, Field(alias="VLLM", max_length=40)] = None

    def of(self, backend: Backend) -> str | None:
        """The release for a backend; None for the newest without a known blocking defect."""
        releases: dict[Backend, str | None] = {
            "LLMAPI": self.llm_api,
            "TensorRTEngine": self.tensorrt_engine,
            "VLLM": self.vllm,
        }
        return releases[backend]


class OperatorConfiguration(ApiModel):
    """Operator-wide defaults and limits."""

    instance: Annotated[str, Field(max_length=253, pattern=patterns.OPERATOR_INSTANCE.expression)] = (
        "specdec-system/specdec-operator"
    )
    """Namespace and release of this operator, as status.controller names it."""
    namespaces: Annotated[list[Namespace], Field(max_length=256)] = []
    """The namespaces that are watched; all of them if empty."""
    storage: Storage | None = None
    """The store of models that declare none."""
    gpu_product: LabelValue | None = None
    """The GPU product of models that declare none."""
    gpu_driver: Driver | None = None
    """The oldest NVIDIA driver of the GPU nodes: a release that it does not run is no default, and refused."""
    minimum_driver: Driver | None = None
    """The oldest NVIDIA driver to run models on that name none in `runtime.minimumDriver`, in place of what is known of
    each release."""
    read_nodes: bool = False
    """Whether the labels of GPU nodes are read, so that their drivers are known before anything is fetched. It takes
    the right to list nodes; with `namespaces`, nothing is read."""
    default_releases: DefaultReleases = DefaultReleases()
    """The release of models that name none."""
    releases: Annotated[list[dict[str, Any]], Field(max_length=64)] = []
    """Rows added to the capability table, or put in place of a row of the same name."""
    hugging_face_endpoint: Annotated[
        str, Field(max_length=253, pattern=patterns.HUB_ENDPOINT_OR_DEFAULT.expression)
    ] = ""
    """The hub of sources that name none."""
    cluster_domain: Annotated[str, Field(max_length=253)] = "cluster.local"
    """The cluster's DNS domain, for the addresses in status."""
    resync_seconds: Annotated[int, Field(ge=10, le=86400)] = 600
    """How often every object is looked at without an event."""
    workers: Annotated[int, Field(ge=1, le=64)] = 8
    """Reconciles at once."""
    job_attempts: Annotated[int, Field(ge=1, le=20)] = 5
    """How often a Job that may succeed another time is tried."""
    job_hours: Annotated[int, Field(ge=1, le=720)] = DEFAULT_JOB_HOURS
    """How long the pod of a Job may download, quantize or build, the pull of its image included."""

    @property
    def reads_nodes(self) -> bool:
        """Whether nodes are read: an operator of listed namespaces has no rights beyond them."""
        return self.read_nodes and not self.namespaces


class ConfigurationError(Exception):
    """The configuration file is missing or wrong; the message names the field."""


def read_configuration(file: Path | None, *, instance: str | None = None) -> OperatorConfiguration:
    """The configuration in a YAML file; the defaults without one.

    Args:
        instance: What stands in place of the file's `instance`: it goes with the pod, not with the file.

    Raises:
        ConfigurationError: The file can't be read, is not YAML, or breaks the schema.
    """
    document = _document(file) if file else None
    read = {**document.content} if document else {}
    if instance is not None:
        read["instance"] = instance
    stored = as_stored(read)
    if findings := check_model(OperatorConfiguration, stored, written=document.written if document else unwritten):
        said = "; ".join(f"{finding.path}: {finding.message}" for finding in findings)
        raise ConfigurationError(f"{file or 'the configuration'}: {said}")
    # In a row that is like another a null means something.
    return OperatorConfiguration.model_validate({**stored, "releases": read.get("releases") or []})


def _document(file: Path) -> Document | None:
    try:
        document = read_one(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: not UTF-8 text (byte {error.start})") from error
    except DocumentError as error:
        place = file if error.line is None else f"{file}:{error.line}"
        raise ConfigurationError(f"{place}: {error}") from error
    if document and not isinstance(document.content, dict):
        raise ConfigurationError(
            f"{file}: must be fields with values, as in 'workers: 8'; it is {document.content!r:.60}"
        )
    return document
