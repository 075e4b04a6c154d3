from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.planning.admission import admit, refusals
from specdec_operator.planning.refusal import Refused
from specdec_operator.runtimes.environment import mpi_environment, orchestrator_environment, server_environment
from tests.unit.specs import ALL, BASELINE, CONFIGURATION, DRAFT_TARGET, EAGLE3, EAGLE3_VLLM, PRODUCT, TABLE, model


def found(spec: dict[str, Any], *, configuration: OperatorConfiguration = CONFIGURATION, **changes: Any) -> list[Any]:
    refused = refusals(model(spec, **changes), table=TABLE, configuration=configuration)
    return [(refusal.reason, refusal.path) for refusal in refused]


@pytest.mark.parametrize("name", ALL)
def test_a_spec_that_can_be_served_is_admitted(name: str) -> None:
    assert found(ALL[name]) == []


@pytest.mark.parametrize(
    "variable",
    sorted({*server_environment(), *mpi_environment(exit_timeout_seconds=1), *orchestrator_environment(spawns=True)}),
)
def test_a_variable_that_the_operator_sets_is_refused(variable: str) -> None:
    assert found(BASELINE, pod={"environment": [{"name": "A"}, {"name": variable}]}) == [
        ("EnvironmentOwned", "spec.pod.environment[1].name")
    ]


@pytest.mark.parametrize(
    "variable",
    ["LD_PRELOAD", "PYTHONPATH", "PATH", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "HF_TOKEN", "OMPI_X"],
)
def test_a_variable_that_decides_what_runs_is_refused(variable: str) -> None:
    assert found(BASELINE, pod={"environment": [{"name": variable}]}) == [
        ("EnvironmentOwned", "spec.pod.environment[0].name")
    ]


@pytest.mark.parametrize("variable", ["TRTLLM_ENABLE_PDL", "NCCL_DEBUG", "TOKENIZERS_PARALLELISM", "HTTPS_PROXY"])
def test_a_tuning_variable_is_admitted(variable: str) -> None:
    assert found(BASELINE, pod={"environment": [{"name": variable}]}) == []


@pytest.mark.parametrize(
    "key",
    ["specdec.dev/model", "specdec.dev/anything", "x.specdec.dev/a", "app.kubernetes.io/managed-by"],
)
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_a_key_of_the_operator_is_refused(field: str, key: str) -> None:
    assert found(BASELINE, pod={field: {key: "a"}}) == [("LabelOwned", f"spec.pod.{field}[{key}]")]


def test_a_key_of_the_operator_on_the_service_is_refused() -> None:
    assert found(BASELINE, service={"annotations": {"specdec.dev/a": "b"}}) == [
        ("LabelOwned", "spec.service.annotations[specdec.dev/a]")
    ]


@pytest.mark.parametrize("key", ["app.kubernetes.io/name", "notspecdec.dev/a", "team"])
def test_a_key_of_somebody_else_is_admitted(key: str) -> None:
    assert found(BASELINE, pod={"labels": {key: "a"}}) == []


def test_a_node_selector_that_contradicts_the_gpu_product_is_refused() -> None:
    selector = {"nvidia.com/gpu.product": "NVIDIA-A10"}

    assert found(DRAFT_TARGET, pod={"nodeSelector": selector}) == [
        ("GpuProductContradiction", "spec.pod.nodeSelector[nvidia.com/gpu.product]")
    ]


def test_a_node_selector_that_contradicts_the_operator_s_gpu_product_is_refused() -> None:
    configuration = OperatorConfiguration(gpu_product=PRODUCT)
    selector = {"nvidia.com/gpu.product": "NVIDIA-A10"}

    assert found(BASELINE, configuration=configuration, pod={"nodeSelector": selector}) == [
        ("GpuProductContradiction", "spec.pod.nodeSelector[nvidia.com/gpu.product]")
    ]


def test_a_node_selector_that_says_the_same_is_admitted() -> None:
    assert found(DRAFT_TARGET, pod={"nodeSelector": {"nvidia.com/gpu.product": PRODUCT}}) == []


