from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.v1alpha1.quantization import KeyValueCacheDataType, Quantization, QuantizationFormat
from specdec_operator.api.v1alpha1.speculation import ReDrafterOptions
from specdec_operator.runtimes.build_steps import (
    EagleShape,
    EngineLimits,
    EngineRecipe,
    MedusaShape,
    build_steps,
    quantizes,
)
from specdec_operator.runtimes.engine_builds import engine_builds
from specdec_operator.runtimes.release import EngineSupport

SUPPORT = EngineSupport(methods=["None"])
LLAMA = "/app/examples/models/core/llama/convert_checkpoint.py|/app/examples/llama/convert_checkpoint.py"
QUANTIZE = "/app/examples/quantization/quantize.py"


def recipe(method: Any = "None", *, architecture: str = "LlamaForCausalLM", **changes: Any) -> EngineRecipe:
    family = engine_builds().family(architecture)
    assert family is not None
    limits: dict[str, Any] = {
        "batch": 4,
        "input_length": 2048,
        "sequence_length": 3072,
        "batched_tokens": 8192,
        "draft_tokens": 0,
        "data_type": "float16",
        "logits_data_type": "float32",
    }
    built_for = EngineLimits(**{name: changes.pop(name, value) for name, value in limits.items()})
    given: dict[str, Any] = {"method": method, "family": family, "tensor": 1, "pipeline": 1, "limits": built_for}
    return EngineRecipe(**{**given, **changes})


def commands(method: Any = "None", **changes: Any) -> dict[str, list[str]]:
    return {step.name: step.argv for step in build_steps(recipe(method, **changes), SUPPORT)}


def words(text: str) -> list[str]:
    return text.split()


def fp8(**changes: Any) -> Quantization:
    return Quantization.model_validate({"format": "FP8", **changes})


BUILD = (
    "trtllm-build --checkpoint_dir {checkpoint} --output_dir {engine} --max_batch_size 4 --max_beam_width 1 "
    "--max_input_len 2048 --max_seq_len 3072 --max_num_tokens 8192 --gemm_plugin float16 --logits_dtype float32 "
    "--kv_cache_type paged --use_paged_context_fmha enable"
)


def test_a_baseline_is_converted_and_built() -> None:
    made = commands()

    assert made["convert"] == words(
        f"python3 {LLAMA} --model_dir {{model}} --output_dir {{checkpoint}} --dtype float16 --tp_size 1 --pp_size 1"
    )
    assert made["build"] == words(BUILD)


def test_ranks_are_tensor_parallel_groups_in_stages() -> None:
    assert commands(tensor=4, pipeline=2)["convert"][-4:] == ["--tp_size", "4", "--pp_size", "2"]


def test_an_eagle_head_is_converted_with_its_target() -> None:
    made = commands("Eagle", draft_tokens=63, eagle=EagleShape(layers=4, non_leaves_per_layer=10))

    assert made["convert"] == words(
        "python3 /app/examples/eagle/convert_checkpoint.py --model_dir {model} --eagle_model_dir {head} "
        "--output_dir {checkpoint} --dtype float16 --max_draft_len 63 --num_eagle_layers 4 "
        "--max_non_leaves_per_layer 10 --tp_size 1 --pp_size 1"
    )
    assert made["build"] == words(f"{BUILD} --speculative_decoding_mode eagle")


def test_medusa_heads_are_converted_with_their_target() -> None:
    made = commands("Medusa", draft_tokens=63, medusa=MedusaShape(heads=4, layers=1))

    assert made["convert"] == words(
        "python3 /app/examples/medusa/convert_checkpoint.py --model_dir {model} --medusa_model_dir {head} "
        "--output_dir {checkpoint} --dtype float16 --num_medusa_heads 4 --num_medusa_layers 1 "
        "--max_medusa_token_len 63 --tp_size 1 --pp_size 1"
    )
    assert made["build"] == words(f"{BUILD} --speculative_decoding_mode medusa")


@pytest.mark.parametrize(("architecture", "kind"), [("MixtralForCausalLM", "mixtral"), ("Qwen2ForCausalLM", "qwen2")])
def test_the_medusa_converter_is_told_another_family(architecture: str, kind: str) -> None:
    argv = commands("Medusa", architecture=architecture)["convert"]

    assert argv[argv.index("--model_type") + 1] == kind


