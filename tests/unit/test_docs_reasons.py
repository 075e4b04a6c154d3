"""Every reason that the code can set is in docs/conditions.md, and nothing else is."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from specdec_operator.api.v1alpha1.quantization import QuantizationFormat
from specdec_operator.api.v1alpha1.speculation import METHODS
from specdec_operator.reconcile.conditions import ORDER
from specdec_operator.resources import labels

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "conditions.md"
ROOMS = ("planning", "pod", "reconcile", "triton")
REASON = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
ROW = re.compile(r"^\| `([A-Z][A-Za-z0-9]+)` \|", re.MULTILINE)

COMPOSED = {"Missing": ("EngineMissing", "ModelMissing"), "Damaged": ("EngineDamaged", "ModelDamaged")}
"""Ends of reasons whose beginning is the kind of what is missing or damaged."""

CONDITIONS = frozenset(ORDER) - {"Accepted", "Ready"}
"""Condition types that are no reasons too."""
KINDS = frozenset(
    {"Assembly", "ConfigMap", "ControllerRevision", "DataSet", "Deployment", "Engine", "Job", "Model", "ModelArtifact"}
    | {"Pod", "Service", "SpeculativeModel"}
)
QUANTIZATION_FORMATS = frozenset(get_args(QuantizationFormat))
DRAFT_KINDS = frozenset({"Eagle3Head", "EagleHead", "MedusaHeads", "ReDrafterHead"})
METHODS_AND_BACKENDS = frozenset({*METHODS, "TensorRTEngine"})
ARCHITECTURES = frozenset({"LlamaForCausalLM", "MistralForCausalLM"})
EVENTS = frozenset({"Acquire", "Normal", "Reconcile", "Warning"})
KUBERNETES = frozenset(
    {"Complete", "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull"}
    | {
        "DeadlineExceeded",
        "DisruptionTarget",
        "ErrImagePull",
        "Exists",
        "Failed",
        "False",
        "ImagePullBackOff",
        "InvalidImageName",
        "OOMKilled",
        "PodScheduled",
    }
    | {"FailedResourceClaimCreation", "ProgressDeadlineExceeded", "Progressing", "ReadOnlyMany"}
    | {"ReadWriteMany", "ReadWriteOncePod", "Running", "Succeeded", "True"}
    | {"BackOff", "ContainerCreating", "DNSConfigForming", "FailedCreatePodSandBox", "FailedScheduling"}
    | {"FailedToRetrieveImagePullSecret", "ImageInspectError", "PodInitializing", "RegistryUnavailable"}
    | {"ReplicaFailure", "SignatureValidationFailed", "Unhealthy", "Unknown"}
)
HUB_ERRORS = frozenset(
    {"ChunkedEncodingError", "ConnectError", "ConnectTimeout", "ConnectionError", "FileMetadataError"}
    | {"GatedRepoError", "HFValidationError", "LocalEntryNotFoundError", "NetworkError", "OfflineModeIsEnabled"}
    | {"ProtocolError", "ReadTimeout", "RemoteProtocolError", "RepositoryNotFoundError", "RevisionNotFoundError"}
    | {"Timeout", "TimeoutException", "TransportError"}
)
OTHERS = frozenset(
    {"Literal", "Document", "DocumentType", "InputType", "PublishedConfig"}  # names of types
    | {"Ei", "Gi", "KiB", "Ki", "Mi", "MiB", "Pi", "Ti"}  # units
    | {"Unreachable"}  # an outcome of the proof; its condition's reason is ProofUnreachable
)
OPTIONS = frozenset(
    {"Auto", "Disabled", "Fast", "GuaranteedNoEvict", "Replace", "Surge"}  # values of spec fields
    | {"Leader", "Orchestrator", "Single", "SpawningOrchestrator"}  # how a pod's processes find each other
    | {"Effective", "Ineffective"}  # words of status.acceptance
)
NOT_REASONS = (
    OPTIONS
    | CONDITIONS
    | KINDS
    | DRAFT_KINDS
    | QUANTIZATION_FORMATS
    | METHODS_AND_BACKENDS
    | ARCHITECTURES
    | EVENTS
    | KUBERNETES
    | HUB_ERRORS
    | OTHERS
)
"""Words of the rooms that look like reasons and are none."""


@pytest.fixture(scope="module")
def words() -> frozenset[str]:
    files = [path for room in ROOMS for path in (ROOT / "operator" / "specdec_operator" / room).rglob("*.py")]
    found = {word for path in files for word in _words(ast.parse(path.read_text(encoding="utf-8")))}
    composed = {reason for end in COMPOSED if end in found for reason in COMPOSED[end]}
    return frozenset((found - set(COMPOSED)) | composed)


@pytest.fixture(scope="module")
def documented() -> list[str]:
    rows = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    return [row for row in rows if row not in CONDITIONS]


def test_every_reason_of_the_code_is_explained(words: frozenset[str], documented: list[str]) -> None:
    unexplained = words - set(documented) - NOT_REASONS

    assert not unexplained, (
        f"add a row to docs/conditions.md for {sorted(unexplained)}, or name it in NOT_REASONS if it is no reason"
    )


def test_no_explained_reason_has_left_the_code(words: frozenset[str], documented: list[str]) -> None:
    assert set(documented) <= words


def test_a_reason_is_explained_in_one_place(documented: list[str]) -> None:
    twice = {reason for reason in documented if documented.count(reason) > 1}

    assert twice == {"Accepted", "Ready"}, "only these two are a condition's type and a reason as well"


def test_every_condition_is_explained() -> None:
    assert set(ORDER) <= set(ROW.findall(DOCUMENT.read_text(encoding="utf-8")))


@pytest.mark.parametrize("annotation", [labels.RETRY, labels.REFRESH, labels.RESTART])
def test_every_annotation_is_explained(annotation: str) -> None:
    assert f"| `{annotation}` |" in DOCUMENT.read_text(encoding="utf-8")


def test_words_that_are_no_reasons_are_not_explained_as_reasons(documented: list[str]) -> None:
    assert not set(documented) & NOT_REASONS


def _words(tree: ast.Module) -> Iterator[str]:
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in prose:
            continue
        if REASON.fullmatch(node.value):
            yield node.value
