"""A spec with its resolution and facts, reduced to what decides the serving files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.api.quantities import byte_count
from specdec_operator.api.v1alpha1.speculative_model import places_draft
from specdec_operator.planning.engine_limits import limits, serving_batch
from specdec_operator.planning.memory import shared_gpu_tokens
from specdec_operator.runtimes.serving import PlacedDevices, ServingRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution


def serving_request(
    spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]
) -> ServingRequest:
    """What the backend's module renders.

    Args:
        facts: Facts per role.
    """
    placement = resolution.placement
    limit = limits(spec, resolution, facts) if resolution.backend == "TensorRTEngine" else None
    ends, draft = facts["target"].eos_token_ids, facts.get("draft")
    return ServingRequest(
        method=spec.speculation.method,
        speculation=spec.speculation,
        release=resolution.release,
        draft_tokens=resolution.draft_tokens,
        devices={
            model.role: PlacedDevices(devices=model.devices, participant_ids=model.participant_ids)
            for model in placement.models
        },
        world_size=placement.world_size,
        batch=serving_batch(spec),
        serving=spec.serving,
        target_parallelism=spec.target.parallelism,
        draft_parallelism=spec.draft.parallelism if spec.draft else None,
        shared_devices=placement.shared,
        logits_transfer=placement.logits_transfer,
        choices=resolution.tree,
        context_length=facts["target"].context_length,
        draft_context_length=draft.context_length if draft else None,
        kv_tokens=shared_gpu_tokens(spec, resolution, facts, limit=limit),
        host_cache_bytes=host_cache_bytes(spec),
        logits_data_type=limit.logits_data_type if limit else "float32",
        end_id=ends[0] if ends else None,
    )


def host_cache_bytes(spec: SpeculativeModelSpec) -> dict[str, int]:
    """Host memory beside the key-value cache of each role that has one, where it is asked for."""
    caches = {"target": spec.serving.kv_cache}
    if places_draft(spec):
        caches["draft"] = spec.serving.draft_kv_cache or spec.serving.kv_cache
    return {role: byte_count(cache.host_memory) for role, cache in caches.items() if cache.host_memory}