@pytest.mark.parametrize(("draft", "accepted"), [(32, True), (33, False)])
def test_more_gpus_than_a_pod_may_have_are_refused(draft: int, *, accepted: bool) -> None:
    changes: dict[str, Any] = {
        "target__parallelism": {"tensor": 32},
        "draft__parallelism": {"tensor": draft},
        "placement": {"gpu": {"product": PRODUCT}},
    }
    expected = [] if accepted else [("TooManyDevices", "spec.target.parallelism.tensor")]

    assert found(DRAFT_TARGET, **changes) == expected


@pytest.mark.parametrize(
    ("release", "expected"), [("25.09", [("EnvironmentOwned", "spec.pod.environment[0].name")]), ("25.10", [])]
)
def test_a_variable_that_a_release_needs_is_refused(release: str, expected: list[tuple[str, str]]) -> None:
    environment = [{"name": "VLLM_USE_V1", "value": "0"}]

    assert found(EAGLE3_VLLM, runtime__release=release, pod={"environment": environment}) == expected


def test_everything_is_said_at_once() -> None:
    changes: dict[str, Any] = {
        "runtime": {"release": "99.01"},
        "storage": None,
        "pod": {"labels": {"specdec.dev/a": "b"}, "environment": [{"name": "PATH"}]},
    }

    assert [reason for reason, _ in found(EAGLE3, **changes)] == [
        "ReleaseUnknown",
        "StorageRequired",
        "EnvironmentOwned",
        "LabelOwned",
    ]


def test_a_spec_that_resolves_is_still_refused_for_the_rest() -> None:
    with pytest.raises(Refused, match="PATH is set by the operator"):
        admit(model(EAGLE3, pod={"environment": [{"name": "PATH"}]}), table=TABLE, configuration=CONFIGURATION)


def test_pins_of_the_status_are_kept() -> None:
    made = model(EAGLE3)
    first = admit(made, table=TABLE, configuration=CONFIGURATION)
    kept = made.model_copy(update={"status": made.status.model_copy(update={"pins": list(first.pins)})})
    configuration = OperatorConfiguration.model_validate({"defaultReleases": {"LLMAPI": "25.10"}})

    assert admit(kept, table=TABLE, configuration=configuration).release.name == first.release.name


def test_every_refusal_says_what_to_do() -> None:
    changes: dict[str, Any] = {
        "runtime": {"release": "99.01"},
        "storage": None,
        "pod": {"labels": {"specdec.dev/a": "b"}},
    }
    refused = refusals(model(EAGLE3, **changes), table=TABLE, configuration=CONFIGURATION)

    assert all(any(word in refusal.message for word in ("Name", "give", "choose")) for refusal in refused)


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        ({"serving": {"streaming": True}}, "OptionContradiction", "spec.serving.streaming"),
        ({"serving": {"tokenizer": {"mode": "Slow"}}}, "OptionNotOnBackend", "spec.serving.tokenizer.mode"),
        (
            {
                "speculation": {"method": "Eagle", "eagle": {"layers": 3}},
                "placement": {"gpu": {"product": PRODUCT}},
                "draft__parallelism": {},
            },
            "ChoicesInvalid",
            "spec.speculation.eagle.layers",
        ),
        (
            {
                "speculation": {"method": "ReDrafter"},
                "placement": {"gpu": {"product": PRODUCT}},
                "target__parallelism": {"pipeline": 2},
            },
            "PipelineNotSupported",
            "spec.target.parallelism.pipeline",
        ),
    ],
)
def test_what_engines_can_t_serve_is_refused_before_anything_is_fetched(
    changes: dict[str, Any], reason: str, path: str
) -> None:
    assert found(DRAFT_TARGET, **changes) == [(reason, path)]


def one_pod(**spec: Any) -> list[Any]:
    return found(BASELINE, storage={"claim": {"size": "1Gi", "accessModes": ["ReadWriteOncePod"]}}, **spec)


def test_more_pods_than_a_volume_lets_in_are_refused() -> None:
    assert one_pod(replicas=2) == [("StoreForOnePod", "spec.replicas")]


def test_a_pod_that_comes_before_the_old_one_leaves_is_one_too_many() -> None:
    assert one_pod(update={"strategy": "Surge"}) == [("StoreForOnePod", "spec.update.strategy")]


def test_one_pod_may_have_a_volume_for_itself() -> None:
    assert one_pod() == []
