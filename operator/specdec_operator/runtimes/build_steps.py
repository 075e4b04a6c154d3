"""The commands that build one engine: from models and limits to argv lists, per method.

A command names what it reads and writes by its role (`{model}`, `{head}`, `{calibration}`, `{base}`, `{checkpoint}`,
`{engine}`), so that equal commands are one engine wherever the files lie.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specdec_operator.api.v1alpha1.artifact_inputs import BuildStep
from specdec_operator.runtimes.engine_builds import engine_builds
from specdec_operator.runtimes.release import converter_paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.quantization import Quantization
    from specdec_operator.api.v1alpha1.speculation import Method, ReDrafterOptions
    from specdec_operator.runtimes.engine_builds import Family
    from specdec_operator.runtimes.release import EngineSupport

PROOF = "prove"
"""The name of the step that asks a built engine for tokens: it decides nothing of the engine's content."""
_PROOF_PROMPT = "Once upon"
_PROOF_TOKENS = 8
_PROOF_ROOM = 32
_LONGEST_ARGUMENT = 1024
"""As the API bounds an argument of a step."""


@dataclass(frozen=True, kw_only=True)
class EagleShape:
    """What an EAGLE tree must fit into: levels, and nodes with followers on one level.

    Attributes:
        layers: The levels.
        non_leaves_per_layer: The nodes with followers.
        choices: Every node of the tree that a spec declares; empty for TensorRT-LLM's own.
    """

    layers: int
    non_leaves_per_layer: int
    choices: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class MedusaShape:
    """The heads that are built in, and the residual layers of each."""

    heads: int
    layers: int


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """What an engine is built to take, and in which types.

    Attributes:
        batch: The most requests in one batch.
        input_length: The longest prompt, in tokens.
        sequence_length: The longest prompt with its answer and drafted tokens, in tokens.
        batched_tokens: The most tokens in one batch.
        draft_tokens: The most tokens drafted for one step.
        data_type: float16 or bfloat16.
        logits_data_type: float16 or float32.
    """

    batch: int
    input_length: int
    sequence_length: int
    batched_tokens: int
    draft_tokens: int
    data_type: str
    logits_data_type: str


@dataclass(frozen=True, kw_only=True)
class EngineRecipe:
    """Everything that decides the commands of one engine.

    Attributes:
        method: None for a plain engine, as a draft's own is.
        family: The model's family; the target's where a head is built in.
        tensor: Ranks that share each layer.
        pipeline: Groups of ranks that share the layers among them.
        calibrated: Whether calibration texts are mounted.
        eagle: For the method Eagle.
        medusa: For the method Medusa.
        re_drafter: For the method ReDrafter.
        extra: More options of trtllm-build, without dashes.
    """

    method: Method
    family: Family
    tensor: int
    pipeline: int
    limits: EngineLimits
    quantization: Quantization | None = None
    calibrated: bool = False
    eagle: EagleShape | None = None
    medusa: MedusaShape | None = None
    re_drafter: ReDrafterOptions | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def build_steps(recipe: EngineRecipe, support: EngineSupport) -> tuple[BuildStep, ...]:
    """The commands of one engine, in order; the last one asks the engine for a few tokens, where one GPU can.

    Args:
        support: Where the release's image keeps its converters.
    """
    build = BuildStep(name="build", argv=_build(recipe))
    tree = _tree(recipe)
    proof = (BuildStep(name=PROOF, argv=_prove(support, tree)),) if _is_provable(recipe, tree) else ()
    return (*_checkpoint_steps(recipe, support), build, *proof)


def quantizes(recipe: EngineRecipe) -> bool:
    """Whether the quantizer makes the checkpoint, on GPUs that hold the whole model."""
    return bool(_quantizer_format(recipe))