def test_a_recurrent_drafter_is_added_to_the_converted_target() -> None:
    made = commands("ReDrafter", draft_tokens=25, tensor=2, re_drafter=ReDrafterOptions())

    assert list(made) == ["convert", "convert-drafter", "build"]
    assert made["convert"] == words(
        f"python3 {LLAMA} --model_dir {{model}} --output_dir {{base}} --dtype float16 --tp_size 2 --pp_size 1"
    )
    assert made["convert-drafter"] == words(
        "python3 /app/examples/redrafter/convert_checkpoint.py --base_model_checkpoint_dir {base} "
        "--drafter_model_dir {head} --output_dir {checkpoint} --dtype float16 --tp_size 2 --redrafter_num_beams 5 "
        "--redrafter_draft_len_per_beam 5"
    )
    assert made["build"] == words(f"{BUILD} --speculative_decoding_mode explicit_draft_tokens")


def test_a_converter_of_one_step_adds_the_drafter_to_the_model_itself() -> None:
    before = EngineSupport(methods=["ReDrafter"], re_drafter_base="Model")
    convert, build = build_steps(recipe("ReDrafter", draft_tokens=25, tensor=2), before)[:2]

    assert (convert.name, build.name) == ("convert", "build")
    assert convert.argv == words(
        "python3 /app/examples/redrafter/convert_checkpoint.py --model_dir {model} --drafter_model_dir {head} "
        "--output_dir {checkpoint} --dtype float16 --tp_size 2 --redrafter_num_beams 5 "
        "--redrafter_draft_len_per_beam 5"
    )


def test_a_drafter_may_sample() -> None:
    options = ReDrafterOptions(beams=2, draft_length_per_beam=3, greedy_search=False)

    assert commands("ReDrafter", re_drafter=options)["convert-drafter"][-5:] == words(
        "--redrafter_num_beams 2 --redrafter_draft_len_per_beam 3 --redrafter_no_greedy_search"
    )


@pytest.mark.parametrize(
    ("method", "mode"), [("DraftTarget", "draft_tokens_external"), ("Lookahead", "lookahead_decoding")]
)
def test_a_method_without_a_head_is_told_its_draft_length(method: str, mode: str) -> None:
    made = commands(method, draft_tokens=83)

    assert made["build"] == words(f"{BUILD} --speculative_decoding_mode {mode} --max_draft_len 83")


def test_fp8_is_made_by_the_quantizer() -> None:
    made = commands(quantization=fp8(keyValueCacheDataType="FP8"), tensor=2)

    assert list(made) == ["quantize", "build"]
    assert made["quantize"] == words(
        f"python3 {QUANTIZE} --model_dir {{model}} --output_dir {{checkpoint}} --dtype float16 --qformat fp8 "
        "--kv_cache_dtype fp8 --calib_size 512 --batch_size 1 --tp_size 2 --pp_size 1"
    )
    assert made["build"] == words(f"{BUILD} --use_fp8_context_fmha enable")


def test_a_cache_of_the_model_s_own_type_is_read_by_its_own_attention() -> None:
    made = commands(quantization=fp8())

    assert "--kv_cache_dtype" not in made["quantize"]
    assert "--use_fp8_context_fmha" not in made["build"]


def test_calibration_is_sized_and_reads_what_is_mounted() -> None:
    quantization = fp8(calibration={"samples": 64, "batchSize": 8})

    assert commands(quantization=quantization, calibrated=True)["quantize"][9:15] == words(
        "fp8 --calib_size 64 --batch_size 8 --calib_dataset"
    )


@pytest.mark.parametrize(
    ("form", "name"),
    [("INT8SmoothQuant", "int8_sq"), ("INT4AWQ", "int4_awq"), ("W4A8AWQ", "w4a8_awq"), ("NVFP4", "nvfp4")],
)
def test_the_quantizer_s_formats_have_its_names(form: Any, name: str) -> None:
    argv = commands(quantization=Quantization(format=form))["quantize"]

    assert argv[argv.index("--qformat") + 1] == name


@pytest.mark.parametrize(("form", "precision"), [("INT8WeightOnly", "int8"), ("INT4WeightOnly", "int4")])
@pytest.mark.parametrize("method", ["None", "Eagle", "Medusa"])
def test_weight_only_formats_are_made_by_the_converter(method: str, form: Any, precision: str) -> None:
    made = commands(method, quantization=Quantization(format=form))

    assert made["convert"][-3:] == ["--use_weight_only", "--weight_only_precision", precision]


