from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.serving_request import serving_request
from specdec_operator.runtimes.engine_model import choices_text, engine
from tests.unit.specs import facts, model, resolution_of
from tests.vectors.engine_rows import rows

if TYPE_CHECKING:
    from specdec_operator.pod.inputs import ModelTemplate
    from specdec_operator.runtimes.serving import ServingRequest

SPECS = {row.name: row.spec for row in rows()}


def request(row: str, **changes: Any) -> ServingRequest:
    made = model(SPECS[row], **changes)
    known = {"target": facts()} | ({"draft": facts()} if made.spec.draft else {})
    return serving_request(made.spec, resolution_of(made), known)


def rendered(asked: ServingRequest, *, role: str = "target") -> ModelTemplate:
    support = asked.release.tensorrt_engine
    assert support is not None
    return engine(asked, support, name="tensorrt_llm", role=role)


def test_a_tree_is_written_node_by_node() -> None:
    assert choices_text(((0,), (1,), (0, 0))) == "{0}, {1}, {0, 0}"


@pytest.mark.parametrize("method", ["eagle", "medusa"])
def test_without_choices_the_backend_takes_its_own_tree(method: str) -> None:
    assert f"{method}_choices" in rendered(request(method)).unset


@pytest.mark.parametrize("method", ["eagle", "medusa", "lookahead", "redrafter"])
def test_a_method_that_decides_how_tokens_are_chosen_is_never_given_a_sampling_mode(method: str) -> None:
    assert rendered(request(method)).values["decoding_mode"] == method


def test_a_baseline_leaves_the_decoding_mode_to_the_backend() -> None:
    assert "decoding_mode" in rendered(request("baseline")).unset


def test_lookahead_left_out_is_seven_by_seven_by_seven() -> None:
    values = rendered(request("lookahead", speculation__lookahead=None)).values

    assert [values[name] for name in values if name.startswith("lookahead_")] == ["7", "7", "7"]


def test_derived_tokens_bound_the_cache_of_a_shared_gpu() -> None:
    asked = replace(
        request("draft-target-on-one-gpu", serving__kvCache=None), kv_tokens={"target": 4096, "draft": 8192}
    )

    assert [rendered(asked, role=role).values["max_tokens_in_paged_kv_cache"] for role in ("target", "draft")] == [
        "4096",
        "8192",
    ]
    assert rendered(asked).values["kv_cache_free_gpu_mem_fraction"] == "0.90"


def test_declared_tokens_bound_the_cache_of_a_model_with_gpus_of_its_own() -> None:
    asked = request("draft-target-on-own-gpus", serving__kvCache={"maxTokens": 100})

    assert rendered(asked).values["max_tokens_in_paged_kv_cache"] == "100"


def test_more_tokens_are_declared_than_a_shared_gpu_holds() -> None:
    asked = request("draft-target-on-one-gpu", serving__kvCache={"maxTokens": 2**31 - 1})

    assert int(rendered(asked).values["max_tokens_in_paged_kv_cache"]) < 2**20


def test_the_draft_s_cache_is_its_own_where_it_is_declared() -> None:
    asked = request("draft-target-on-own-gpus", serving__draftKvCache={"maxTokens": 64, "hostMemory": "1Gi"})
    values = rendered(asked, role="draft").values

    assert (values["max_tokens_in_paged_kv_cache"], values["kv_cache_host_memory_bytes"]) == ("64", "1073741824")
    assert "kv_cache_host_memory_bytes" in rendered(asked).unset


def test_the_target_s_host_memory_is_the_draft_s_too_where_none_is_declared_for_it() -> None:
    asked = request("draft-target-on-own-gpus", serving__kvCache={"hostMemory": "1Gi"})

    assert rendered(asked, role="draft").values["kv_cache_host_memory_bytes"] == "1073741824"


def test_what_a_release_may_lack_is_optional_unless_it_is_asked_for() -> None:
    plain, asked = rendered(request("baseline")), rendered(request("baseline", serving__maxQueueSize=3))

    assert plain.optional_values["max_queue_size"] == "0"
    assert (asked.values["max_queue_size"], "max_queue_size" in asked.optional_values) == ("3", False)


@pytest.mark.parametrize("row", SPECS)
def test_no_variable_has_a_value_and_is_unset(row: str) -> None:
    found = rendered(request(row))

    assert not (set(found.values) | set(found.optional_values)) & set(found.unset)
    assert not set(found.values) & set(found.optional_values)
