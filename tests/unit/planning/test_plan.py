from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specdec_operator.planning.plan import PodSize, plan_serving, revision_key
from tests.unit.specs import (
    ALL,
    BASELINE,
    BASELINE_ENGINE,
    DRAFT_TARGET,
    EAGLE3,
    PRODUCT,
    facts,
    facts_of,
    model,
    models_of,
    plan_of,
    resolution_of,
)
from tests.vectors.engine_rows import rows

GIB = 1024**3
DIGEST = "ab" * 32
ROWS = {row.name: row.spec for row in rows()}


def key_of(spec: dict[str, Any] = DRAFT_TARGET, *, digest: str = DIGEST, restart: str = "", **changes: Any) -> str:
    made = model(spec, **changes)
    return revision_key(made.spec, plan_of(made), assembly_digest=digest, restart=restart)


def size_of(spec: dict[str, Any], **changes: Any) -> PodSize:
    return plan_of(model(spec, **changes)).size


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": 3},
        {"suspend": True},
        {"service": {"type": "NodePort", "annotations": {"a": "b"}}},
        {"update__strategy": "Surge"},
        {"pod": {"jobResources": {"memory": "64Gi"}}},
        {"placement__gpu": {"product": PRODUCT, "resourceName": "nvidia.com/gpu"}},
    ],
)
def test_what_no_pod_runs_is_no_part_of_a_revision(changes: dict[str, Any]) -> None:
    assert key_of(**changes) == key_of()


@pytest.mark.parametrize(
    "changes",
    [
        {"serving": {"maxBatchSize": 2}},
        {"serving": {"kvCache": {"freeGPUMemoryPercent": 50}}},
        {"speculation__maxDraftTokens": 4},
        {"engine__logitsDataType": "float16"},
        {"placement__targetDevices": [2, 1, 3, 4]},
        {"placement__gpu": {"product": "NVIDIA-A10"}},
        {"placement__gpu": {"product": PRODUCT, "resourceName": "example.com/gpu"}},
        {"runtime__release": "26.05"},
        {"runtime": {"release": "26.04", "image": {"reference": "example.com/own:1"}}},
        {"runtime": {"release": "26.04", "image": {"reference": "example.com/own:1", "pullPolicy": "Always"}}},
        {"pod": {"labels": {"a": "b"}}},
        {"pod": {"annotations": {"a": "b"}}},
        {"pod": {"environment": [{"name": "A", "value": "b"}]}},
        {"pod": {"tolerations": [{"operator": "Exists"}]}},
        {"pod": {"runAsUser": 2000}},
        {"pod": {"serverResources": {"memory": "64Gi"}}},
        {"update": {"startupMinutes": 5}},
        {"target__source__huggingFace__revision": "v2"},
    ],
)
def test_what_pods_run_is_part_of_a_revision(changes: dict[str, Any]) -> None:
    assert key_of(**changes) != key_of()


def test_equal_quantities_are_one_revision() -> None:
    first, second = (key_of(pod={"serverResources": {"memory": memory}}) for memory in ("4Gi", "4096Mi"))

    assert first == second


def test_another_assembly_is_another_revision() -> None:
    assert key_of(digest="cd" * 32) != key_of()


def test_a_restart_is_another_revision() -> None:
    assert key_of(restart="1") != key_of()


def test_a_rebuilt_engine_is_another_revision() -> None:
    made = model(DRAFT_TARGET)
    plan = plan_of(made)
    rebuilt = replace(plan, check=replace(plan.check, engines=()))

    assert revision_key(made.spec, rebuilt, assembly_digest=DIGEST) != key_of()


def test_models_and_engines_are_mounted_where_the_server_looks_for_them() -> None:
    mounts = plan_of(model(DRAFT_TARGET)).mounts

    assert [mount.directory for mount in mounts] == [
        "/models/target",
        "/models/draft",
        "/engines/target",
        "/engines/draft",
    ]


@pytest.mark.parametrize("name", ALL)
def test_every_mounted_directory_is_of_a_claim(name: str) -> None:
    assert all(mount.source.claim_name and mount.source.sub_path for mount in plan_of(model(ALL[name])).mounts)


def test_what_is_checked_is_what_is_served() -> None:
    check = plan_of(model(DRAFT_TARGET)).check

    assert (check.gpus, check.gpu_product, check.driver.minimum) == (5, PRODUCT, "580")
    assert [(e.directory, e.ranks, e.logits_data_type) for e in check.engines] == [
        ("/engines/target", 4, "float32"),
        ("/engines/draft", 1, "float32"),
    ]