def test_an_fp8_target_of_medusa_heads_is_quantized_with_them() -> None:
    made = commands("Medusa", draft_tokens=63, quantization=fp8(), medusa=MedusaShape(heads=4, layers=1))

    assert list(made) == ["quantize", "build"]
    assert made["quantize"][-8:] == words(
        "--medusa_model_dir {head} --num_medusa_heads 4 --num_medusa_layers 1 --max_draft_len 63"
    )


def test_an_fp8_target_of_a_drafter_is_quantized_before_it() -> None:
    made = commands("ReDrafter", quantization=fp8(), tensor=2)

    assert list(made) == ["quantize", "convert-drafter", "build"]
    assert made["quantize"][4:6] == ["--output_dir", "{base}"]


@pytest.mark.parametrize(
    ("form", "cache"), [("INT8SmoothQuant", "INT8"), ("FP8", "INT8"), ("INT8SmoothQuant", "FP8"), ("INT4AWQ", "FP8")]
)
def test_a_cache_that_is_not_read_in_pages_is_read_by_plain_attention(
    form: QuantizationFormat, cache: KeyValueCacheDataType
) -> None:
    quantization = Quantization(format=form, key_value_cache_data_type=cache)

    assert commands(quantization=quantization)["build"][-2:] == ["--use_paged_context_fmha", "disable"]


def test_gemma_s_converter_has_options_of_its_own() -> None:
    made = commands(architecture="Gemma2ForCausalLM", tensor=2, quantization=Quantization(format="INT8WeightOnly"))

    assert made["convert"][2:] == words(
        "--ckpt-type hf --model-dir {model} --output-model-dir {checkpoint} --dtype float16 --world-size 2 "
        "--use-weight-only-with-precision int8"
    )


@pytest.mark.parametrize("family", engine_builds().families, ids=lambda family: family.name)
def test_every_family_has_a_converter_with_a_place(family: Any) -> None:
    (script,) = [a for a in commands(architecture=family.architectures[0], tensor=2)["convert"] if a.endswith(".py")]

    assert all(path.startswith("/app/examples/") for path in script.split("|"))


def test_more_options_come_last_in_order() -> None:
    made = commands("Lookahead", draft_tokens=2, extra={"reduce_fusion": "enable", "monitor_memory": ""})

    assert made["build"][-3:] == ["--monitor_memory", "--reduce_fusion", "enable"]


@pytest.mark.parametrize("method", ["None", "Eagle", "ReDrafter"])
def test_a_built_engine_is_asked_for_a_few_tokens(method: str) -> None:
    assert commands(method)["prove"] == [
        *words("python3 /app/examples/run.py --engine_dir {engine} --tokenizer_dir {model} --max_output_len 8"),
        *("--input_text", "Once upon"),
    ]


def test_a_built_eagle_engine_is_asked_with_its_own_tree() -> None:
    shape = EagleShape(layers=2, non_leaves_per_layer=1, choices=((0,), (1,), (0, 0)))

    assert commands("Eagle", draft_tokens=3, eagle=shape)["prove"][-2:] == ["--eagle_choices", "[[0],[1],[0,0]]"]


def test_an_engine_whose_tree_is_too_long_for_an_argument_is_not_asked() -> None:
    shape = EagleShape(layers=2, non_leaves_per_layer=1, choices=tuple((0,) * 16 for _ in range(64)))

    assert "prove" not in commands("Eagle", draft_tokens=64, eagle=shape)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "Medusa"},
        {"method": "Lookahead"},
        {"method": "DraftTarget"},
        {"tensor": 2},
        {"pipeline": 2},
        {"sequence_length": 31},
        {"input_length": 31},
    ],
)
def test_an_engine_that_the_run_script_can_not_take_is_not_asked(changes: dict[str, Any]) -> None:
    assert "prove" not in commands(**changes)


def test_a_release_s_own_places_win() -> None:
    support = EngineSupport(methods=["None"], converters={"llama": ["/elsewhere/convert.py"]})

    assert build_steps(recipe(), support)[0].argv[1] == "/elsewhere/convert.py"


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [(None, False), (Quantization(format="INT8WeightOnly"), False), (Quantization(format="FP8"), True)],
)
def test_only_calibrated_formats_need_the_quantizer(quantization: Any, *, expected: bool) -> None:
    assert quantizes(recipe(quantization=quantization)) is expected
