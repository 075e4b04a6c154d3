from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.serving_request import host_cache_bytes, serving_request
from tests.unit.specs import EAGLE3, facts, head, model, resolution_of
from tests.vectors.engine_rows import rows

if TYPE_CHECKING:
    from specdec_operator.runtimes.serving import ServingRequest

SPECS = {row.name: row.spec for row in rows()} | {"eagle3": EAGLE3}


def request(row: str, *, draft: Any = None, **changes: Any) -> ServingRequest:
    made = model(SPECS[row], **changes)
    known = {"target": facts()} | ({"draft": draft or facts()} if made.spec.draft else {})
    return serving_request(made.spec, resolution_of(made), known)


def test_a_declared_tree_is_expanded() -> None:
    assert request("eagle-with-choices").choices == ((0,), (1,), (0, 0), (1, 0), (0, 0, 2))


@pytest.mark.parametrize("row", ["eagle", "baseline", "eagle3"])
def test_without_a_tree_the_backend_s_default_stays(row: str) -> None:
    assert request(row).choices is None


def test_a_pair_on_one_gpu_is_known_to_share_it() -> None:
    assert (request("draft-target-on-one-gpu").shared_devices, request("draft-target-on-own-gpus").shared_devices) == (
        True,
        False,
    )


def test_both_models_contexts_are_known() -> None:
    asked = request("eagle3", draft=head(context_length=2048))

    assert (asked.context_length, asked.draft_context_length) == (131072, 2048)


def test_a_target_alone_has_no_draft_s_context() -> None:
    assert request("baseline").draft_context_length is None


def test_the_split_is_the_target_s() -> None:
    assert request("baseline-in-stages-with-every-option").target_parallelism.ranks == 4


def test_a_text_ends_with_the_target_s_first_end_token() -> None:
    assert request("medusa").end_id == 128001


def test_host_memory_is_counted_once_per_cache() -> None:
    pair = model(SPECS["draft-target-on-own-gpus"], serving__kvCache={"hostMemory": "1Gi"}).spec
    one = model(SPECS["baseline"], serving__kvCache={"hostMemory": "1500M"}).spec

    assert host_cache_bytes(pair) == {"target": 2**30, "draft": 2**30}
    assert host_cache_bytes(one) == {"target": 1_500_000_000}


def test_a_draft_without_host_memory_of_its_own_declares_none() -> None:
    serving = {"kvCache": {"hostMemory": "1Gi"}, "draftKvCache": {"maxTokens": 8}}

    assert host_cache_bytes(model(SPECS["draft-target-on-own-gpus"], serving=serving).spec) == {"target": 2**30}
