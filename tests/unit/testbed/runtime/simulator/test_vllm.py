"""The simulated vLLM engine: what drafts is what the release makes of model.json, and no answer changes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from testbed.runtime.simulator.errors import NoGPUError, ParameterError, RequestError
from testbed.runtime.simulator.triton_models.vllm_stream import StreamedAnswer
from testbed.runtime.simulator.vllm import Delta, SimulatedVLLM
from testbed.runtime.simulator.vllm_arguments import parse_arguments
from testbed.runtime.simulator.vllm_releases import VLLMRelease
from testbed.runtime.simulator.vllm_sampling import SamplingParameters, parse_sampling

QUESTION = "What is the capital of France?"
ANSWER = " The capital of France is Paris, a city on the river Seine."
GREEDY = SamplingParameters(max_tokens=48, temperature=0.0)


@pytest.fixture
def load(models: Path, gpus: dict[str, str]) -> Any:
    """Load a model.json; paths are names of tiny models, and `draft` is where speculative_config's model lies."""

    def run(version: str = "0.15.1", target: str = "tiny-llama", **keys: Any) -> SimulatedVLLM:
        config = dict(keys.pop("speculation", None) or {})
        if "model" in config and not config["model"].startswith("/"):
            config["model"] = str(models / config["model"])
        document = {"model": str(models / target), **keys} | ({"speculative_config": config} if config else {})
        return SimulatedVLLM(parse_arguments(document, version), VLLMRelease.read(version), gpus)

    return run


METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "draft_model": ("0.15.1", {"method": "draft_model", "model": "tiny-llama-draft"}),
    "ngram": ("0.15.1", {"method": "ngram", "prompt_lookup_min": 1, "prompt_lookup_max": 3}),
    "eagle": ("0.15.1", {"method": "eagle", "model": "tiny-llama-eagle"}),
    "eagle3": ("0.15.1", {"method": "eagle3", "model": "tiny-llama-eagle3"}),
    "medusa": ("0.27.1", {"method": "medusa", "model": "tiny-llama-medusa"}),
    "mtp": ("0.15.1", {"method": "mtp"}),
}


@pytest.mark.parametrize("method", METHODS)
def test_each_method_drafts_and_changes_no_answer(load: Any, method: str) -> None:
    version, config = METHODS[method]
    target = "tiny-llama-mtp" if method == "mtp" else "tiny-llama"
    done = load(version, target=target, speculation={"num_speculative_tokens": 3, **config}).complete(QUESTION, GREEDY)
    assert (done.text, done.drafted >= done.accepted > 0) == (ANSWER, True)


def test_without_speculation_every_pass_adds_one_token(load: Any) -> None:
    done = load().complete(QUESTION, GREEDY)
    assert (done.text, done.drafted, len(done.steps)) == (ANSWER, 0, done.output_tokens)


def test_accepted_tokens_save_passes(load: Any) -> None:
    version, config = METHODS["draft_model"]
    done = load(version, speculation={"num_speculative_tokens": 3, **config}).complete(QUESTION, GREEDY)
    # A guessed end mark brings no token of the target's own.
    assert done.output_tokens - len(done.steps) - done.accepted in (0, -1)


def test_sixteen_tokens_end_with_length(load: Any) -> None:
    done = load().complete("What is speculative decoding?", SamplingParameters(temperature=0.0))
    assert (done.output_tokens, done.finish_reason) == (16, "length")


REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("0.13.0", METHODS["draft_model"][1], {}, "Speculative decoding with draft model is not supported yet"),
    ("0.10.1.1", METHODS["eagle3"][1], {}, "Speculative decoding is not supported on vLLM V0."),
    ("0.9.2", METHODS["eagle3"][1], {}, "eagle3 needs the V1 engine"),
    ("0.15.1", {"method": "draft_model", "model": "tiny-llama-other-vocabulary"}, {}, "same vocabulary size"),
    ("0.15.1", {"method": "mtp"}, {}, "Unsupported speculative method: 'mtp'"),
    ("0.15.1", {"method": "suffix"}, {}, "Arctic Inference is required"),
    ("0.15.1", {"model": "tiny-llama-draft"}, {}, "Unsupported speculative method: 'None'"),
    ("0.15.1", METHODS["medusa"][1], {}, "Unsupported speculative method: 'medusa'"),
    ("0.15.1", {"method": "draft_model"}, {}, "without speculative model"),
    ("0.15.1", METHODS["eagle3"][1], {"pipeline_parallel_size": 2}, "not supported with pipeline parallelism"),
    (
        "0.15.1",
        METHODS["draft_model"][1] | {"draft_tensor_parallel_size": 1},
        {"tensor_parallel_size": 2},
        "must be the same. Got 1 and 2",
    ),
    (
        "0.15.1",
        METHODS["eagle3"][1] | {"draft_tensor_parallel_size": 2},
        {"tensor_parallel_size": 4},
        "cannot be other value than 1 or target model",
    ),
    (
        "0.16.0",
        METHODS["draft_model"][1],
        {"max_num_batched_tokens": 64, "max_num_seqs": 64},
        r"max_num_batched_tokens \(64\) must be greater than the slots",
    ),
    ("0.15.1", METHODS["draft_model"][1] | {"max_model_len": 4096}, {}, "speculative_max_model_len=4096"),
    ("0.9.2", METHODS["eagle"][1], {"enable_chunked_prefill": True}, "Chunked prefill and eagle are not compatible"),
    ("0.9.2", METHODS["eagle"][1], {"tensor_parallel_size": 2}, "EAGLE does not support TP > 1 yet"),
    ("0.9.2", METHODS["ngram"][1], {"enable_lora": True}, "LoRA with speculative decoding"),
]


