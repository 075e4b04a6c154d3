"""Which method a speculative_config means on a release, and what vLLM refuses before it loads a weight."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from testbed.runtime.inference.errors import ModelFilesError
from testbed.runtime.inference.llama import read_json
from testbed.runtime.simulator.errors import ParameterError
from testbed.runtime.simulator.vllm_releases import Generation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from testbed.runtime.simulator.vllm_arguments import SpeculativeFields, VLLMArguments
    from testbed.runtime.simulator.vllm_releases import VLLMRelease

_NGRAM: Final = ("ngram", "[ngram]")
_LOOKUPS: Final = (*_NGRAM, "ngram_gpu")
_SIMULATED: Final = (*_LOOKUPS, "draft_model", "eagle", "eagle3", "medusa", "mtp")
_HEADS: Final = {"eagle": "Eagle", "eagle3": "Eagle3"}
_NO_DRAFT_MODEL: Final = (
    "Speculative decoding with draft model is not supported yet. Please consider using other speculative decoding"
    " methods such as ngram, medusa, eagle, or mtp."
)
_OLD_MEDUSA_FILES = Version("0.27.0")
_PIPELINE_ALLOWED = Version("0.16.0")
_SLOTS_CHECKED = Version("0.16.0")


@dataclass(frozen=True)
class SpeculationPlan:
    """What drafts.

    Attributes:
        method: `draft_model`, `ngram`, `eagle`, `eagle3`, `medusa` or `mtp`.
        directory: of the draft; None for ngram.
        count: tokens drafted at a time.
        lookup: shortest and longest end that ngram looks for.
    """

    method: str
    directory: Path | None
    count: int
    lookup: tuple[int, int]


def plan_speculation(arguments: VLLMArguments, release: VLLMRelease, generation: Generation) -> SpeculationPlan | None:
    """Find the method, and refuse what the release refuses.

    Raises:
        ParameterError: the release would not load this pair.
    """
    fields = arguments.speculation
    if fields is None:
        return None
    if generation not in release.says["speculatesOn"]:
        raise ParameterError(f"Speculative decoding is not supported on vLLM {generation}.")
    _check_simulated(fields.method)
    method = _method(fields, arguments, release)
    _check_simulated(method)
    _check_method(method, release, generation)
    if generation is Generation.V0:
        _check_first_engine(method, arguments, release)
    directory = None if method == "ngram" else Path(fields.model) if fields.model else arguments.model
    plan = SpeculationPlan(method, directory, _count(fields, method), fields.prompt_lookup)
    _check_parallelism(plan, arguments, release, generation)
    if directory is not None:
        _check_draft(plan, arguments, _config(directory))
        _check_models(plan, arguments, release, generation)
    _check_batch(plan, arguments, release)
    return plan


def _method(fields: SpeculativeFields, arguments: VLLMArguments, release: VLLMRelease) -> str:
    if fields.method in _LOOKUPS or (fields.method is None and fields.model in _NGRAM):
        return "ngram"
    if fields.model is None:
        return _mtp(fields, _config(arguments.model), release)
    if fields.method is not None and fields.method in release.says.get("heeded", ()):
        return fields.method
    paths = release.says.get("paths", {})
    by_path = next((str(method) for part, method in paths.items() if part in fields.model.lower()), None)
    return by_path or _by_files(fields, _config(Path(fields.model)), release)


def _by_files(fields: SpeculativeFields, config: Mapping[str, Any], release: VLLMRelease) -> str:
    kind = config.get("model_type")
    if kind in ("medusa", "mlp_speculator", "eagle"):
        return str(kind)
    if fields.method == "medusa" and kind is None and release.version >= _OLD_MEDUSA_FILES:
        return "medusa"
    if _has_own_layer(config, release):
        return "mtp"
    named = fields.method or release.says.get("default")
    if "draft_model" in release.says.get("named", ()) and named != "draft_model":
        raise ParameterError(f"Unsupported speculative method: '{fields.method}'")
    return "draft_model"


def _mtp(fields: SpeculativeFields, config: Mapping[str, Any], release: VLLMRelease) -> str:
    """The target's own layers: of certain model types unasked, later of all and by that name."""
    types = release.says.get("layersAlone")
    meant = "mtp" in (fields.method or "") if types is None else config.get("model_type") in types
    if not meant:
        raise ParameterError("num_speculative_tokens was provided without speculative model.")
    if not _has_own_layer(config, release):
        raise ParameterError(
            f"Unsupported speculative method: '{fields.method}' (the target, model_type"
            f" {config.get('model_type')!r}, declares no layer for multi-token prediction that vLLM"
            f" {release.version} knows)"
        )
    return "mtp"


def _has_own_layer(config: Mapping[str, Any], release: VLLMRelease) -> bool:
    known = not release.own_layers.isdisjoint({str(config.get("model_type")), *config.get("architectures", ())})
    return known and bool(config.get("num_nextn_predict_layers"))


def _count(fields: SpeculativeFields, method: str) -> int:
    if fields.num_speculative_tokens is not None:
        return fields.num_speculative_tokens
    if method == "mtp":
        return 1
    raise ParameterError(
        "num_speculative_tokens must be provided with speculative model unless the draft model config contains an"
        " n_predict parameter."
    )


def _check_method(method: str, release: VLLMRelease, generation: Generation) -> None:
    if generation is Generation.V0 and method in release.says.get("newerEngineAlone", ()):
        raise ParameterError(f"{method} needs the V1 engine: Triton starts V0 here unless VLLM_USE_V1=1 is set")
    if method in release.says.get("refused", ()):
        raise ParameterError(_NO_DRAFT_MODEL)


