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
# Since when a target of this model_type may draft with its own layer.
_MTP_TARGETS: Final = {
    "deepseek_v3": Version("0.8.0"),
    "mimo": Version("0.9.0"),
    "glm4_moe": Version("0.10.0"),
}
_NO_DRAFT_MODEL: Final = (
    "Speculative decoding with draft model is not supported yet. Please consider using other speculative decoding"
    " methods such as ngram, medusa, eagle, or mtp."
)
_FIRST_EAGLE_PATHS, _FIRST_EAGLE3_PATHS = Version("0.7.3"), Version("0.10.0")
_FIRST_WITHOUT_V0_SPECULATION = Version("0.10.0")
_DRAFT_MODEL_BACK = Version("0.15.0")
_DRAFT_MODEL_BY_DEFAULT = Version("0.22.0")
_OLD_MEDUSA_FILES = Version("0.27.0")
_V2_BLOCKS_BY_DEFAULT = Version("0.6.0")
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
    _check_old_releases(arguments, release, generation)
    _check_simulated(fields.method, release)
    method = _method(fields, arguments, release)
    _check_simulated(method, release)
    _check_method(method, release, generation)
    if generation is Generation.V0:
        _check_first_engine(method, arguments)
    directory = None if method == "ngram" else Path(fields.model) if fields.model else arguments.model
    plan = SpeculationPlan(method, directory, _count(fields, method), fields.prompt_lookup)
    _check_parallelism(plan, arguments, release)
    if directory is not None:
        _check_draft(plan, arguments, _config(directory))
    _check_batch(plan, arguments, release)
    return plan


def _method(fields: SpeculativeFields, arguments: VLLMArguments, release: VLLMRelease) -> str:
    if fields.method in _LOOKUPS or (fields.method is None and fields.model in _NGRAM):
        return "ngram"
    if fields.model is None:
        if fields.method is not None and "mtp" in fields.method:
            return _mtp(fields, _config(arguments.model), release)
        raise ParameterError("num_speculative_tokens was provided but without speculative model.")
    if fields.method in ("eagle", "eagle3"):
        return fields.method
    return _by_path(fields.model, release) or _by_files(fields, _config(Path(fields.model)), release)


def _by_path(model: str, release: VLLMRelease) -> str | None:
    """Return the method that a path's name alone decides, over whatever else was said."""
    name = model.lower()
    old = release.version < _FIRST_EAGLE3_PATHS
    if release.version >= _FIRST_EAGLE_PATHS and ("eagle-" in name or (old and "eagle3-" in name)):
        return "eagle"
    return "eagle3" if not old and "eagle3" in name else None


def _by_files(fields: SpeculativeFields, config: Mapping[str, Any], release: VLLMRelease) -> str:
    kind = config.get("model_type")
    if kind in ("medusa", "mlp_speculator", "eagle"):
        return str(kind)
    if fields.method == "medusa" and kind is None and release.version >= _OLD_MEDUSA_FILES:
        return "medusa"
    if _has_own_layer(config, release):
        return "mtp"
    if not fields.nested or fields.method == "draft_model" or release.version < _DRAFT_MODEL_BACK:
        return "draft_model"
    if fields.method is None and release.version >= _DRAFT_MODEL_BY_DEFAULT:
        return "draft_model"
    raise ParameterError(f"Unsupported speculative method: '{fields.method}'")


def _mtp(fields: SpeculativeFields, config: Mapping[str, Any], release: VLLMRelease) -> str:
    if not _has_own_layer(config, release):
        raise ParameterError(
            f"Unsupported speculative method: '{fields.method}' (the target, model_type"
            f" {config.get('model_type')!r}, declares no layer for multi-token prediction that vLLM"
            f" {release.version} knows)"
        )
    return "mtp"


def _has_own_layer(config: Mapping[str, Any], release: VLLMRelease) -> bool:
    since = _MTP_TARGETS.get(str(config.get("model_type")))
    return since is not None and release.version >= since and bool(config.get("num_nextn_predict_layers"))


def _count(fields: SpeculativeFields, method: str) -> int:
    if fields.num_speculative_tokens is not None:
        return fields.num_speculative_tokens
    if method == "mtp":
        return 1
    raise ParameterError(
        "num_speculative_tokens must be provided with speculative model unless the draft model config contains an"
        " n_predict parameter."
    )


def _check_old_releases(arguments: VLLMArguments, release: VLLMRelease, generation: Generation) -> None:
    if release.version < _V2_BLOCKS_BY_DEFAULT and arguments.use_v2_block_manager is not True:
        raise ParameterError(
            "Speculative decoding requires usage of the V2 block manager. Enable it with --use-v2-block-manager."
        )
    if generation is Generation.V0 and release.version >= _FIRST_WITHOUT_V0_SPECULATION:
        raise ParameterError("Speculative decoding is not supported on vLLM V0.")


def _check_method(method: str, release: VLLMRelease, generation: Generation) -> None:
    if generation is Generation.V0 and method == "eagle3":
        raise ParameterError("eagle3 needs the V1 engine: Triton starts V0 here unless VLLM_USE_V1=1 is set")
    if generation is Generation.V1 and method == "draft_model" and release.version < _DRAFT_MODEL_BACK:
        raise ParameterError(_NO_DRAFT_MODEL)


def _check_first_engine(method: str, arguments: VLLMArguments) -> None:
    """Refuse what only the newer engine can do."""
    if arguments.enable_lora:
        raise ParameterError("LoRA with speculative decoding is not supported on vLLM V0.")
    if method != "eagle":
        return
    if arguments.enable_chunked_prefill:
        raise ParameterError("Chunked prefill and EAGLE are not compatible when using V0.")
    own = arguments.speculation.draft_tensor_parallel_size if arguments.speculation else None
    if (own or arguments.tensor_parallel_size) > 1:
        raise ParameterError("EAGLE does not support TP > 1 yet: set draft_tensor_parallel_size to 1")


def _check_simulated(method: str | None, release: VLLMRelease) -> None:
    if method == "suffix":
        raise ParameterError(
            "Arctic Inference is required for suffix decoding. Install via `pip install arctic-inference==0.1.1`."
        )
    span = release.methods.get(method or "")
    if span is not None and not span.simulated:
        raise ParameterError(f"speculative_config: the simulator has no stand-in for {method}")


def _check_parallelism(plan: SpeculationPlan, arguments: VLLMArguments, release: VLLMRelease) -> None:
    if arguments.pipeline_parallel_size > 1 and release.version < _PIPELINE_ALLOWED:
        raise ParameterError("Speculative decoding is not supported with pipeline parallelism.")
    own = arguments.speculation.draft_tensor_parallel_size if arguments.speculation else None
    if own is None or plan.method == "ngram":
        return
    target = arguments.tensor_parallel_size
    if own not in (1, target):
        raise ParameterError(
            f"speculative_draft_tensor_parallel_size={own} cannot be other value than 1 or target model"
            " tensor_parallel_size"
        )
    if plan.method == "draft_model" and own != target and release.version >= _DRAFT_MODEL_BACK:
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