def _checkpoint_steps(recipe: EngineRecipe, support: EngineSupport) -> tuple[BuildStep, ...]:
    if recipe.method == "Eagle":
        return (BuildStep(name="convert", argv=_convert_eagle(recipe, support)),)
    if recipe.method == "Medusa" and not quantizes(recipe):
        return (BuildStep(name="convert", argv=_convert_medusa(recipe, support)),)
    if recipe.method == "ReDrafter" and support.re_drafter_base == "Model":
        return (BuildStep(name="convert", argv=_convert_drafter(recipe, support, base=("--model_dir", "{model}"))),)
    if recipe.method == "ReDrafter":
        argv = _convert_drafter(recipe, support, base=("--base_model_checkpoint_dir", "{base}"))
        return (_base_step(recipe, support, output="{base}"), BuildStep(name="convert-drafter", argv=argv))
    return (_base_step(recipe, support, output="{checkpoint}"),)


def _base_step(recipe: EngineRecipe, support: EngineSupport, *, output: str) -> BuildStep:
    if quantizes(recipe):
        return BuildStep(name="quantize", argv=_quantize(recipe, support, output=output))
    return BuildStep(name="convert", argv=_convert(recipe, support, output=output))


def _convert(recipe: EngineRecipe, support: EngineSupport, *, output: str) -> list[str]:
    family, options = recipe.family, recipe.family.options
    split = [options.tensor, str(recipe.tensor)]
    if family.pipeline:
        split += [options.pipeline, str(recipe.pipeline)]
    return [
        *_script(family.converter, support),
        *family.arguments,
        *(options.model, "{model}", options.output, output),
        *("--dtype", recipe.limits.data_type),
        *split,
        *_weight_only(recipe, family.weight_only_options),
    ]


def _convert_eagle(recipe: EngineRecipe, support: EngineSupport) -> list[str]:
    shape = recipe.eagle or EagleShape(layers=4, non_leaves_per_layer=10)
    return [
        *_script("eagle", support),
        *("--model_dir", "{model}", "--eagle_model_dir", "{head}", "--output_dir", "{checkpoint}"),
        *("--dtype", recipe.limits.data_type, "--max_draft_len", str(recipe.limits.draft_tokens)),
        *("--num_eagle_layers", str(shape.layers), "--max_non_leaves_per_layer", str(shape.non_leaves_per_layer)),
        *("--tp_size", str(recipe.tensor), "--pp_size", str(recipe.pipeline)),
        *_weight_only(recipe),
    ]


def _convert_medusa(recipe: EngineRecipe, support: EngineSupport) -> list[str]:
    kind = recipe.family.medusa_model_type
    return [
        *_script("medusa", support),
        *("--model_dir", "{model}", "--medusa_model_dir", "{head}", "--output_dir", "{checkpoint}"),
        *("--dtype", recipe.limits.data_type, *_medusa_heads(recipe)),
        *("--max_medusa_token_len", str(recipe.limits.draft_tokens)),
        # Releases that take Llama models alone do not know the option.
        *(("--model_type", kind) if kind != "llama" else ()),
        *("--tp_size", str(recipe.tensor), "--pp_size", str(recipe.pipeline)),
        *_weight_only(recipe),
    ]


def _convert_drafter(recipe: EngineRecipe, support: EngineSupport, *, base: tuple[str, str]) -> list[str]:
    options = recipe.re_drafter
    beams, length = (options.beams, options.draft_length_per_beam) if options else (5, 5)
    return [
        *_script("redrafter", support),
        *(*base, "--drafter_model_dir", "{head}", "--output_dir", "{checkpoint}"),
        *("--dtype", recipe.limits.data_type, "--tp_size", str(recipe.tensor)),
        *("--redrafter_num_beams", str(beams), "--redrafter_draft_len_per_beam", str(length)),
        *(() if options is None or options.greedy_search else ("--redrafter_no_greedy_search",)),
    ]


def _quantize(recipe: EngineRecipe, support: EngineSupport, *, output: str) -> list[str]:
    quantization = recipe.quantization
    cache = quantization.key_value_cache_data_type if quantization else None
    calibration = quantization.calibration if quantization else None
    samples, batch = (calibration.samples, calibration.batch_size) if calibration else (512, 1)
    heads = ("--medusa_model_dir", "{head}", *_medusa_heads(recipe), "--max_draft_len", str(recipe.limits.draft_tokens))
    return [
        *_script("quantize", support),
        *("--model_dir", "{model}", "--output_dir", output),
        *("--dtype", recipe.limits.data_type, "--qformat", _quantizer_format(recipe)),
        *(("--kv_cache_dtype", cache.lower()) if cache else ()),
        *("--calib_size", str(samples), "--batch_size", str(batch)),
        *(("--calib_dataset", "{calibration}") if recipe.calibrated else ()),
        *("--tp_size", str(recipe.tensor), "--pp_size", str(recipe.pipeline)),
        *(heads if recipe.method == "Medusa" else ()),
    ]


