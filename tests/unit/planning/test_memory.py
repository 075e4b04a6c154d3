"""Whether what is placed on a GPU fits into its memory."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.planning.engine_limits import limits
from specdec_operator.planning.memory import memory_refusals, shared_gpu_tokens
from specdec_operator.planning.model_memory import share_of, weight_bytes
from specdec_operator.planning.plan import ServingPlan
from specdec_operator.planning.refusal import Refused
from tests.unit.specs import BASELINE, BASELINE_ENGINE, DRAFT_TARGET, EAGLE3, facts, head, model, plan_of, resolution_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModel

Json = dict[str, Any]
GIB = 1024**3
LARGE = facts(layers=80, hidden_size=8192, attention_heads=64, weight_bytes=141_107_497_872)
SMALL = facts(layers=16, hidden_size=2048, head_size=64, weight_bytes=2_471_645_608, commit="2" * 40)
SHARED: Json = {
    "target__parallelism": None,
    "placement": {"gpu": {"product": "NVIDIA-A100-SXM4-40GB"}, "draftDevices": [0], "targetDevices": [0]},
}


def refusals(spec: Json, known: Json | None = None, **changes: Any) -> list[tuple[str, str, str]]:
    made = model(spec, **changes)
    resolution, held = resolution_of(made), known or {"target": facts(), "draft": head()}
    limit = limits(made.spec, resolution, held) if resolution.backend == "TensorRTEngine" else None
    found = memory_refusals(made.spec, resolution, held, limit=limit)
    return [(refusal.reason, refusal.path, refusal.message) for refusal in found]


def tokens_of(made: SpeculativeModel, known: Json) -> Mapping[str, int]:
    resolution = resolution_of(made)
    return shared_gpu_tokens(made.spec, resolution, known, limit=limits(made.spec, resolution, known))


def test_a_target_that_fits_is_taken() -> None:
    assert refusals(EAGLE3, placement__gpu={"product": "NVIDIA-A10"}) == []


def test_a_target_that_does_not_fit_is_refused_with_the_figures_and_what_to_do() -> None:
    assert refusals(BASELINE, {"target": LARGE}, placement__gpu={"product": "NVIDIA-H100-80GB-HBM3"}) == [
        (
            "GpuMemoryTooSmall",
            "spec.placement.gpu.product",
            (
                "the target 131.4 GiB of weights and about 7.6 GiB to run need 139.0 GiB on GPU 0, and "
                "NVIDIA-H100-80GB-HBM3 has 79.6 GiB for them: raise target.parallelism.tensor (now 1), name a model "
                "published in fewer bits, or name GPUs with more memory"
            ),
        )
    ]


def test_an_engine_that_does_not_fit_may_be_quantized_or_take_smaller_batches() -> None:
    ((_, _, message),) = refusals(BASELINE_ENGINE, {"target": LARGE})

    assert message.endswith(
        "raise target.parallelism.tensor (now 1), give target.quantization a format of fewer bits, lower "
        "engine.maxBatchSize, or name GPUs with more memory"
    )


@pytest.mark.parametrize(("tensor", "fits"), [(1, False), (2, True), (4, True)])
def test_splitting_a_target_makes_it_fit(tensor: int, *, fits: bool) -> None:
    placed: Json = {"gpu": {"product": "NVIDIA-H100-80GB-HBM3"}}
    found = refusals(BASELINE, {"target": LARGE}, placement=placed, target__parallelism={"tensor": tensor})

    assert (found == []) is fits


@pytest.mark.parametrize(("precision", "fits"), [(None, False), ("FP8", True), ("INT4AWQ", True)])
def test_a_lower_precision_makes_it_fit(precision: str | None, *, fits: bool) -> None:
    changes: Json = {"target__quantization": {"format": precision} if precision else None}
    found = refusals(BASELINE_ENGINE, {"target": LARGE}, **changes, placement__gpu={"product": "NVIDIA-H100-NVL"})

    assert (found == []) is fits


def test_a_declared_memory_counts_before_the_product_s() -> None:
    ((_, path, message),) = refusals(EAGLE3, placement__gpu={"product": "NVIDIA-H200", "memory": "16Gi"})

    assert path == "spec.placement.gpu.memory"
    assert "a GPU of 16Gi has 16.0 GiB for them" in message


@pytest.mark.parametrize("gpu", [{}, {"product": "A-GPU"}])
def test_an_unknown_memory_is_not_checked(gpu: Json) -> None:
    assert refusals(BASELINE, {"target": LARGE}, placement__gpu=gpu) == []


def test_a_request_that_does_not_fit_is_refused_by_its_length() -> None:
    changes: Json = {"runtime__backend": "VLLM", "placement__gpu": {"product": "NVIDIA-A10"}}

    assert refusals(BASELINE, {"target": facts()}, **changes) == [
        (
            "GpuMemoryTooSmall",
            "spec.serving.maxSequenceLength",
            (
                "one request of 131072 tokens takes 16.0 GiB of cache on GPU 0, and weights and runtime leave 3.6 GiB "
                "of NVIDIA-A10 for it: lower serving.maxSequenceLength, raise target.parallelism.tensor (now 1), name "
                "a model published in fewer bits, or name GPUs with more memory"
            ),
        )
    ]
    assert refusals(BASELINE, {"target": facts()}, **changes, serving__maxSequenceLength=8192) == []


def test_layers_that_look_at_a_window_keep_little() -> None:
    changes: Json = {"runtime__backend": "VLLM", "placement__gpu": {"product": "NVIDIA-A10"}}

    assert refusals(BASELINE, {"target": facts(full_attention_layers=5)}, **changes) == []


def test_an_engine_s_length_is_checked() -> None:
    long = {"maxBatchSize": 1, "maxSequenceLength": 131000}
    ((reason, path, _),) = refusals(
        BASELINE_ENGINE, {"target": facts()}, engine=long, placement__gpu={"product": "NVIDIA-A10"}
    )

    assert (reason, path) == ("GpuMemoryTooSmall", "spec.engine.maxSequenceLength")


def test_the_logits_of_many_requests_count() -> None:
    wide = {"maxBatchSize": 2048, "maxSequenceLength": 1000}
    known = {"target": facts(), "draft": SMALL}
    pair = {"draftDevices": [0], "targetDevices": [1]}
    changes: Json = {"placement": {"gpu": {"product": "NVIDIA-A10"}, **pair}, "target__parallelism": None}
    assert len(refusals(DRAFT_TARGET, known, engine=wide, serving=None, **changes)) == 1


def test_two_models_on_one_gpu_are_added() -> None:
    ((_, _, message),) = refusals(
        DRAFT_TARGET, {"target": facts(), "draft": facts()}, **{**SHARED, "placement__gpu__product": "NVIDIA-L4"}
    )

    assert "the target 14.9 GiB" in message
    assert "and the draft 14.9 GiB" in message
    assert "give each model devices of its own" in message


def test_a_head_counts_with_its_target() -> None:
    memory = {"memory": f"{facts().weight_bytes + 2 * GIB + GIB // 8}"}
    assert refusals(BASELINE, {"target": facts()}, placement__gpu=memory, serving__maxSequenceLength=64) == []

    assert refusals(EAGLE3, placement__gpu=memory, serving__maxSequenceLength=64)


@pytest.mark.parametrize(
    ("changes", "memory", "percent"),
    [
        ({}, 40 * GIB, 80),
        ({"placement__gpu__memory": "30Gi"}, 30 * GIB, 80),
        ({"serving__kvCache": {"freeGPUMemoryPercent": 40}}, 40 * GIB, 40),
        ({"placement__gpu__product": "NVIDIA-H200"}, 143771 * 1024**2, 80),
    ],
)
def test_caches_on_one_gpu_fit_together_whatever_loads_first(changes: Json, memory: int, percent: int) -> None:
    made = model(DRAFT_TARGET, **{**SHARED, **changes})
    known = {"target": facts(), "draft": SMALL}
    found = tokens_of(made, known)

    assert made.spec.draft
    models = {"target": made.spec.target, "draft": made.spec.draft}
    shares = {
        role: share_of(known[role], models[role], parallelism=models[role].parallelism, rows=rows, windowed=False)
        for role, rows in (("target", 44), ("draft", 4))
    }
    for order in itertools.permutations(shares):
        free = memory - sum(share.weights + share.working for share in shares.values())
        for role in order:
            wanted = found[role] * shares[role].token
            assert 3072 * shares[role].token < wanted <= free * percent // 100
            free -= wanted


def test_a_declared_bound_of_a_cache_is_kept() -> None:
    made = model(DRAFT_TARGET, **SHARED, serving={"kvCache": {"maxTokens": 5000}, "draftKvCache": {"maxTokens": 4000}})

    found = tokens_of(made, {"target": facts(), "draft": SMALL})
    assert found == {"target": 5000, "draft": 4000}


@pytest.mark.parametrize(
    ("serving", "fields"),
    [
        ({"kvCache": {"maxTokens": 3081}}, ["kvCache"]),
        ({"kvCache": {"maxTokens": 3082}}, []),
        ({"draftKvCache": {"maxTokens": 3081}}, ["draftKvCache"]),
        ({"kvCache": {"maxTokens": 1}, "draftKvCache": {"maxTokens": 1}}, ["kvCache", "draftKvCache"]),
        ({"kvCache": {"maxTokens": 1000}, "maxAttentionWindow": 1000}, []),
    ],
)
@pytest.mark.parametrize("placed", [{}, SHARED], ids=["own GPUs", "one GPU"])
def test_an_engine_s_cache_holds_one_request(serving: Json, fields: list[str], placed: Json) -> None:
    found = refusals(DRAFT_TARGET, {"target": facts(), "draft": SMALL}, serving=serving, **placed)

    assert [(reason, path) for reason, path, _ in found] == [
        ("CacheTooSmall", f"spec.serving.{field}.maxTokens") for field in fields
    ]


def test_a_cache_without_room_for_a_request_is_refused_with_what_it_takes() -> None:
    gpu: Json = {"placement": {"gpu": {"product": "A-GPU"}}}
    ((_, _, message),) = refusals(BASELINE_ENGINE, {"target": facts()}, serving={"kvCache": {"maxTokens": 64}}, **gpu)

    assert message == (
        "a cache of 64 tokens holds no request of 3072, drafted tokens included: raise it to 3072, or lower "
        "engine.maxSequenceLength"
    )


def test_the_cache_of_a_prebuilt_engine_of_unknown_length_is_not_judged() -> None:
    engine: Json = {"prebuilt": {"target": {"claimName": "engines"}}}
    changes: Json = {"serving": {"kvCache": {"maxTokens": 64}}}

    assert refusals(BASELINE_ENGINE, {"target": facts()}, engine=engine, **changes) == []
    declared = refusals(BASELINE_ENGINE, {"target": facts()}, engine={**engine, "maxSequenceLength": 3072}, **changes)
    assert [reason for reason, _, _ in declared] == ["CacheTooSmall"]


def test_caches_on_a_gpu_of_unknown_memory_hold_what_the_engines_can_use() -> None:
    made = model(DRAFT_TARGET, **{**SHARED, "placement__gpu": {"product": "A-GPU"}})

    found = tokens_of(made, {"target": facts(), "draft": SMALL})
    assert found == {"target": 12288, "draft": 12288}


def test_models_with_gpus_of_their_own_are_not_bounded() -> None:
    made = model(DRAFT_TARGET)

    assert tokens_of(made, {"target": facts(), "draft": SMALL}) == {}


def test_a_pair_that_does_not_fit_is_refused_before_its_engines_are_planned() -> None:
    made = model(DRAFT_TARGET, **SHARED, placement__gpu__product="NVIDIA-GeForce-RTX-4080")

    with pytest.raises(Refused, match="GiB"):
        plan_of(made, {"target": facts(), "draft": SMALL})


def test_the_bound_reaches_the_model_repository() -> None:
    plan = plan_of(model(DRAFT_TARGET, **SHARED), {"target": facts(), "draft": SMALL})

    assert isinstance(plan, ServingPlan)
    assert "max_tokens_in_paged_kv_cache" in plan.assembled.to_json()


@pytest.mark.parametrize(
    ("changes", "gibibytes"),
    [
        ({}, 14.9),
        ({"data_type": "float32", "weight_bytes": 32_000_000_000}, 14.9),
        ({"quantization": "fp8", "weight_bytes": 9_000_000_000, "data_type": "float32"}, 8.4),
    ],
)
def test_weights_are_counted_as_they_are_loaded(changes: Json, gibibytes: float) -> None:
    assert round(weight_bytes(facts(**changes), model(BASELINE).spec.target) / GIB, 1) == gibibytes


def test_embeddings_keep_their_precision() -> None:
    quantized = model(BASELINE_ENGINE, target__quantization={"format": "FP8"}).spec.target
    embedding = 2 * 2 * 128256 * 4096

    assert weight_bytes(facts(), quantized) == embedding + (16_000_000_000 - embedding) // 2


def test_a_compressed_cache_is_counted_as_such() -> None:
    target = model(BASELINE).spec.target
    share = share_of(facts(layers=61, latent_size=576), target, parallelism=target.parallelism, rows=1, windowed=True)

    assert share.token == 61 * 576 * 2