def test_engines_are_checked_by_the_digest_that_the_build_gave() -> None:
    assert {engine.digest for engine in plan_of(model(DRAFT_TARGET)).check.engines} == {"ef" * 32}


def test_a_model_without_a_draft_mounts_none() -> None:
    assert plan_of(model(BASELINE)).check.model_directories == ("/models/target",)


def test_the_dry_assembly_has_no_revision_yet() -> None:
    assembled = plan_of(model(EAGLE3)).assembled

    assert (assembled.revision, assembled.expected_digest) == ("", "")


def test_the_same_repository_in_the_same_image_is_assembled_once() -> None:
    first, second = (plan_of(model(EAGLE3, replicas=count)).assembly for count in (1, 2))

    assert first == second


def test_another_image_assembles_anew() -> None:
    first, second = (plan_of(model(EAGLE3, runtime={"release": release})).assembly for release in ("26.01", "26.02"))

    assert first.name != second.name


def test_memory_holds_the_weights_and_the_shared_memory() -> None:
    assert size_of(BASELINE) == PodSize(
        cpu="3", memory_bytes=4 * GIB + facts().weight_bytes + 2 * GIB, shared_memory_bytes=2 * GIB
    )


def test_shared_memory_grows_with_the_ranks() -> None:
    assert (size_of(DRAFT_TARGET).shared_memory_bytes, size_of(DRAFT_TARGET).cpu) == (6 * GIB, "8")


def test_shared_memory_grows_with_the_gpus_of_the_llm_api() -> None:
    assert size_of(BASELINE, target__parallelism={"tensor": 4}).shared_memory_bytes == 4 * GIB


def test_declared_resources_are_taken() -> None:
    size = size_of(BASELINE, pod={"serverResources": {"cpu": "2500m", "memory": "10Gi"}})

    assert (size.cpu, size.memory_bytes) == ("2500m", 10 * GIB)


def test_the_batch_left_out_is_the_engine_s() -> None:
    plan = plan_of(model(BASELINE_ENGINE, engine={"maxBatchSize": 3}))

    assert {template.values.get("triton_max_batch_size") for template in plan.files.templates} == {"3"}


def test_a_text_s_end_is_the_model_s() -> None:
    known = {**facts_of(model(DRAFT_TARGET)), "target": facts(eos_token_ids=[7, 8])}

    assert plan_of(model(DRAFT_TARGET), known).files.generate_request["end_id"] == 7


@pytest.mark.parametrize("row", ["eagle", "medusa", "redrafter"])
def test_a_head_that_is_built_into_its_target_is_not_mounted(row: str) -> None:
    made = model(ROWS[row])
    plan = plan_serving(
        made.spec, resolution_of(made), facts={"target": facts(), "draft": facts()}, models=models_of(made)
    )

    assert [mount.directory for mount in plan.mounts] == ["/models/target"]
    assert plan.check.model_directories == ("/models/target",)


def test_processes_that_the_server_starts_get_memory_and_cores_too() -> None:
    size = size_of(DRAFT_TARGET, speculation__draftTarget={"logitsTransfer": "Disabled"})

    assert (size.cpu, size.shared_memory_bytes) == ("8", 6 * GIB)


def test_host_memory_of_the_cache_is_asked_for() -> None:
    plain, with_host = size_of(BASELINE_ENGINE), size_of(BASELINE_ENGINE, serving__kvCache={"hostMemory": "3Gi"})

    assert with_host.memory_bytes - plain.memory_bytes == 3 * GIB


@pytest.mark.parametrize(
    "changes",
    [
        {"speculation__draftTarget": {"logitsTransfer": "Disabled"}},
        {"speculation__draftTarget": {"logitsTransfer": "Standard"}},
        {"serving": {"logVerbosity": 1}},
        {"serving": {"draftKvCache": {"maxTokens": 4096}}},
        {"serving": {"instances": {"businessLogic": 2}}},
        {"serving": {"decodingMode": "TopK"}},
        {"serving": {"schedulerPolicy": "MaxUtilization"}},
        {"placement__draftDevices": [1], "placement__targetDevices": [0, 2, 3, 4]},
    ],
)
def test_how_engines_are_served_is_part_of_the_revision(changes: dict[str, Any]) -> None:
    assert key_of(**changes) != key_of()