def _check_first_engine(method: str, arguments: VLLMArguments, release: VLLMRelease) -> None:
    """Refuse what only the newer engine can do."""
    if arguments.enable_lora:
        raise ParameterError("LoRA with speculative decoding is not supported on vLLM V0.")
    if arguments.enable_chunked_prefill and method in release.says.get("wholePrompts", ()):
        raise ParameterError(f"Chunked prefill and {method} are not compatible when using V0.")
    own = arguments.speculation.draft_tensor_parallel_size if arguments.speculation else None
    if method == "eagle" and (own or arguments.tensor_parallel_size) > 1:
        raise ParameterError("EAGLE does not support TP > 1 yet: set draft_tensor_parallel_size to 1")


def _check_simulated(method: str | None) -> None:
    if method == "suffix":
        raise ParameterError(
            "Arctic Inference is required for suffix decoding. Install via `pip install arctic-inference==0.1.1`."
        )
    if method is not None and method not in _SIMULATED and not method.endswith("_mtp"):
        raise ParameterError(f"speculative_config: the simulator has no stand-in for {method}")


def _check_models(
    plan: SpeculationPlan, arguments: VLLMArguments, release: VLLMRelease, generation: Generation
) -> None:
    """Refuse targets and heads whose class the release does not know for the method."""
    target, prefix = _config(arguments.model), _HEADS.get(plan.method)
    if plan.method == "eagle3":
        _check_eagle3_target(target, release)
    if prefix and plan.directory and generation is Generation.V1:
        for head in _config(plan.directory).get("architectures", ()):
            named = head.startswith(prefix) or (plan.method == "eagle3" and head.endswith(prefix))
            if (head if named else f"{prefix}{head}") not in release.heads:
                raise ParameterError(f"Model architectures ['{prefix}{head}'] are not supported for now.")
    layers = target.get("num_nextn_predict_layers") or 1
    refused = release.says["rounds"] == "refused"
    if plan.method == "mtp" and plan.count > layers and (refused or plan.count % layers):
        raise ParameterError(f"num_speculative_tokens:{plan.count} must be divisible by n_predict={layers}")


def _check_eagle3_target(target: Mapping[str, Any], release: VLLMRelease) -> None:
    families, kind = release.eagle3_families, str(target.get("model_type"))
    if families and not any(part in kind for part in families):
        raise ParameterError(f"Eagle3 is only supported for {', '.join(families)} models. Got model_type={kind}")
    if release.eagle3_targets.isdisjoint(target.get("architectures", ())):
        raise ParameterError("Model does not support EAGLE3 interface but aux_hidden_state_outputs was requested")


def _check_parallelism(
    plan: SpeculationPlan, arguments: VLLMArguments, release: VLLMRelease, generation: Generation
) -> None:
    if arguments.pipeline_parallel_size > 1 and release.version < _PIPELINE_ALLOWED:
        raise ParameterError("Speculative decoding is not supported with pipeline parallelism.")
    own = arguments.speculation.draft_tensor_parallel_size if arguments.speculation else None
    if own is None or plan.method == "ngram":
        return
    target = arguments.tensor_parallel_size
    if own not in {target if split == "target" else split for split in release.says["draftSplits"]}:
        raise ParameterError(
            f"speculative_draft_tensor_parallel_size={own} cannot be other value than 1 or target model"
            " tensor_parallel_size"
        )
    if plan.method == "draft_model" and own != target and generation is Generation.V1:
        raise ParameterError(
            f"Currently, 'draft_tensor_parallel_size' and 'tensor_parallel_size' must be the same. Got {own} and"
            f" {target}. Please pass 'draft_tensor_parallel_size' in the speculative_config."
        )


def _check_draft(plan: SpeculationPlan, arguments: VLLMArguments, draft: Mapping[str, Any]) -> None:
    fields, target = arguments.speculation, _config(arguments.model)
    sizes = target.get("vocab_size"), draft.get("vocab_size")
    if plan.method == "draft_model" and sizes[0] != sizes[1] and not (fields and fields.heterogeneous_vocab):
        raise ParameterError(
            "Target and draft model should have the same vocabulary size. Target model"
            f" vocab_size={sizes[0]}. Draft model vocab_size={sizes[1]}. Using models with different tokenizers can"
            " cause out-of-bounds errors during speculative decoding."
        )
    for name, limit in (
        ("draft_max_model_len", draft.get("max_position_embeddings")),
        ("target_max_model_len", arguments.max_model_len or target.get("max_position_embeddings")),
    ):
        wanted = fields.max_model_len if fields else None
        if wanted is not None and limit is not None and wanted > limit:
            raise ParameterError(f"speculative_max_model_len={wanted} cannot be larger than {name}={limit}")


def _check_batch(plan: SpeculationPlan, arguments: VLLMArguments, release: VLLMRelease) -> None:
    batched = arguments.max_num_batched_tokens
    if batched is None or release.version < _SLOTS_CHECKED:
        return
    parallel = bool(arguments.speculation and arguments.speculation.parallel_drafting)
    draft = {"draft_model": plan.count if parallel else 1, "eagle3": plan.count - 1 if parallel else 0}
    slots = draft.get(plan.method, 0) * arguments.max_num_seqs
    if batched <= slots:
        raise ParameterError(
            f"max_num_batched_tokens ({batched}) must be greater than the slots that drafting takes ({slots}:"
            f" {draft[plan.method]} for each of max_num_seqs {arguments.max_num_seqs})"
        )


def _config(directory: Path) -> dict[str, Any]:
    try:
        return read_json(directory / "config.json")
    except ModelFilesError as problem:
        raise ParameterError(str(problem)) from problem