def _build(recipe: EngineRecipe) -> list[str]:
    limits = recipe.limits
    return [
        "trtllm-build",
        *("--checkpoint_dir", "{checkpoint}", "--output_dir", "{engine}"),
        *("--max_batch_size", str(limits.batch), "--max_beam_width", "1"),
        *("--max_input_len", str(limits.input_length), "--max_seq_len", str(limits.sequence_length)),
        *("--max_num_tokens", str(limits.batched_tokens)),
        *("--gemm_plugin", limits.data_type, "--logits_dtype", limits.logits_data_type),
        *("--kv_cache_type", "paged", *_attention(recipe)),
        *_speculation(recipe),
        *_extra(recipe),
    ]


def _is_provable(recipe: EngineRecipe, tree: str) -> bool:
    limits = recipe.limits
    room = min(limits.sequence_length - limits.draft_tokens, limits.input_length)
    one_rank = recipe.tensor * recipe.pipeline == 1
    fits = room >= _PROOF_ROOM and len(tree) <= _LONGEST_ARGUMENT
    return engine_builds().methods[recipe.method].provable and one_rank and fits


def _prove(support: EngineSupport, tree: str) -> list[str]:
    return [
        *_script("run", support),
        *("--engine_dir", "{engine}", "--tokenizer_dir", "{model}"),
        *("--max_output_len", str(_PROOF_TOKENS), "--input_text", _PROOF_PROMPT),
        # The script's own tree has 63 nodes: more than an engine for a smaller one takes.
        *(("--eagle_choices", tree) if tree else ()),
    ]


def _tree(recipe: EngineRecipe) -> str:
    """A declared EAGLE tree as the run script reads it; empty without one."""
    choices = recipe.eagle.choices if recipe.eagle else ()
    return json.dumps(choices, separators=(",", ":")) if choices else ""


def _attention(recipe: EngineRecipe) -> tuple[str, ...]:
    quantization = recipe.quantization
    if quantization is None:
        return ("--use_paged_context_fmha", "enable")
    cache = quantization.key_value_cache_data_type
    pages = engine_builds().formats[quantization.format].pages(cache)
    paged = ("--use_paged_context_fmha", "enable" if pages else "disable")
    whole = quantization.format == "FP8" and cache == "FP8"
    return (*paged, "--use_fp8_context_fmha", "enable") if whole else paged


def _speculation(recipe: EngineRecipe) -> tuple[str, ...]:
    if recipe.method == "None":
        return ()
    mode = ("--speculative_decoding_mode", engine_builds().methods[recipe.method].mode)
    # The checkpoints of heads hold the length themselves.
    length = ("--max_draft_len", str(recipe.limits.draft_tokens))
    return (*mode, *length) if recipe.method in ("DraftTarget", "Lookahead") else mode


def _extra(recipe: EngineRecipe) -> list[str]:
    return [part for name, value in sorted(recipe.extra.items()) for part in (f"--{name}", value) if part]


def _medusa_heads(recipe: EngineRecipe) -> tuple[str, ...]:
    shape = recipe.medusa or MedusaShape(heads=4, layers=1)
    return ("--num_medusa_heads", str(shape.heads), "--num_medusa_layers", str(shape.layers))


def _weight_only(recipe: EngineRecipe, options: list[str] | None = None) -> tuple[str, ...]:
    precision = engine_builds().formats[recipe.quantization.format].converter if recipe.quantization else ""
    return (*(options or ("--use_weight_only", "--weight_only_precision")), precision) if precision else ()


def _quantizer_format(recipe: EngineRecipe) -> str:
    return engine_builds().formats[recipe.quantization.format].quantizer if recipe.quantization else ""


def _script(name: str, support: EngineSupport) -> tuple[str, str]:
    paths = support.converters.get(name) or engine_builds().converters.get(name) or converter_paths()[name]
    return "python3", "|".join(paths)