@pytest.mark.parametrize(("version", "config", "keys", "message"), REFUSALS)
def test_what_the_release_would_not_load_is_refused(
    load: Any, version: str, config: dict[str, Any], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        load(version, speculation={"num_speculative_tokens": 3, **config}, **keys)


@pytest.mark.parametrize(
    ("version", "config"),
    [("0.10.2", {"method": "deepseek_mtp", "model": "tiny-llama-mtp"}), ("0.11.1", {"method": "mtp"})],
)
def test_a_target_drafts_with_its_own_layers(load: Any, version: str, config: dict[str, str]) -> None:
    engine = load(version, target="tiny-llama-mtp", speculation={"num_speculative_tokens": 1, **config})
    assert engine.plan.method == "mtp"


@pytest.mark.parametrize("version", ["0.9.2", "0.10.2"])
def test_not_every_target_drafts_unasked_in_old_releases(load: Any, version: str) -> None:
    with pytest.raises(ParameterError, match="without speculative model"):
        load(version, target="tiny-llama-mtp", speculation={"num_speculative_tokens": 1, "method": "deepseek_mtp"})


def test_a_draft_length_is_required(load: Any) -> None:
    with pytest.raises(ParameterError, match="num_speculative_tokens must be provided"):
        load(speculation=METHODS["eagle3"][1])


def test_the_path_alone_makes_a_head_of_a_draft(load: Any, models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "tiny-llama-draft", tmp_path / "my-eagle3")
    config = {"method": "draft_model", "model": str(tmp_path / "my-eagle3"), "num_speculative_tokens": 2}
    with pytest.raises(ParameterError, match="not \\['LlamaForCausalLMEagle3'\\]"):
        load(speculation=config)


def test_a_draft_of_the_same_size_with_another_tokenizer_is_loaded_silently(
    load: Any, models: Path, tmp_path: Path
) -> None:
    shutil.copytree(models / "tiny-llama-draft", tmp_path / "draft")
    shutil.copy(models / "tiny-llama-other-vocabulary" / "tokenizer.json", tmp_path / "draft" / "tokenizer.json")
    config = {"method": "draft_model", "model": str(tmp_path / "draft"), "num_speculative_tokens": 2}
    assert load(speculation=config).complete(QUESTION, GREEDY).text == ANSWER


def test_flat_keys_speculate_in_old_releases(load: Any, models: Path) -> None:
    keys = {"speculative_model": str(models / "tiny-llama-draft"), "num_speculative_tokens": 3}
    assert load("0.8.1", **keys).complete(QUESTION, GREEDY).accepted > 0


def test_tokens_are_not_mapped_between_vocabularies(load: Any) -> None:
    config = {"method": "draft_model", "model": "tiny-llama-other-vocabulary", "num_speculative_tokens": 2}
    with pytest.raises(ParameterError, match="the draft's vocab_size is 384, the target's 512"):
        load("0.27.1", speculation=config | {"use_heterogeneous_vocab": True})


@pytest.mark.parametrize(("version", "drafts"), [("0.13.0", False), ("0.15.1", True)])
def test_a_penalty_once_switched_the_draft_off_silently(load: Any, version: str, *, drafts: bool) -> None:
    engine = load(version, speculation={"num_speculative_tokens": 3, **METHODS["eagle3"][1]})
    sampling = parse_sampling('{"temperature": 0, "frequency_penalty": 0.1}', VLLMRelease.read(version))
    assert (engine.complete(QUESTION, sampling).drafted > 0) is drafts


def test_a_bias_beside_a_draft_is_refused_since_0_17(load: Any) -> None:
    engine = load("0.17.1", speculation={"num_speculative_tokens": 3, **METHODS["eagle3"][1]})
    with pytest.raises(RequestError, match="min_p and logit_bias"):
        engine.complete(QUESTION, SamplingParameters(shaped=frozenset({"logit_bias"})))


def test_no_gpu_no_engine(models: Path) -> None:
    arguments = parse_arguments({"model": str(models / "tiny-llama")})
    with pytest.raises(NoGPUError):
        SimulatedVLLM(arguments, VLLMRelease.read("0.15.1"), {"NVIDIA_VISIBLE_DEVICES": "void"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tensor_parallel_size": 8}, r"World size \(8\) is larger than the number of available GPUs \(4\)"),
        ({"max_model_len": 4096}, r"max_model_len \(4096\) is greater than the derived max_model_len"),
        ({"max_num_batched_tokens": 8}, "greater than or equal to max_num_seqs"),
    ],
)
def test_limits_are_checked_at_the_start(load: Any, keys: dict[str, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        load(**keys)


def test_a_prompt_that_is_too_long_is_refused(load: Any) -> None:
    with pytest.raises(RequestError, match="longer than the maximum model length of 4"):
        load(max_model_len=4).complete(QUESTION, GREEDY)


@pytest.mark.parametrize("limit", [5, 48])
def test_a_stream_says_the_whole_answer_and_counts_every_token(load: Any, limit: int) -> None:
    version, config = METHODS["eagle3"]
    engine = load(version, speculation={"num_speculative_tokens": 3, **config})
    sent: list[dict[str, Any]] = []
    stream = StreamedAnswer(lambda outputs: sent.append(dict(outputs)))
    done = engine.complete(QUESTION, SamplingParameters(max_tokens=limit, temperature=0.0), stream.add)
    sent.append(stream.finish(done))
    assert "".join(piece["text_output"] for piece in sent) == done.text
    assert sum(piece["num_output_tokens"] for piece in sent) == done.output_tokens
    assert len(sent) == len(done.steps)


def test_a_piece_is_held_back_until_the_next_one_comes() -> None:
    sent: list[Any] = []
    stream = StreamedAnswer(sent.append)
    stream.add(Delta(text="a", tokens=1))
    assert sent == []


def test_a_draft_that_is_no_model_is_refused(load: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 512}))
    config = {"method": "draft_model", "model": str(tmp_path), "num_speculative_tokens": 2}
    with pytest.raises(ParameterError, match="architectures is None"):
        load(speculation=config)
